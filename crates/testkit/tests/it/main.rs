//! The bundled stores keep the behaviour that every store has.

use std::sync::Arc;

use raincheck_core::log::MemoryLogs;
use raincheck_core::store::MemoryStore;
use raincheck_runtime::FileLogs;
use raincheck_testkit::conformance;

#[tokio::test]
async fn the_memory_store_is_a_store() {
    // [QUEUE-1] [QUEUE-2] [QUEUE-3] [QUEUE-5] [QUEUE-6] [QUEUE-7] [IDEM-1] [SCOPE-2] [SWEEP-1]
    conformance::tasks(async || Arc::new(MemoryStore::default()) as _).await;
}

#[tokio::test]
async fn the_memory_logs_are_a_log_store() {
    // [LOG-1] [LOG-2]
    conformance::logs(async || Arc::new(MemoryLogs::new()) as _).await;
}

#[tokio::test]
async fn the_file_logs_are_a_log_store() {
    // [LOG-1] [LOG-2]
    let folder = tempfile::tempdir().expect("a folder");
    let n = std::sync::atomic::AtomicU32::new(0);
    conformance::logs(async || {
        let n = n.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Arc::new(FileLogs::new(folder.path().join(n.to_string()))) as _
    })
    .await;
}
