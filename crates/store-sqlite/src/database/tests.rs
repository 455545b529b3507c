use super::*;
use crate::housekeeper;

const NOW: Timestamp = Timestamp::from_millis(7);

/// A file of tables with something in them, and a connection to it.
fn filled(folder: &Path) -> (PathBuf, Connection) {
    let path = folder.join("tasks.db");
    let connection = open(&path, Durability::Process, NOW).expect("a store");
    let fill = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 5000) \
                INSERT INTO task_events (seq, n, at, attempt, fence, to_state, cause) \
                SELECT n, 1, 0, 0, 0, 'queued', 'received' FROM numbers";
    connection.execute_batch(fill).expect("rows");
    housekeeper::write_back_all(&connection).expect("the log is written back");
    (path, connection)
}

#[test]
fn damage_that_is_found_in_use_keeps_the_file_aside_at_the_next_opening() {
    // [DUR-5]
    let folder = tempfile::tempdir().expect("a folder");
    let (path, connection) = filled(folder.path());
    drop(connection);
    let mut bytes = fs::read(&path).expect("the file");
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xA5);
    fs::write(&path, bytes).expect("the spoilt file");

    let connection = reader(&path).expect("it opens");
    check_later(&path, &connection);
    assert!(suspicion(&path).exists());
    drop(connection);
    let error = open(&path, Durability::Process, NOW).expect_err("it is damaged").to_string();
    assert!(error.contains("kept aside"), "{error}");
    assert!(!suspicion(&path).exists() && !path.exists());
}

#[test]
fn a_suspicion_that_proves_wrong_is_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, connection) = filled(folder.path());
    check_later(&path, &connection);
    assert!(!suspicion(&path).exists(), "a sound file");
    drop(connection);
    suspect(&path, &Fault::Broken("nothing, really"));
    assert!(suspicion(&path).exists());
    drop(open(&path, Durability::Process, NOW).expect("a sound file"));
    assert!(!suspicion(&path).exists());
}

#[test]
fn only_a_large_file_without_suspicion_is_checked_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tasks.db");
    assert!(!is_checked_later(&path), "there is none yet");
    let file = files::open_private(&path).expect("a file");
    file.set_len(CHECKED_AT_ONCE).expect("room");
    assert!(!is_checked_later(&path));
    file.set_len(CHECKED_AT_ONCE + 1).expect("room");
    assert!(is_checked_later(&path));
    suspect(&path, &Fault::Broken("something"));
    assert!(!is_checked_later(&path));
}
