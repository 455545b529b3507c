//! One process owns a store [DUR-4].

use raincheck_core::store::TaskStore as _;

use crate::kit::*;

#[tokio::test]
async fn a_second_owner_is_refused_and_told_who_the_first_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, _) = open(folder.path()).await;
    let error = open_at(folder.path(), START).await.expect_err("it is taken").to_string();
    assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
    assert!(error.contains(&START.to_string()), "{error}");
    let lock = std::fs::read_to_string(folder.path().join("tasks.db.lock")).expect("the lock");
    assert!(lock.contains("\"instance\":1"), "{lock}");
    submit(&first, one(0, |_| {})).await;
    drop(first);
    let (second, _) = open(folder.path()).await;
    task(&second, 0).await;
}

#[tokio::test]
async fn a_store_is_opened_once_and_used_only_while_it_is_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = raincheck_store_sqlite::Options::full(folder.path().join("tasks.db"));
    let closed = raincheck_store_sqlite::SqliteStore::new(options);
    let error = closed.fire(START, 1).await.expect_err("not open");
    assert!(error.to_string().contains("not open"), "{error}");
    let (store, _) = open(folder.path()).await;
    let sink = std::sync::Arc::new(raincheck_core::store::NoSink);
    let error = store.open(START, Vec::new(), REATTACH, sink).await.expect_err("twice");
    assert!(error.to_string().contains("open already"), "{error}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_a_killed_owner_was_just_starting_is_waited_for() {
    // [DUR-3] [DUR-4]: between its fork and its program a child holds all that its parent held.
    let folder = tempfile::tempdir().expect("a folder");
    drop(open(folder.path()).await);
    let mut dead = std::process::Command::new("true").spawn().expect("a process");
    dead.wait().expect("its end");
    let path = folder.path().join("tasks.db.lock");
    std::fs::write(
        &path,
        format!(r#"{{"pid":{},"started_at":"2026-01-01T00:00:00Z"}}"#, dead.id()),
    )
    .expect("a lock file");
    let held = std::fs::File::open(&path).expect("the lock file");
    held.lock().expect("the lock");
    let mut opening = std::pin::pin!(open_at(folder.path(), START));
    let early = tokio::time::timeout(std::time::Duration::from_millis(300), &mut opening).await;
    assert!(early.is_err(), "{early:?}");
    drop(held);
    opening.await.expect("it opens");
}
