//! The folder as a path, where the user's profile is private by itself.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        if path.symlink_metadata()?.is_dir() {
            return Ok(Self(path.to_owned()));
        }
        Err(io::Error::new(io::ErrorKind::NotADirectory, "the folder of the cache is a link"))
    }

    fn plain(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        match path.symlink_metadata() {
            Ok(metadata) if !metadata.is_file() => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "not a regular file"))
            }
            _ => Ok(path),
        }
    }

    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).append(true).create_new(true).open(self.0.join(name))
    }

    pub(super) fn read(&self, name: &str) -> io::Result<File> {
        File::open(self.plain(name)?)
    }

    pub(super) fn append(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).append(true).create(true).open(self.plain(name)?)
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    pub(super) fn each_name(&self, found: &mut dyn FnMut(&str)) -> io::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            if let Some(name) = entry?.file_name().to_str() {
                found(name);
            }
        }
        Ok(())
    }
}

/// Moves the file's own cursor: one reader at a time.
pub(super) fn read_exact_at(mut file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(buffer)
}
