use std::sync::Arc;

use raincheck_core::ids::{Fence, TaskId};
use raincheck_core::log::{Draft, Level, Line, LogStore, MAX_LINE, Stream};
use raincheck_core::time::Timestamp;

use super::FileLogs;
use super::file::LogFile;

const ID: TaskId = TaskId::from_parts(1, [1; 10]);
const FENCE: Fence = Fence::new(1, 1);

fn draft(message: impl Into<Arc<str>>) -> Draft {
    let ts = Timestamp::from_millis(0);
    Draft { ts, stream: Stream::Stdout, level: Level::Info, message: message.into() }
}

fn drafts(messages: impl IntoIterator<Item = String>) -> Vec<Draft> {
    messages.into_iter().map(draft).collect()
}

async fn all(logs: &FileLogs, limit: u32) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    loop {
        let after = lines.last().map_or(0, |line| line.seq);
        let page = logs.read(ID, after, limit).await.expect("a page");
        assert!(page.items.len() <= limit as usize);
        let is_last = !page.has_more;
        lines.extend(page.items);
        if is_last {
            return lines;
        }
    }
}

#[tokio::test]
async fn pages_of_any_size_give_every_line_once() {
    // [LOG-1]
    let root = tempfile::tempdir().expect("a directory");
    let logs = FileLogs::new(root.path());
    for batch in 0..40 {
        let lines = drafts((0..100).map(|n| format!("{} {}", batch * 100 + n, "x".repeat(n))));
        let last = logs.append(ID, FENCE, lines).await.expect("kept");
        assert_eq!(last, (batch as u64 + 1) * 100);
    }
    for limit in [7, 1000] {
        let lines = all(&logs, limit).await;
        assert_eq!(lines.len(), 4000);
        for (place, line) in lines.iter().enumerate() {
            assert_eq!(line.seq, place as u64 + 1);
            assert!(line.message.starts_with(&format!("{place} ")), "{line:?}");
        }
    }
    // Any other reader of the folder finds the same.
    assert_eq!(all(&FileLogs::new(root.path()), 1000).await, all(&logs, 1000).await);
}

#[tokio::test]
async fn a_log_goes_on_after_a_restart_without_the_line_that_was_cut_off() {
    // [LOG-1]
    let root = tempfile::tempdir().expect("a directory");
    let before = FileLogs::new(root.path());
    before.append(ID, FENCE, drafts(["a".into(), "b".into()])).await.expect("kept");
    let path = root.path().join(ID.to_string()).join("log");
    let whole = std::fs::read(&path).expect("the file");
    std::fs::write(&path, &whole[..whole.len() - 5]).expect("cut");
    let after = FileLogs::new(root.path());
    after.append(ID, FENCE, vec![draft("c")]).await.expect("kept");
    let lines = all(&after, 10).await;
    let seen: Vec<_> = lines.iter().map(|line| (line.seq, &*line.message)).collect();
    assert_eq!(seen, [(1, "a"), (2, "c")]);
}

/// What one line takes in the file.
fn stored(seq: u64, message: &str) -> u64 {
    let draft = draft(message);
    let (ts, stream, level) = (draft.ts, draft.stream, draft.level);
    let mut bytes = Vec::new();
    let line = Line { seq, ts, stream, level, message: draft.message };
    super::record::write(&mut bytes, &line).expect("a buffer takes it");
    bytes.len() as u64
}

#[tokio::test]
async fn a_quota_bounds_what_is_stored_whatever_the_lines_are() {
    // [LOG-2]
    let root = tempfile::tempdir().expect("a directory");
    for (n, text) in ["", "y", "\u{1}\u{1}\u{1}", &"long ".repeat(1_000)].into_iter().enumerate() {
        let logs = FileLogs::new(root.path().join(n.to_string()));
        logs.limit(ID, 100_000).await;
        for _ in 0..30 {
            let lines = drafts(std::iter::repeat_n(text.to_owned(), 100));
            logs.append(ID, FENCE, lines).await.expect("kept or counted");
        }
        logs.close(ID).await.expect("closed");
        let path = root.path().join(n.to_string()).join(ID.to_string()).join("log");
        let size = std::fs::metadata(path).expect("the file").len();
        assert!((94_000..100_200).contains(&size), "{size} bytes of {text:?}");
    }
}

#[tokio::test]
async fn beyond_the_quota_one_record_tells_what_was_dropped() {
    // [LOG-2]
    let root = tempfile::tempdir().expect("a directory");
    let logs = FileLogs::new(root.path());
    let quota = stored(1, "12345");
    logs.limit(ID, quota).await;
    let last = logs.append(ID, FENCE, drafts(["12345".into(), "123456".into()])).await;
    assert_eq!(last.expect("kept"), 2);
    let told = |lines: &[Line]| lines.last().expect("a record").message.to_string();
    assert!(told(&all(&logs, 10).await).starts_with("truncated: 1 lines (6 bytes)"));
    for _ in 0..1000 {
        logs.append(ID, FENCE, vec![draft("x")]).await.expect("counted");
    }
    logs.close(ID).await.expect("closed");
    let lines = all(&logs, 10).await;
    assert_eq!(lines.len(), 2, "the record stands alone and last");
    let text = format!(
        "truncated: 1,001 lines (1,006 bytes) beyond the quota of {quota} bytes were dropped"
    );
    assert_eq!(told(&lines), text);
    let reopened = FileLogs::new(root.path());
    reopened.append(ID, FENCE, vec![draft("x")]).await.expect("counted");
    reopened.limit(ID, quota).await;
    reopened.close(ID).await.expect("closed");
    assert!(told(&all(&reopened, 10).await).starts_with("truncated: 1,002 lines (1,007 bytes)"));
}

#[tokio::test]
async fn a_long_line_is_split_between_characters() {
    // [LOG-1]
    let root = tempfile::tempdir().expect("a directory");
    let logs = FileLogs::new(root.path());
    let long = "é".repeat(MAX_LINE);
    logs.append(ID, FENCE, vec![draft(long.clone())]).await.expect("kept");
    let lines = all(&logs, 100).await;
    assert!(lines.iter().all(|line| line.message.len() <= MAX_LINE));
    assert_eq!(lines.iter().map(|line| &*line.message).collect::<String>(), long);
}

#[tokio::test]
async fn an_older_attempt_writes_no_more() {
    // [LEASE-1]
    let root = tempfile::tempdir().expect("a directory");
    let logs = FileLogs::new(root.path());
    logs.append(ID, Fence::new(1, 2), vec![draft("new")]).await.expect("kept");
    assert_eq!(logs.append(ID, FENCE, vec![draft("old")]).await.expect("dropped"), 1);
    assert_eq!(all(&logs, 10).await.len(), 1);
}

#[tokio::test]
async fn a_reader_follows_what_another_process_writes() {
    // [LOG-1] [LOG-2]
    let root = tempfile::tempdir().expect("a directory");
    let (writer, reader) = (FileLogs::new(root.path()), FileLogs::new(root.path()));
    let path = root.path().join(ID.to_string()).join("log");
    assert!(all(&reader, 10).await.is_empty());
    // Six short lines fit, and a longer one does not.
    let quota = (1..=6).map(|seq| stored(seq, "text")).sum::<u64>() + 100;
    writer.limit(ID, quota).await;
    for n in 1..=3 {
        writer.append(ID, FENCE, drafts((0..n).map(|_| "text".into()))).await.expect("kept");
        assert_eq!(all(&reader, 2).await, all(&writer, 10).await);
    }
    // A record that is not whole yet is neither read nor cut off.
    let whole = std::fs::read(&path).expect("the file");
    std::fs::write(&path, [&whole[..], b"{\"seq\":7,"].concat()).expect("written");
    assert_eq!(all(&reader, 10).await.len(), 6);
    reader.close(ID).await.expect("nothing to close");
    assert_eq!(std::fs::read(&path).expect("the file").len(), whole.len() + 9);
    std::fs::write(&path, &whole).expect("written");
    // The record that counts what was dropped is written twice.
    writer.append(ID, FENCE, vec![draft("x".repeat(50))]).await.expect("dropped");
    assert_eq!(all(&reader, 10).await.len(), 7);
    for _ in 0..2000 {
        writer.append(ID, FENCE, vec![draft("x")]).await.expect("counted");
    }
    writer.close(ID).await.expect("closed");
    let lines = all(&reader, 10).await;
    assert_eq!(lines, all(&writer, 10).await);
    assert!(lines[6].message.contains("2,001 lines"), "{lines:?}");
}

#[tokio::test]
async fn a_forgotten_log_leaves_nothing_behind() {
    // [SWEEP-1]
    let root = tempfile::tempdir().expect("a directory");
    let logs = FileLogs::new(root.path());
    logs.append(ID, FENCE, vec![draft("x")]).await.expect("kept");
    logs.remove(vec![ID, TaskId::from_parts(2, [2; 10])]).await.expect("removed");
    assert_eq!(std::fs::read_dir(root.path()).expect("a directory").count(), 0);
    assert!(all(&logs, 10).await.is_empty());
}

#[tokio::test]
async fn a_log_that_cannot_be_removed_keeps_no_other() {
    // [SWEEP-1]
    let root = tempfile::tempdir().expect("a directory");
    let logs = FileLogs::new(root.path());
    let odd = TaskId::from_parts(0, [0; 10]);
    std::fs::create_dir_all(root.path().join(odd.to_string()).join("log")).expect("no file");
    logs.append(ID, FENCE, vec![draft("x")]).await.expect("kept");
    logs.remove(vec![odd, ID]).await.expect_err("told");
    assert!(all(&logs, 10).await.is_empty());
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_told_without_its_path() {
    // [DUR-5]
    let root = tempfile::tempdir().expect("a directory");
    let blocked = root.path().join("file");
    std::fs::write(&blocked, "").expect("a file");
    let logs = FileLogs::new(&blocked);
    let error = logs.append(ID, FENCE, vec![draft("x")]).await.expect_err("no directory");
    assert!(error.message.starts_with("the log of the task cannot be written: "), "{error}");
    assert!(!error.message.contains("file/"), "{error}");
}

#[tokio::test]
async fn logs_that_are_closed_are_let_go_and_read_again() {
    // [LOG-1]
    let root = tempfile::tempdir().expect("a directory");
    let logs = FileLogs::new(root.path());
    logs.append(ID, FENCE, vec![draft("first")]).await.expect("kept");
    for n in 0..2 * super::N_OPEN as u64 {
        let id = TaskId::from_parts(n + 2, [3; 10]);
        logs.limit(id, 5).await;
        logs.close(id).await.expect("closed");
    }
    assert!(super::lock(&logs.open).len() <= super::N_OPEN);
    assert_eq!(logs.append(ID, FENCE, vec![draft("second")]).await.expect("kept"), 2);
    assert_eq!(all(&logs, 1).await.len(), 2);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// [LOG-1] [LOG-2] Whatever is written in whatever pieces, across restarts: numbers without a
    /// gap, the first lines that fit into the quota, and one record that counts all others.
    #[test]
    fn a_log_is_a_prefix_and_a_count(
        batches in proptest::collection::vec(proptest::collection::vec(0..40_usize, 0..20), 0..20),
        quota in 0..3000_u64,
        limit in 1..50_u32,
    ) {
        let root = tempfile::tempdir().expect("a directory");
        let folder = root.path().join("log");
        let sizes: Vec<usize> = batches.iter().flatten().copied().collect();
        for batch in &batches {
            let mut file = LogFile::new(folder.clone(), quota);
            let lines = drafts(batch.iter().map(|size| "x".repeat(*size)));
            file.append(FENCE, &lines).expect("appended");
            file.close().expect("closed");
        }
        let mut file = LogFile::new(folder, quota);
        let mut lines: Vec<Line> = Vec::new();
        loop {
            let page = file.read(lines.len() as u64, limit).expect("a page");
            lines.extend(page.items);
            if !page.has_more {
                break;
            }
        }
        let (mut text, mut seq) = (0, 0);
        let fits = |size: &&usize| {
            seq += 1;
            text += stored(seq, &"x".repeat(**size));
            text <= quota
        };
        let kept: Vec<usize> = sizes.iter().take_while(fits).copied().collect();
        let dropped = &sizes[kept.len()..];
        let seen: Vec<usize> = lines.iter().map(|line| line.message.len()).collect();
        proptest::prop_assert!(lines.iter().zip(1..).all(|(line, seq)| line.seq == seq));
        proptest::prop_assert_eq!(&seen[..kept.len()], &kept[..]);
        let told = format!("truncated: {} lines ({} bytes) ", dropped.len(), dropped.iter().sum::<usize>());
        let records = &lines[kept.len()..];
        proptest::prop_assert_eq!(records.len(), usize::from(!dropped.is_empty()));
        let told_by = |line: &Line| line.message.replace(',', "").starts_with(&told);
        proptest::prop_assert!(records.iter().all(told_by), "{:?}", records);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_log_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let root = tempfile::tempdir().expect("a directory");
    let logs = FileLogs::new(root.path().join("tasks"));
    logs.append(ID, FENCE, vec![draft("a")]).await.expect("kept");
    let folder = root.path().join("tasks").join(ID.to_string());
    let mode =
        |path: &std::path::Path| path.metadata().expect("facts").permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("log"))), (0o700, 0o600));
}
