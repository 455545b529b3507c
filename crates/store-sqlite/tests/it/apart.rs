//! What is wrong with one task costs that task and no other; what is wrong with the file is told and kept.

use std::path::Path;

use raincheck_core::content::Json;
use raincheck_core::decide::Change;
use raincheck_core::error::Kind;
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::store::{Filter, NoSink, Submit, Submitted, TaskStore as _, Update};
use raincheck_core::task::WaitReason;
use raincheck_store_sqlite::{Defect, Options, Reader, SqliteStore, check_locks};

use crate::kit::*;

fn large(n: u64) -> Submit {
    let inputs = Json::parse(format!("\"{}\"", "x".repeat(300 << 10))).expect("JSON");
    Submit { inputs, ..one(n, |_| {}) }
}

fn remove_contents(folder: &Path) {
    std::fs::remove_dir_all(folder.join("tasks.db.contents")).expect("contents");
}

/// Waits until nothing is on its way to the disk.
async fn settle(store: &SqliteStore) {
    store.barrier().committed().await.expect("a commit");
}

fn defects(folder: &Path) -> Vec<Defect> {
    let reader = Reader::open(&folder.join("tasks.db")).expect("readable").expect("a store");
    reader.defects(9).expect("a look")
}

#[test]
fn a_look_at_the_locks_of_a_folder_leaves_nothing_behind() {
    // [DUR-4]
    let folder = tempfile::tempdir().expect("a folder");
    check_locks(&folder.path().join("tasks.db")).expect("a local disk");
    check_locks(&folder.path().join("none").join("tasks.db")).expect("no folder yet");
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0);
}

/// Edits the file behind the back of the store.
fn version_of(folder: &Path) -> i64 {
    let file = rusqlite::Connection::open(folder.join("tasks.db")).expect("the file");
    file.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a number")
}

fn edit(folder: &Path, sql: &str) {
    let database = rusqlite::Connection::open(folder.join("tasks.db")).expect("a database");
    database.execute_batch(sql).expect("an edit");
}

#[tokio::test]
async fn a_missing_content_fails_its_own_task_before_it_begins() {
    // [DUR-5]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    submit(&store, large(0)).await;
    submit(&store, one(1, |_| {})).await;
    drop(store);
    remove_contents(folder.path());
    let (store, _) = open(folder.path()).await;
    assert!(claim(&store).await.is_none(), "the one whose inputs are gone");
    let next = claim(&store).await.expect("the lane goes on");
    assert_eq!(next.record.id(), id(1));
    settle(&store).await;
    let record = store.record(&Scope::local(), id(0)).await.expect("read").expect("it is there");
    assert_eq!((record.state, record.failure), (State::Failed, Some(Kind::StorageUnavailable)));
    let page = store.list(&Scope::local(), &Filter::default(), None, 9).await.expect("a list");
    assert_eq!(page.items.len(), 2);
}

#[tokio::test]
async fn a_missing_content_of_what_ran_does_not_keep_the_store_from_opening() {
    // [DUR-5]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    for submitted in [large(0), one(1, |_| {})] {
        submit(&store, submitted).await;
        let claimed = claim(&store).await.expect("work");
        let start = Update::attempt(claimed.record.id(), claimed.record.fence, Change::Start);
        update(&store, start).await;
    }
    drop(store);
    let inputs = std::fs::read_dir(folder.path().join("tasks.db.contents")).expect("contents");
    for file in inputs {
        let path = file.expect("a file").path();
        std::fs::write(&path, "").expect("spoilt");
        std::fs::remove_file(path).expect("removed");
    }
    let (store, survivors) = open(folder.path()).await;
    let [survivor] = survivors.as_slice() else { panic!("{survivors:?}") };
    assert_eq!(survivor.record.id(), id(1));
    settle(&store).await;
    let record = store.record(&Scope::local(), id(0)).await.expect("read").expect("it is there");
    assert_eq!((record.state, record.failure), (State::Failed, Some(Kind::StorageUnavailable)));
    let found = store.find(&Scope::local(), id(0)).await;
    assert!(found.is_err(), "its inputs cannot be shown: {found:?}");
    let (record, details) = task(&store, 1).await;
    assert!(record.state == State::Running && details.outcome.is_none());
}

#[tokio::test]
async fn a_row_with_words_of_a_newer_version_is_set_apart_and_kept() {
    // [DUR-5]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    for n in 0..4 {
        submit(&store, one(n, |_| {})).await;
    }
    let claimed = claim(&store).await.expect("work");
    update(&store, attempt(&claimed, done("x"))).await;
    drop(store);
    edit(
        folder.path(),
        "UPDATE tasks SET failure = 'out_of_the_future' WHERE seq = 1; \
         UPDATE tasks SET spec = '{\"limits\":7}' WHERE seq = 2",
    );
    let named: Vec<_> = defects(folder.path()).iter().map(|defect| defect.task).collect();
    assert_eq!(named, [Some(id(0)), Some(id(1))]);
    for round in 0..2 {
        let (store, _) = open(folder.path()).await;
        let page = store.list(&Scope::local(), &Filter::default(), None, 9).await.expect("a list");
        let seen: Vec<_> = page.items.iter().map(|record| record.seq).collect();
        assert_eq!(seen[..2], [[4, 3], [5, 4]][round]);
        for n in [0, 1] {
            let error = store.find(&Scope::local(), id(n)).await.expect_err("unreadable");
            assert!(
                error.hint.as_deref().is_some_and(|hint| hint.contains("version")),
                "{error:?}"
            );
        }
        task(&store, 2).await;
        let submitted = submit(&store, one(50 + round as u64, |_| {})).await;
        let Submitted::Inserted { record, .. } = submitted else { panic!("{submitted:?}") };
        assert_eq!(record.seq, 5 + round as u64);
        update(&store, cancel(50 + round as u64)).await;
        store.sweep(at(99), 9).await.expect("a sweep");
        drop(store);
    }
    edit(folder.path(), "UPDATE tasks SET failure = NULL WHERE seq = 1");
    let (store, _) = open(folder.path()).await;
    assert_eq!(task(&store, 0).await.0.state, State::Succeeded, "a version that knows it");
}

#[tokio::test]
async fn every_reason_to_wait_that_was_ever_written_is_read_and_a_text_that_is_none_is_not() {
    // [DUR-5] [QUEUE-5]
    let words = [
        "disconnected",
        "compiling",
        "reloading",
        "busy",
        "waiting_for_browser",
        "tab_gone",
        "owned_elsewhere",
        "retry_backoff",
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    let mut waits = one(0, |_| {});
    waits.waiting = Some(WaitReason::new("busy"));
    submit(&store, waits).await;
    drop(store);
    for word in words {
        edit(folder.path(), &format!("UPDATE tasks SET waiting = '{word}'"));
        let (store, _) = open(folder.path()).await;
        let waiting = task(&store, 0).await.0.waiting;
        assert_eq!(waiting.as_ref().map(WaitReason::as_str), Some(word));
    }
    edit(folder.path(), "UPDATE tasks SET waiting = 'Ignore all that!'");
    assert_eq!(defects(folder.path()).len(), 1);
    let (store, _) = open(folder.path()).await;
    store.find(&Scope::local(), id(0)).await.expect_err("it is set apart");
}

#[tokio::test]
async fn newer_tables_are_refused_by_their_number_and_not_touched() {
    // [DUR-5]
    let folder = tempfile::tempdir().expect("a folder");
    drop(open(folder.path()).await);
    let newest = version_of(folder.path());
    edit(folder.path(), "PRAGMA user_version = 99");
    let error = open_at(folder.path(), START).await.expect_err("newer");
    assert!(error.message.contains("version 99"), "{error:?}");
    assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("--state-dir")), "{error:?}");
    edit(folder.path(), &format!("PRAGMA user_version = {newest}"));
    drop(open(folder.path()).await);
}

#[tokio::test]
async fn a_damaged_file_is_set_aside_with_its_log_where_sqlite_finds_it() {
    // [DUR-5]
    let (source, folder) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("one"));
    let (store, _) = open(source.path()).await;
    for n in 0..50 {
        submit(&store, one(n, |_| {})).await;
    }
    drop(store);
    let (store, _) = open(source.path()).await;
    submit(&store, large(60)).await;
    let (path, log) = (folder.path().join("tasks.db"), folder.path().join("tasks.db-wal"));
    let mut bytes = std::fs::read(source.path().join("tasks.db")).expect("the file");
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..].fill(0xA5);
    std::fs::write(&path, &bytes).expect("the spoilt file");
    std::fs::copy(source.path().join("tasks.db-wal"), &log).expect("its log");
    std::fs::create_dir(folder.path().join("tasks.db.contents")).expect("contents");
    let written = std::fs::read(&log).expect("the log");
    assert!(!written.is_empty());
    open_at(folder.path(), at(7)).await.expect_err("it is damaged");
    let aside = folder.path().join("tasks.db.damaged-1007000");
    let beside = |suffix: &str| folder.path().join(format!("tasks.db.damaged-1007000{suffix}"));
    assert!(aside.exists() && beside(".contents").exists());
    assert_eq!(std::fs::read(beside("-wal")).expect("its log"), written);
    drop(open(folder.path()).await);
}

#[cfg(unix)]
#[tokio::test]
async fn two_names_of_one_store_have_one_owner() {
    // [DUR-4]
    let (folder, other) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("one"));
    let (store, _) = open(folder.path()).await;
    let link = other.path().join("link.db");
    std::os::unix::fs::symlink(folder.path().join("tasks.db"), &link).expect("a link");
    let further = other.path().join("further.db");
    std::os::unix::fs::symlink("link.db", &further).expect("a link");
    for name in [&link, &further] {
        let second = SqliteStore::new(Options::process(name));
        let error = second.open(START, Vec::new(), REATTACH, std::sync::Arc::new(NoSink)).await;
        let error = error.expect_err("it is taken");
        assert_eq!(error.owner, Some(std::process::id()), "{error:?}");
    }
    drop(store);
    let linked = SqliteStore::new(Options::process(&further));
    let lanes = vec![(LANE.into(), raincheck_core::lane::Config::new(1, 9))];
    linked.open(START, lanes, REATTACH, std::sync::Arc::new(NoSink)).await.expect("it opens");
    submit(&linked, large(0)).await;
    drop(linked);
    assert_eq!(std::fs::read_dir(other.path()).expect("the folder").count(), 2, "only the links");
    let (store, _) = open(folder.path()).await;
    task(&store, 0).await;
}

#[tokio::test]
async fn submits_are_accepted_in_the_order_in_which_they_came() {
    // [QUEUE-1]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    for round in 0..5 {
        let first = round * 10;
        let (one, two, three) = tokio::join!(
            submit(&store, large(first)),
            submit(&store, one(first + 1, |_| {})),
            submit(&store, large(first + 2)),
        );
        let seqs = [one, two, three].map(|submitted| match submitted {
            Submitted::Inserted { record, .. } => record.seq,
            other @ (Submitted::Existing(_)
            | Submitted::Conflict(_)
            | Submitted::Full { .. }
            | Submitted::NoLane
            | Submitted::Unknown) => panic!("{other:?}"),
        });
        assert!(seqs.is_sorted(), "{seqs:?}");
    }
}
