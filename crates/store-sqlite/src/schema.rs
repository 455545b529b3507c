//! The tables, and how a file of an older version becomes one of this version.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use raincheck_core::lifecycle::State;

use crate::fault::Fault;

/// Marks a SQLite file as one of ours: `RAIN`.
const APPLICATION: i32 = 0x5241_494E;

/// One step from a version to the next, as SQL.
type Migration = fn() -> String;

/// Every step there is; the version of a file is the number of steps it has taken.
const MIGRATIONS: &[Migration] = &[
    first,
    artifacts_by_id,
    workers,
    ended_on_disk,
    mac_key,
    two_indexes_fewer,
    stopped,
    questions,
];

fn first() -> String {
    include_str!("schema/v1.sql").replace("{states}", &states())
}

fn artifacts_by_id() -> String {
    include_str!("schema/v2.sql").to_owned()
}

fn workers() -> String {
    include_str!("schema/v3.sql").to_owned()
}

fn ended_on_disk() -> String {
    include_str!("schema/v4.sql").to_owned()
}

fn mac_key() -> String {
    include_str!("schema/v5.sql").to_owned()
}

fn two_indexes_fewer() -> String {
    include_str!("schema/v6.sql").to_owned()
}

fn stopped() -> String {
    include_str!("schema/v7.sql").to_owned()
}

fn questions() -> String {
    include_str!("schema/v8.sql").to_owned()
}

/// The words of every state, quoted for SQL [STATE-1].
fn states() -> String {
    let words: Vec<_> = State::ALL.iter().map(|state| format!("'{state}'")).collect();
    words.join(", ")
}

/// Brings a file to this version, each step in one transaction with its number inside [DUR-1].
///
/// A file of an older version is copied aside first.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Fault> {
    migrate_by(connection, path, MIGRATIONS)
}

fn migrate_by(
    connection: &mut Connection,
    path: &Path,
    migrations: &[Migration],
) -> Result<(), Fault> {
    let version = version_of(connection, migrations.len())?;
    if version > 0 && version < migrations.len() {
        copy_aside(connection, path, version)?;
    }
    for (number, migration) in migrations.iter().enumerate().skip(version) {
        let step = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
        step.execute_batch(&migration())?;
        mark(&step, number + 1)?;
        step.commit()?;
    }
    Ok(())
}

/// Refuses a file that this version cannot read as it is.
pub(crate) fn check_version(connection: &Connection) -> Result<(), Fault> {
    if version_of(connection, MIGRATIONS.len())? == MIGRATIONS.len() {
        return Ok(());
    }
    Err(Fault::Foreign(
        "it was written by an older version; start a server of this version once".into(),
    ))
}

fn mark(step: &Transaction<'_>, version: usize) -> Result<(), Fault> {
    step.pragma_update(None, "application_id", APPLICATION)?;
    step.pragma_update(None, "user_version", i64::try_from(version).unwrap_or(i64::MAX))?;
    Ok(())
}

/// How many steps a file has taken; refuses a file that is not ours or too new.
fn version_of(connection: &Connection, newest: usize) -> Result<usize, Fault> {
    let ask = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let n_tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    let (owner, version) = (ask("application_id")?, ask("user_version")?);
    if n_tables == 0 && owner == 0 && version == 0 {
        return Ok(0);
    }
    if owner != i64::from(APPLICATION) {
        return Err(Fault::Foreign("it is the database of another program".into()));
    }
    match usize::try_from(version) {
        Ok(version) if (1..=newest).contains(&version) => Ok(version),
        Ok(_) | Err(_) => {
            let why = format!(
                "it was written by a newer version: its tables are of version {version}, and this \
                 version knows {newest}"
            );
            Err(Fault::Foreign(why.into()))
        }
    }
}

/// Copies a file of an older version to `<name>.v<version>`, once.
fn copy_aside(connection: &Connection, path: &Path, version: usize) -> Result<(), Fault> {
    let copy = beside(path, &format!(".v{version}"));
    if !copy.try_exists()? {
        let unfinished = beside(path, &format!(".v{version}.part"));
        if unfinished.try_exists()? {
            std::fs::remove_file(&unfinished)?;
        }
        connection.execute("VACUUM INTO ?", [unfinished.to_string_lossy()])?;
        std::fs::rename(unfinished, copy)?;
    }
    Ok(())
}

/// Names a file beside the store's.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests;
