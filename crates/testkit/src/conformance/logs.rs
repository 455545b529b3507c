//! Checks of log stores.

#![expect(clippy::panic, reason = "a check that fails panics with the requirement it is about")]

use raincheck_core::ids::{Fence, TaskId};
use raincheck_core::log::{Draft, Level, Line, LogStore, Stream};
use raincheck_core::time::Timestamp;

const ID: TaskId = TaskId::from_parts(1, [1; 10]);

fn lines(texts: &[&str]) -> Vec<Draft> {
    let draft = |text: &&str| Draft {
        ts: Timestamp::from_millis(1_000),
        stream: Stream::Stdout,
        level: Level::Info,
        message: (*text).into(),
    };
    texts.iter().map(draft).collect()
}

async fn append(store: &dyn LogStore, n: u32, texts: &[&str]) -> u64 {
    let last = store.append(ID, Fence::new(1, n), lines(texts)).await;
    last.unwrap_or_else(|error| panic!("lines are not kept: {error}"))
}

async fn read(store: &dyn LogStore, after: u64, limit: u32) -> (Vec<Line>, bool) {
    match store.read(ID, after, limit).await {
        Ok(page) => (page.items, page.has_more),
        Err(error) => panic!("lines are not read: {error}"),
    }
}

pub(super) async fn pages_have_no_gap_and_no_repeat(store: &dyn LogStore) {
    let texts: Vec<_> = (0..1_000).map(|n| format!("line {n}")).collect();
    for part in texts.chunks(7) {
        append(store, 1, &part.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
    for limit in [1, 3, 333, 1_000] {
        let mut seen = Vec::new();
        loop {
            let (page, has_more) = read(store, seen.len() as u64, limit).await;
            seen.extend(page);
            assert!(seen.len() <= texts.len(), "[LOG-1] pages of {limit} repeat lines");
            if !has_more {
                break;
            }
        }
        let same = seen.iter().map(|line| &*line.message).eq(texts.iter().map(String::as_str));
        let numbered = seen.iter().map(|line| line.seq).eq(1..=texts.len() as u64);
        assert!(same && numbered, "[LOG-1] pages of {limit} give {} lines", seen.len());
    }
}

pub(super) async fn a_quota_leaves_one_record_with_counts(store: &dyn LogStore) {
    // Room for one of the long lines, whatever a store keeps beside the text.
    store.limit(ID, 250).await;
    let long = "x".repeat(100);
    append(store, 1, &[&long, &long]).await;
    append(store, 1, &[&long, "y"]).await;
    if let Err(error) = store.close(ID).await {
        panic!("[LOG-2] the log is not closed: {error}");
    }
    let (kept, _) = read(store, 0, 10).await;
    let texts: Vec<_> = kept.iter().map(|line| &*line.message).collect();
    assert_eq!(texts.len(), 2, "[LOG-2] kept {texts:?}");
    let record = texts.last().copied().unwrap_or_default();
    let counted = record.contains('3') && record.contains("201");
    assert!(record.contains("truncated") && counted, "[LOG-2] the record says {record:?}");
    // The log of another attempt goes on from there.
    append(store, 2, &[&long]).await;
    if let Err(error) = store.close(ID).await {
        panic!("[LOG-2] the log is not closed again: {error}");
    }
    let (kept, _) = read(store, 0, 10).await;
    let record = kept.last().map(|line| line.message.to_string()).unwrap_or_default();
    let counted = record.contains('4') && record.contains("301");
    assert!(kept.len() == 2 && counted, "[LOG-2] closed again it says {kept:?}");
}

pub(super) async fn lines_without_text_count_against_the_quota(store: &dyn LogStore) {
    store.limit(ID, 10_000).await;
    for _ in 0..100 {
        append(store, 1, &[""; 100]).await;
    }
    if let Err(error) = store.close(ID).await {
        panic!("[LOG-2] the log is not closed: {error}");
    }
    let (kept, _) = read(store, 0, 10_000).await;
    assert!((50..250).contains(&kept.len()), "[LOG-2] kept {} lines without text", kept.len());
    let record = kept.last().map(|line| line.message.replace(',', "")).unwrap_or_default();
    let dropped = 10_001 - kept.len();
    let told = format!("truncated: {dropped} lines (0 bytes)");
    assert!(record.starts_with(&told), "[LOG-2] the record says {record:?}");
}

pub(super) async fn an_older_attempt_adds_nothing(store: &dyn LogStore) {
    append(store, 2, &["new"]).await;
    append(store, 1, &["old"]).await;
    let (kept, _) = read(store, 0, 10).await;
    assert_eq!(kept.len(), 1, "[LEASE-1] an older attempt wrote {kept:?}");
}

pub(super) async fn numbers_go_on_across_attempts(store: &dyn LogStore) {
    append(store, 1, &["a", "b"]).await;
    assert_eq!(append(store, 2, &["c"]).await, 3, "[LOG-1] the number after the second attempt");
    let (kept, _) = read(store, 0, 10).await;
    let seqs: Vec<_> = kept.iter().map(|line| line.seq).collect();
    assert_eq!(seqs, [1, 2, 3], "[LOG-1] numbers across attempts");
}

pub(super) async fn what_is_removed_is_gone(store: &dyn LogStore) {
    append(store, 1, &["a"]).await;
    if let Err(error) = store.remove(vec![ID]).await {
        panic!("[SWEEP-1] lines are not removed: {error}");
    }
    assert_eq!(read(store, 0, 10).await.0, [], "[SWEEP-1] removed lines are read");
}
