//! A supervisor that waits for its program, in a folder that waits for its task.
//!
//! To make the folders and files of an attempt and to fork cost more than all the rest of the start of
//! a short program. So both are made after a start for the next one, whose task is given the folder by
//! its new name. A supervisor whose server is gone before that removes the folder; what is left where
//! that was killed too is removed when the store is opened.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use raincheck_runtime::{Ids as _, OsIds};

use super::forks::Generation;
use super::wire::Said;

/// What the name of a folder begins with that has no task yet.
const PREFIX: &str = ".next-";

/// How old a folder is in which a lock would be by now, if somebody were making it.
const MADE: Duration = Duration::from_secs(60);

/// A supervisor that was started, and the folder of its task to be.
#[derive(Debug)]
pub(crate) struct Ready {
    /// The line to it.
    pub(crate) near: UnixStream,
    pub(crate) generation: Generation,
    pub(crate) task: PathBuf,
}

/// How a supervisor is that was started before it was needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// It waits for its program, with the number of its process.
    Waits(u32),
    /// It is not there yet.
    NotYet,
    Gone,
}

impl Ready {
    /// Looks how it is. Once it waits it is not to be asked again.
    pub(super) fn look(&self) -> Readiness {
        let mut line = [0; 64];
        let read = self.near.set_nonblocking(true).and_then(|()| (&self.near).read(&mut line));
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Readiness::NotYet,
            Ok(0) | Err(_) => return Readiness::Gone,
            Ok(_) => {}
        }
        let said = line.split(|byte| *byte == b'\n').next().map(serde_json::from_slice);
        let Some(Ok(Said::Here { pid })) = said else { return Readiness::Gone };
        // It says nothing more by itself: what there is to read is its end.
        match (&self.near).read(&mut line) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Readiness::Waits(pid),
            Ok(_) | Err(_) => Readiness::Gone,
        }
    }
}

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
            made.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < MADE))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn ready() -> (Ready, UnixStream) {
        let (near, far) = UnixStream::pair().expect("a pair");
        (Ready { near, generation: Generation(0), task: PathBuf::new() }, far)
    }

    #[test]
    fn a_supervisor_that_ended_while_it_waited_is_given_no_program() {
        let (one, mut far) = ready();
        assert_eq!(one.look(), Readiness::NotYet);
        far.write_all(b"{\"here\":{\"pid\":7}}\n").expect("told");
        assert_eq!(one.look(), Readiness::Waits(7));
        let (one, mut far) = ready();
        far.write_all(b"{\"here\":{\"pid\":7}}\n").expect("told");
        drop(far);
        assert_eq!(one.look(), Readiness::Gone);
        let (one, far) = ready();
        drop(far);
        assert_eq!(one.look(), Readiness::Gone);
    }

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
        fs::create_dir(root.path().join(".next-3")).expect("made");
        clear_unused(root.path()).expect("read");
        let mut left: Vec<_> = fs::read_dir(root.path())
            .expect("read")
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        left.sort();
        assert_eq!(left, [".next-1", ".next-3", "tsk"]);
    }
}
