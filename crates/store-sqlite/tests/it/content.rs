//! Contents that are too large for a row.

use std::path::Path;
use std::time::Duration;

use raincheck_core::content::{Content, Json};
use raincheck_core::decide::Change;
use raincheck_core::store::{Found, TaskStore as _, UpdateResult};
use raincheck_core::task::Outcome;

use crate::kit::*;

const LARGE: usize = 300 << 10;

fn files(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder.join("tasks.db.contents"));
    files.map_or(0, |files| files.count())
}

fn large(n: u8) -> Outcome {
    let data = vec![n; LARGE].into();
    Outcome::Succeeded(vec![Content::Binary { mime: "image/png".into(), data }])
}

#[tokio::test]
async fn large_inputs_and_results_lie_in_files_and_come_back_as_they_were() {
    // [RESULT-1, DUR-2]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    let mut wish = one(0, |_| {});
    let inputs = Json::parse(format!("\"{}\"", "x".repeat(LARGE))).expect("JSON");
    wish.inputs = inputs.clone();
    submit(&store, wish).await;
    assert_eq!(files(folder.path()), 1);
    drop(store);
    let (store, _) = open(folder.path()).await;
    let claimed = claim(&store).await.expect("work");
    assert_eq!(claimed.inputs, inputs);
    update(&store, attempt(&claimed, Change::Finish(large(7)))).await;
    drop(store);
    let (store, _) = open(folder.path()).await;
    let (_, payload) = task(&store, 0).await;
    assert_eq!((&payload.inputs, payload.outcome.as_ref()), (&inputs, Some(&large(7))));
    assert_eq!(files(folder.path()), 2);
}

#[tokio::test]
async fn a_file_goes_with_its_task() {
    // [SWEEP-1]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    submit(&store, one(0, |task| task.limits.retention = Duration::from_secs(1))).await;
    let claimed = claim(&store).await.expect("work");
    update(&store, attempt(&claimed, Change::Finish(large(7)))).await;
    assert_eq!(files(folder.path()), 1);
    store.fire(at(2), 10).await.expect("its end").receipt.committed().await.expect("a commit");
    assert!(matches!(find(&store, 0).await, Found::Tombstone(_)));
    drop(store);
    assert_eq!(files(folder.path()), 0);
}

#[tokio::test]
async fn a_file_of_a_refused_outcome_does_not_stay() {
    // [LEASE-6]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    submit(&store, one(0, |_| {})).await;
    let claimed = claim(&store).await.expect("work");
    update(&store, attempt(&claimed, Change::Finish(large(1)))).await;
    let again = update(&store, attempt(&claimed, Change::Finish(large(2)))).await;
    assert!(matches!(again, UpdateResult::Refused(..)), "{again:?}");
    drop(store);
    assert_eq!(files(folder.path()), 1);
}

#[tokio::test]
async fn a_file_that_a_crash_left_without_a_task_is_swept() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    submit(&store, one(0, |_| {})).await;
    let claimed = claim(&store).await.expect("work");
    update(&store, attempt(&claimed, Change::Finish(large(1)))).await;
    drop(store);
    let known = claimed.record.id();
    let strays = ["tsk_0-9-9".to_owned(), "odd".to_owned(), format!("{known}-9-9")]
        .map(|name| folder.path().join("tasks.db.contents").join(name));
    for stray in &strays {
        std::fs::write(stray, "x").expect("a stray file");
    }
    let (store, _) = open(folder.path()).await;
    assert!(strays.iter().all(|stray| !stray.exists()));
    assert_eq!(task(&store, 0).await.1.outcome, Some(large(1)));
}
