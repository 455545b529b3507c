use super::*;

fn second() -> String {
    "ALTER TABLE tasks ADD COLUMN colour TEXT".to_owned()
}

fn broken() -> String {
    "CREATE TABLE half (x INTEGER); CREATE TABLE tasks (x INTEGER)".to_owned()
}

fn version(connection: &Connection) -> i64 {
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a version")
}

#[test]
fn an_older_file_is_copied_aside_before_it_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut connection = Connection::open(&path).expect("a file");
    migrate_by(&mut connection, &path, &[first]).expect("the first version");
    connection.execute("UPDATE store SET epoch = 7", []).expect("a value");
    migrate_by(&mut connection, &path, &[first, second]).expect("the second version");
    assert_eq!(version(&connection), 2);
    let copy = Connection::open(beside(&path, ".v1")).expect("the copy");
    let epoch: i64 =
        copy.query_row("SELECT epoch FROM store", [], |row| row.get(0)).expect("its value");
    assert_eq!((version(&copy), epoch), (1, 7));
}

#[test]
fn a_step_that_fails_leaves_nothing_behind() {
    // [DUR-1]
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut connection = Connection::open(&path).expect("a file");
    migrate_by(&mut connection, &path, &[first]).expect("the first version");
    assert!(migrate_by(&mut connection, &path, &[first, broken]).is_err());
    assert_eq!(version(&connection), 1);
    let count = "SELECT count(*) FROM sqlite_master WHERE name = 'half'";
    let n: i64 = connection.query_row(count, [], |row| row.get(0)).expect("a count");
    assert_eq!(n, 0);
}

#[test]
fn a_newer_file_and_a_strangers_file_are_refused_and_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut connection = Connection::open(&path).expect("a file");
    migrate_by(&mut connection, &path, &[first, second]).expect("the second version");
    let newer = migrate_by(&mut connection, &path, &[first]).expect_err("newer");
    assert!(!newer.is_damage(), "{newer}");

    let path = folder.path().join("other.db");
    let mut connection = Connection::open(&path).expect("a file");
    connection.execute_batch("CREATE TABLE theirs (x INTEGER)").expect("a table");
    let other = migrate_by(&mut connection, &path, &[first]).expect_err("a stranger's");
    assert!(other.to_string().contains("another program"), "{other}");
}

#[test]
fn the_check_of_states_is_the_table_of_states() {
    // [STATE-1] When this fails a state was added: old files need a step that rewrites the check.
    let words: Vec<_> = State::ALL.iter().map(|state| state.as_str()).collect();
    expect_test::expect!["waiting queued scheduled running input_required cancel_requested cancelling succeeded failed cancelled timed_out expired"]
        .assert_eq(&words.join(" "));
    assert!(first().contains("CHECK (state IN ('waiting', 'queued',"));
}
