//! The behaviour that every store has.

use std::sync::Arc;
use std::sync::Mutex;

use raincheck_core::store::TaskStore;
use raincheck_store_sqlite::{Options, SqliteStore};
use raincheck_testkit::conformance;
use tempfile::TempDir;

async fn check(options: fn(std::path::PathBuf) -> Options) {
    let folders: Mutex<Vec<TempDir>> = Mutex::default();
    conformance::tasks(async || {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::new(options(folder.path().join("tasks.db")));
        folders.lock().expect("no panic before").push(folder);
        Arc::new(store) as Arc<dyn TaskStore>
    })
    .await;
}

#[tokio::test]
async fn a_store_that_survives_power_loss_behaves_as_every_store() {
    // [DUR-7]
    check(Options::full).await;
}

#[tokio::test]
async fn a_store_that_survives_a_crash_behaves_as_every_store() {
    // [DUR-7]
    check(Options::process).await;
}
