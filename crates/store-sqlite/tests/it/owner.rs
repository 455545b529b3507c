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
    let error = store.open(START, Vec::new(), ADOPT, sink).await.expect_err("twice");
    assert!(error.to_string().contains("open already"), "{error}");
}
