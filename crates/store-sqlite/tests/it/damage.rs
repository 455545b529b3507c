//! Files that cannot be used: an explicit failure, nothing lost, no panic [DUR-5].

use std::path::{Path, PathBuf};

use crate::kit::*;

fn aside(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.to_string_lossy().contains(".damaged-")).collect()
}

async fn filled(folder: &Path) -> PathBuf {
    let (store, _) = open(folder).await;
    for n in 0..50 {
        submit(&store, one(n, |_| {})).await;
    }
    drop(store);
    folder.join("tasks.db")
}

async fn check(spoil: impl FnOnce(&mut Vec<u8>)) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = filled(folder.path()).await;
    let mut bytes = std::fs::read(&path).expect("the file");
    spoil(&mut bytes);
    std::fs::write(&path, &bytes).expect("the spoilt file");
    let error = open_at(folder.path(), at(7)).await.expect_err("it is damaged").to_string();
    assert!(error.contains("kept aside as `tasks.db.damaged-1007000`"), "{error}");
    assert!(!error.contains('/'), "no paths: {error}");
    let kept = aside(folder.path());
    assert!(kept.iter().any(|path| std::fs::read(path).expect("a file") == bytes), "{kept:?}");
    let (store, survivors) = open(folder.path()).await;
    assert!(survivors.is_empty());
    submit(&store, one(0, |_| {})).await;
}

#[tokio::test]
async fn a_file_with_spoilt_pages_is_kept_aside() {
    check(|bytes| bytes[4096..].fill(0xA5)).await;
}

#[tokio::test]
async fn a_file_without_its_beginning_is_kept_aside() {
    check(|bytes| bytes[..100].fill(0)).await;
}

#[tokio::test]
async fn a_file_that_was_cut_off_is_kept_aside() {
    check(|bytes| bytes.truncate(bytes.len() / 2 / 4096 * 4096)).await;
}

#[tokio::test]
async fn the_database_of_another_program_is_refused_and_not_touched() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tasks.db");
    let other = rusqlite::Connection::open(&path).expect("a database");
    other.execute_batch("CREATE TABLE theirs (x INTEGER)").expect("a table");
    drop(other);
    let error = open_at(folder.path(), START).await.expect_err("not ours").to_string();
    assert!(error.contains("another program"), "{error}");
    assert!(path.exists() && aside(folder.path()).is_empty());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_folder_that_cannot_be_written_is_an_explicit_failure() {
    let error = open_at(Path::new("/proc/self"), START).await.expect_err("it is read-only");
    assert!(!error.to_string().contains("proc"), "no paths: {error}");
}
