//! The Unity package: its files, and the projects that they are written into.
//!
//! The files are carried in the library. [`install`] writes them as an embedded package below `Packages`,
//! where Unity needs no entry in its manifest; what somebody changed there is not written over.

mod exclude;
mod kept;
mod project;
mod write;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Deserialize;

use self::kept::Kept;

pub use self::project::{Project, UnityVersion};

/// The files of the package by their names, with `/` between folders.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/package.rs"));

const MANIFEST: &str = "package.json";

/// The name and the version of a package.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Identity {
    /// Its name, which is that of its folder, too.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// Returns the name and the version of the package that this library carries.
#[must_use]
pub fn identity() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let file = FILES.iter().find(|(name, _)| *name == MANIFEST);
        let read = file.and_then(|(_, bytes)| serde_json::from_slice(bytes).ok());
        read.unwrap_or_else(|| Identity { name: "package".into(), version: "0".into() })
    })
}

/// Why a project was not changed.
#[derive(Debug)]
pub enum Refusal {
    /// The path is no Unity project, and in none.
    NoProject(PathBuf),
    /// The project's version of Unity is older than the package takes.
    Version(String),
    /// The project does not say which version of Unity it is of.
    Unreadable,
    /// Something else is where the package goes.
    Occupied(PathBuf),
    /// These files of the package were changed in the project.
    Edited(Vec<String>),
    /// The package is not in the project.
    Absent(PathBuf),
    /// The project is in no git repository.
    NoRepository(PathBuf),
    /// The system does not let us.
    Failed(String),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// How the package in a project compares with the one that this library carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copy {
    /// None is there.
    None,
    /// The same, file by file.
    Current,
    /// The same with files that somebody changed, or another one, of this version.
    Other {
        /// Its version.
        version: String,
        /// The files that were changed.
        edited: Vec<String>,
    },
    /// Something else is where the package goes.
    Occupied,
}

/// What was done to a project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// How many files were written.
    pub written: usize,
    /// How many files were removed.
    pub removed: usize,
}

/// Returns the folder of the package in a project.
#[must_use]
pub fn folder(project: &Project) -> PathBuf {
    project.root().join("Packages").join(&identity().name)
}

/// Compares the package in a project with this library's own. Works with blocking calls.
#[must_use]
pub fn compare(project: &Project) -> Copy {
    let folder = folder(project);
    let Ok(found) = Kept::find(&folder) else { return Copy::Occupied };
    let Some(kept) = found else { return Copy::None };
    let edited = kept.edited(&folder);
    if edited.is_empty() && FILES.iter().all(|(name, _)| kept::is_current(&folder, name)) {
        return Copy::Current;
    }
    let version = kept.version().to_owned();
    Copy::Other { version, edited }
}

/// Writes the package into a project, over an older one of ours: only the files that differ, since each
/// makes Unity compile. With `force` also over files that were changed there. Works with blocking calls.
///
/// # Errors
/// When something else is in the place, files were changed, or the system does not let us.
pub fn install(project: &Project, force: Force) -> Result<Done, Refusal> {
    write::install(project, &folder(project), force)
}

/// Removes what [`install`] wrote; what else is in the folder stays. Works with blocking calls.
///
/// # Errors
/// When no package of ours is there, files of it were changed, or the system does not let us.
pub fn uninstall(project: &Project, force: Force) -> Result<Done, Refusal> {
    write::uninstall(&folder(project), force)
}

/// What becomes of files that were changed in a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// They stay, and nothing is written.
    No,
    /// They are written over, or removed.
    Yes,
}

/// Has git overlook the package in this clone of the repository alone: by a line in `.git/info/exclude`.
/// Returns that file. Works with blocking calls.
///
/// # Errors
/// When the project is in no repository, or the file cannot be written.
pub fn exclude_from_git(project: &Project) -> Result<PathBuf, Refusal> {
    exclude::add(&folder(project))
}

/// Takes the line of [`exclude_from_git`] back, where it is there. Works with blocking calls.
///
/// # Errors
/// When the file cannot be written.
pub fn include_in_git(project: &Project) -> Result<(), Refusal> {
    exclude::remove(&folder(project))
}

/// Tells whether a name is one that a file of ours may have below the folder of the package.
fn is_sound(name: &str) -> bool {
    let parts = || name.split('/');
    let odd =
        |part: &str| part.is_empty() || part == "." || part == ".." || part.contains(['\\', ':']);
    !parts().any(odd)
}

/// Returns a path below a folder for a name with `/` between its parts.
fn below(folder: &Path, name: &str) -> PathBuf {
    name.split('/').fold(folder.to_owned(), |path, part| path.join(part))
}

#[cfg(test)]
mod tests;
