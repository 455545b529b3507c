//! A folder for private files: its owner's alone, and written so that a link cannot lead elsewhere [SEC-4].

#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod unix;

use std::fs::File;
use std::io;
use std::path::Path;

use crate::error::random_name;

#[cfg(not(unix))]
use portable as system;
#[cfg(unix)]
use unix as system;

/// The most bytes of a private file: a longer one is neither written nor read in part.
const MAX: usize = 1024 * 1024;

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

    /// Opens a file for reading and writing, and makes it when it is missing.
    pub(crate) fn open_or_create(&self, name: &str) -> io::Result<File> {
        self.0.open_or_create(name)
    }

    /// Writes a file beside its place and renames it there. A reader sees the old bytes or the new ones.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        check_length(bytes)?;
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
            Ok(bytes) => check_length(&bytes).map(|()| Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a file.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }
}

fn check_length(bytes: &[u8]) -> io::Result<()> {
    if bytes.len() <= MAX {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("the file is longer than {MAX} bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_file_is_whole_up_to_its_cap_and_refused_above() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("own/file");
        let (folder, name) = Folder::of(&path).expect("usable");
        for length in [MAX - 1, MAX] {
            folder.replace(name, &vec![b'x'; length]).expect("written");
            assert_eq!(folder.read(name).expect("readable").expect("there").len(), length);
        }
        folder.replace(name, &vec![b'x'; MAX + 1]).expect_err("too long");
        std::fs::write(&path, vec![b'x'; MAX + 1]).expect("written by another");
        folder.read(name).expect_err("not read in part");
    }
}
