//! Folders that are made for tasks to come: their names, and removing those whose task never came.
//!
//! A supervisor whose server is gone before a task was given its folder removes it; what is left where
//! that was killed too is removed when the store is opened.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use raincheck_runtime::{Ids as _, OsIds};

/// What the name of a folder begins with that has no task yet.
const PREFIX: &str = ".next-";

/// How old a folder is in which a lock would be by now, if somebody were making it.
const MADE: Duration = Duration::from_secs(60);

/// Names a folder below that of all tasks that no task and no other server has.
pub(crate) fn folder_ahead(root: &Path) -> PathBuf {
    root.join(format!("{PREFIX}{}", OsIds.artifact()))
}

/// Removes the folder that this supervisor works in, with the one above it, if no task has it.
pub(super) fn clear_own() {
    if let Ok(own) = std::env::current_dir()
        && let Some(task) = own.parent().filter(|task| is_ahead(task))
    {
        let _ = fs::remove_dir_all(task);
    }
}

/// Removes the folders that were made for tasks which never came, unless a supervisor waits in them.
///
/// # Errors
/// When the folder of all tasks cannot be read.
pub(crate) fn clear_unused(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if is_ahead(&path)
            && !is_in_use(&path)
            && let Err(error) = fs::remove_dir_all(&path)
        {
            tracing::warn!(%error, "a folder that was made for a task to come remains");
        }
    }
    Ok(())
}

fn is_ahead(task: &Path) -> bool {
    task.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
}

fn is_in_use(task: &Path) -> bool {
    match File::open(task.join("a1.supervisor/lock")) {
        Ok(lock) => lock.try_lock().is_err(),
        Err(_) => {
            let made = fs::symlink_metadata(task).and_then(|facts| facts.modified());
            // One of the future was made before a clock was put back.
            made.is_ok_and(|at| at.elapsed().map_or(true, |age| age < MADE))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    // [SWEEP-1]
    #[test]
    fn a_folder_for_a_task_that_never_came_is_removed_unless_a_supervisor_waits_in_it() {
        let root = tempfile::tempdir().expect("a folder");
        let make = |name: &str| {
            let folder = root.path().join(name).join("a1.supervisor");
            fs::create_dir_all(&folder).expect("made");
            File::create(folder.join("lock")).expect("a lock")
        };
        let held = make(".next-1");
        held.lock().expect("locked");
        drop(make(".next-2"));
        drop(make("tsk"));
        // Somebody may be making it.
        let of_age = |name: &str, change: fn(SystemTime) -> SystemTime| {
            fs::create_dir(root.path().join(name)).expect("made");
            let folder = File::open(root.path().join(name)).expect("a folder");
            let now = folder.metadata().and_then(|facts| facts.modified()).expect("an instant");
            folder.set_modified(change(now)).expect("its own");
        };
        of_age(".next-3", |now| now);
        of_age(".next-4", |now| now + 2 * MADE);
        of_age(".next-5", |now| now - 2 * MADE);
        clear_unused(root.path()).expect("read");
        let mut left: Vec<_> = fs::read_dir(root.path())
            .expect("read")
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        left.sort();
        assert_eq!(left, [".next-1", ".next-3", ".next-4", "tsk"]);
    }
}
