//! Where an attempt keeps its files.
//!
//! ```text
//! <root>/<task id>/artifacts/<artifact id>    what attempts left, for good
//! <root>/<task id>/a<attempt>.supervisor/     what its supervisor needs, where it has one
//! <root>/<task id>/a<attempt>/out/            what the program is told of, and may do away with
//!     artifacts/                              where it leaves files
//!     result.json                             where it writes its result
//! ```

use std::io;
use std::path::{Path, PathBuf};

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::TaskId;

use super::result;
use crate::artifacts::Shelf;
#[cfg(unix)]
use crate::supervisor::Place;

/// How often it is tried to remove a folder into which somebody writes meanwhile.
const REMOVALS: usize = 20;

/// The number of the first attempt of a task.
#[cfg(unix)]
const FIRST: u32 = 1;

/// The folder of one attempt. Only its owner may look into it.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    task: PathBuf,
    attempt: PathBuf,
    /// Beside it, so that a program which does away with its own folder and the one above it does not
    /// make its supervisor unreachable.
    supervisor: PathBuf,
}

impl Folder {
    /// Returns the folder, there or not.
    pub(super) fn of(root: &Path, id: TaskId, number: u32) -> Self {
        Self::below(&root.join(id.to_string()), number)
    }

    /// Returns the folder of an attempt below that of its task.
    pub(super) fn below(task: &Path, number: u32) -> Self {
        let task = task.to_owned();
        let supervisor = task.join(format!("a{number}.supervisor"));
        Self { attempt: task.join(format!("a{number}")), supervisor, task }
    }

    /// Returns the folder of the first attempt below that of its task.
    #[cfg(unix)]
    pub(super) fn first_below(task: &Path) -> Self {
        Self::below(task, FIRST)
    }

    /// Tells whether it is that of the first attempt.
    #[cfg(unix)]
    pub(super) fn is_of_first(&self) -> bool {
        self.attempt == self.task.join(format!("a{FIRST}"))
    }

    /// Takes a folder that was made for a task to come, with all that is in it.
    ///
    /// # Errors
    /// When the task has a folder already, or the system refuses.
    #[cfg(unix)]
    pub(super) fn take_over(&self, task: &Path) -> io::Result<()> {
        // A folder that is there is replaced only if it is empty.
        std::fs::rename(task, &self.task)
    }

    /// Makes the folder, empty. Blocks.
    pub(super) fn create(&self) -> io::Result<()> {
        let folders = [self.attempt.clone(), self.out(), self.artifacts()];
        // Of a task that has no folder nothing is left: most have none.
        if private().create(&self.task).is_ok() {
            return folders.iter().try_for_each(|folder| private().create(folder));
        }
        match std::fs::remove_dir_all(&self.attempt) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        remove(&self.supervisor)?;
        private().recursive(true).create(self.artifacts())
    }

    /// Tells whether the folder is there.
    #[cfg(unix)]
    pub(super) fn exists(&self) -> bool {
        self.attempt.exists() || self.supervisor.exists()
    }

    /// Returns the folder itself.
    #[cfg(unix)]
    pub(super) fn path(&self) -> &Path {
        &self.attempt
    }

    /// Returns what its supervisor has.
    #[cfg(unix)]
    pub(super) fn place(&self) -> Place {
        Place::new(&self.supervisor)
    }

    /// Returns what the program is told of.
    pub(super) fn out(&self) -> PathBuf {
        self.attempt.join("out")
    }

    /// Returns where the program writes its result.
    pub(super) fn result(&self) -> PathBuf {
        self.out().join("result.json")
    }

    /// Returns where the program leaves its artifacts.
    pub(super) fn artifacts(&self) -> PathBuf {
        self.out().join("artifacts")
    }

    /// Returns what the artifacts are taken from and moved to.
    pub(super) fn shelf(&self) -> Shelf {
        Shelf { from: self.artifacts(), to: self.task.join("artifacts") }
    }

    /// Reads the result; `None` when the program wrote none.
    pub(super) async fn read_result(&self) -> Result<Option<Json>, Error> {
        let path = self.result();
        tokio::task::spawn_blocking(move || result::read(&path))
            .await
            .unwrap_or_else(|_| Err(Error::new(Kind::Panicked, "the result could not be read")))
    }

    /// Removes what is left of the attempt; its artifacts are elsewhere by now.
    pub(super) async fn clear(self) {
        let Self { task, attempt, supervisor } = self;
        let removed = blocking(move || {
            remove(&attempt)?;
            remove(&supervisor)?;
            // Only when no attempt left an artifact.
            let _ = std::fs::remove_dir(task);
            Ok(())
        });
        if let Err(error) = removed.await {
            tracing::warn!(%error, "the folder of an attempt remains");
        }
    }
}

/// Removes a folder with all that is in it, if it is there. A supervisor may be writing its last file,
/// once; then it is tried again.
fn remove(folder: &Path) -> io::Result<()> {
    for _ in 0..REMOVALS {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => return Ok(()),
        }
    }
    Err(io::ErrorKind::DirectoryNotEmpty.into())
}

/// Does something where blocking is allowed.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

fn private() -> std::fs::DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix sets a mode"))]
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}
