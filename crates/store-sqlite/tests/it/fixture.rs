//! Files that older versions wrote.

use std::path::{Path, PathBuf};
use std::time::Duration;

use raincheck_core::decide::Change;
use raincheck_core::error::{Error, Kind};
use raincheck_core::store::{Found, TaskStore as _, Update};
use raincheck_core::task::Outcome;
use raincheck_store_sqlite::SqliteStore;

use crate::kit::*;

/// What the files of older versions were filled with, in its first epoch.
async fn fill(store: &SqliteStore) {
    submit(store, one(0, |task| task.key = Some("key".into()))).await;
    submit(store, one(1, |task| task.tags = vec!["a".into()])).await;
    submit(store, one(2, |task| task.limits.retention = Duration::from_secs(1))).await;
    for change in [done("é"), failed(), done("gone")] {
        let claimed = claim(store).await.expect("work");
        update(store, attempt(&claimed, change)).await;
    }
    store.fire(at(2), 10).await.expect("an end").receipt.committed().await.expect("a commit");
    submit(store, one(3, |task| task.priority = -7)).await;
    submit(store, one(4, |_| {})).await;
    let running = claim(store).await.expect("work");
    update(store, Update::attempt(running.record.id(), running.record.fence, Change::Start)).await;
}

fn failed() -> Change {
    Change::Finish(Outcome::Failed(Error::new(Kind::ToolFailed, "no")))
}

fn fixture(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/v{version}.db"))
}

#[tokio::test]
async fn a_file_of_an_older_version_is_read_as_if_it_were_written_today() {
    for version in [1, 2, 3, 4, 5] {
        compare(version).await;
    }
}

async fn compare(version: u32) {
    let (old, new) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("one"));
    std::fs::copy(fixture(version), old.path().join("tasks.db")).expect("a copy of the file");
    let (store, _) = open(new.path()).await;
    fill(&store).await;
    drop(store);
    let (old, mut survivors) = open(old.path()).await;
    let (new, as_new) = open(new.path()).await;
    let running = survivors.pop().expect("one attempt may still run");
    assert!(survivors.is_empty());
    assert_eq!((running.record.id(), &running.record), (id(4), &as_new[0].record));
    for n in 0..5 {
        match (find(&old, n).await, find(&new, n).await) {
            (Found::Task(record, payload), Found::Task(same, equal)) => {
                assert_eq!((record, payload), (same, equal));
            }
            (Found::Tombstone(record), Found::Tombstone(same)) => {
                assert_eq!((n, record), (2, same));
            }
            other => panic!("task {n} of version {version}: {other:?}"),
        }
    }
    // [QUEUE-7]
    let (slots, same) = (old.lanes().await.expect("lanes"), new.lanes().await.expect("lanes"));
    assert_eq!((slots[0].slots.len(), &slots[0].slots), (1, &same[0].slots));
}
