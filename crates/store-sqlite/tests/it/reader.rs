//! Looking into a store that somebody else owns, or nobody.

use std::path::Path;
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::store::{Cursor, Filter, Found, Heartbeat, Submit, TaskStore as _};
use raincheck_store_sqlite::{Reader, SqliteStore};

use crate::kit::*;

fn reader(folder: &Path) -> Reader {
    Reader::open(&folder.join("tasks.db")).expect("readable").expect("a store")
}

/// A store with three tasks: one ended, one queued with another before it.
async fn filled(folder: &Path) -> SqliteStore {
    let (store, _) = open(folder).await;
    submit(&store, one(0, |task| task.tags = vec!["old".into()])).await;
    let claimed = claim(&store).await.expect("leased");
    update(&store, attempt(&claimed, done("x"))).await;
    submit(&store, one(1, |task| task.scope = Scope::new("other"))).await;
    submit(&store, one(2, |_| {})).await;
    store
}

async fn check(reader: &Reader, store: &SqliteStore) {
    let scope = Scope::local();
    for n in [0, 1, 2, 9] {
        let (seen, owned) = (reader.find(&scope, id(n)).expect("read"), find(store, n).await);
        match (seen, owned) {
            (Found::Task(seen, payload), Found::Task(record, owned)) => {
                assert_eq!((&seen, &payload), (&record, &owned), "{n}");
                assert_eq!(
                    reader.position(&seen).expect("read"),
                    store.position(id(n)).await.expect("read"),
                    "{n}"
                );
            }
            (Found::Absent, Found::Absent) => assert!(n == 1 || n == 9, "{n}"),
            other => panic!("{n}: {other:?}"),
        }
    }
    let filters = [
        Filter::default(),
        Filter { states: vec![State::Queued], ..Filter::default() },
        Filter { tags_any: vec!["old".into()], ..Filter::default() },
    ];
    for filter in filters {
        for (before, limit) in [(None, 9), (None, 1), (Some(Cursor(3)), 9), (Some(Cursor(1)), 9)] {
            let seen = reader.list(&scope, &filter, before, limit).expect("read");
            let owned = store.list(&scope, &filter, before, limit).await.expect("read");
            assert_eq!((seen.items, seen.has_more), (owned.items, owned.has_more), "{filter:?}");
        }
    }
}

#[tokio::test]
async fn a_reader_sees_what_the_owner_answers_to_the_same_scope() {
    // [DUR-1] [SCOPE-2]
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(folder.path()).await;
    let reader = reader(folder.path());
    check(&reader, &store).await;
    assert_eq!(reader.last_owner(), Some(std::process::id()));
    update(&store, cancel(2)).await;
    check(&reader, &store).await;
    assert!(
        matches!(reader.find(&Scope::local(), id(2)), Ok(Found::Task(record, _)) if record.state == State::Cancelled)
    );
}

#[tokio::test]
async fn a_store_without_an_owner_is_read_and_can_still_be_owned() {
    // [DUR-4]
    let folder = tempfile::tempdir().expect("a folder");
    drop(filled(folder.path()).await);
    let reader = reader(folder.path());
    let page = reader.list(&Scope::local(), &Filter::default(), None, 9).expect("read");
    assert_eq!(page.items.len(), 2);
    let (store, _) = open(folder.path()).await;
    check(&reader, &store).await;
}

#[tokio::test]
async fn a_reader_sees_who_works_at_what_and_when_it_was_last_heard_of() {
    // [QUEUE-7] [LEASE-2]
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(folder.path()).await;
    let reader = reader(folder.path());
    assert!(reader.workers().expect("read").is_empty());
    let claimed = claim(&store).await.expect("leased");
    let seen = || async {
        store.barrier().committed().await.expect("a commit");
        let workers = reader.workers().expect("read");
        let [worker] = &workers[..] else { panic!("{workers:?}") };
        assert_eq!(Some(&worker.id), claimed.record.worker.as_ref());
        assert_eq!(worker.current_task, Some(claimed.record.id()));
        let owned = store.lanes().await.expect("lanes");
        assert!(owned.iter().any(|lane| lane.workers().contains(worker)), "{worker:?}");
        worker.last_heartbeat.expect("heard")
    };
    let first = seen().await;
    for (after, is_kept) in [(Duration::from_millis(400), false), (Duration::from_secs(10), true)] {
        let (id, fence) = (claimed.record.id(), claimed.record.fence);
        let beat = Heartbeat { id, fence, progress: None, partial: None };
        store.heartbeat(first + after, vec![beat]).await.expect("renewed");
        assert_eq!(seen().await, if is_kept { first + after } else { first });
    }
    update(&store, attempt(&claimed, done("x"))).await;
    assert!(reader.workers().expect("read").is_empty());
}

#[test]
fn what_is_no_store_is_said_to_be_none() {
    // [DUR-5]
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tasks.db");
    assert!(Reader::open(&path).expect("no failure").is_none());
    let other = rusqlite::Connection::open(&path).expect("a database");
    other.execute_batch("CREATE TABLE theirs (x INTEGER)").expect("a table");
    let error = Reader::open(&path).expect_err("not ours");
    assert!(error.to_string().contains("another program"), "{error}");
}

#[tokio::test]
async fn tasks_without_their_contents_are_named() {
    // [DUR-5]
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tasks.db");
    assert_eq!(Reader::missing_contents_of(&path, 9), Some(Vec::new()));
    let (store, _) = open(folder.path()).await;
    let large = Json::parse(format!("\"{}\"", "x".repeat(300 << 10))).expect("JSON");
    for n in 0..3 {
        let inputs = if n == 1 { Json::empty_object() } else { large.clone() };
        submit(&store, Submit { inputs, ..one(n, |_| {}) }).await;
    }
    store.barrier().committed().await.expect("a commit");
    assert_eq!(Reader::missing_contents_of(&path, 9), Some(Vec::new()));
    std::fs::remove_dir_all(folder.path().join("tasks.db.contents")).expect("contents");
    assert_eq!(Reader::missing_contents_of(&path, 9), Some(vec![id(0), id(2)]));
    assert_eq!(Reader::missing_contents_of(&path, 1), Some(vec![id(0)]));
}
