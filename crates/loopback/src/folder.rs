//! A folder for private files: its owner's alone, and written so that a link cannot lead elsewhere [SEC-4].

#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod unix;

use std::io;
use std::path::Path;

use crate::error::random_name;

#[cfg(not(unix))]
use portable as system;
#[cfg(unix)]
use unix as system;

/// The most bytes of a private file.
const MAX: u64 = 64 * 1024;

/// An open folder that only its owner can look into.
#[derive(Debug)]
pub(crate) struct Folder(system::Folder);

impl Folder {
    /// Opens the folder of a file, creating it when it is missing, and returns the file's name in it.
    pub(crate) fn of(path: &Path) -> io::Result<(Self, &str)> {
        let name = path.file_name().and_then(|name| name.to_str());
        let (Some(folder), Some(name)) = (path.parent(), name) else {
            return Err(io::ErrorKind::InvalidFilename.into());
        };
        Ok((Self(system::Folder::open(folder)?), name))
    }

    /// Writes a file beside its place and renames it there. A reader sees the old bytes or the new ones.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let random = random_name().map_err(io::Error::other)?;
        let beside = format!(".{name}.{random}");
        let done = self.0.create(&beside, bytes).and_then(|()| self.0.rename(&beside, name));
        if done.is_err() {
            // What failed is reported; a leftover does no harm.
            self.0.remove(&beside).ok();
        }
        done
    }

    /// Writes a file that is not there yet, whole; `false` when somebody else's is there.
    pub(crate) fn publish(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let random = random_name().map_err(io::Error::other)?;
        let beside = format!(".{name}.{random}");
        let done = self.0.create(&beside, bytes).and_then(|()| self.0.link(&beside, name));
        // What failed is reported; a leftover does no harm.
        self.0.remove(&beside).ok();
        match done {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// Reads a regular file; `None` when there is nothing.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match self.0.read(name) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a file.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }
}
