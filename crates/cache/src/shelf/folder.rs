//! The folder of the cache: its owner's alone, and no name in it is followed elsewhere [SEC-4].

#[cfg(test)]
pub(super) mod fuse;
#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod unix;

use std::fs::File;
use std::io;
use std::path::Path;

#[cfg(not(unix))]
use portable as system;
#[cfg(unix)]
use unix as system;

/// An open folder. What changes files is a method of it, so that tests can stop a process at any of them.
#[derive(Debug)]
pub(super) struct Folder(system::Folder);

impl Folder {
    /// Opens a folder, creates it when it is missing, and takes the rights of others away.
    ///
    /// # Errors
    /// When it is a link, another user's, or cannot be written.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        system::Folder::open(path).map(Self)
    }

    /// Makes a file that is not there yet, and writes it in parts.
    ///
    /// # Errors
    /// When it is there, or cannot be written; what was written of it is removed then.
    pub(super) fn create(&self, name: &str, parts: &[&[u8]]) -> io::Result<File> {
        step()?;
        let file = self.0.create(name)?;
        for part in parts {
            if let Err(error) = write(&file, part) {
                // What failed is reported; a leftover is swept at the next opening.
                self.remove(name).ok();
                return Err(error);
            }
        }
        Ok(file)
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// When it is missing, a link, or no regular file.
    pub(super) fn read(&self, name: &str) -> io::Result<File> {
        regular(self.0.read(name)?)
    }

    /// Opens a file for reading and for writing at its end, and makes it when it is missing.
    ///
    /// # Errors
    /// When it is a link or no regular file, or cannot be made.
    pub(super) fn append(&self, name: &str) -> io::Result<File> {
        step()?;
        regular(self.0.append(name)?)
    }

    /// Gives a file another name; what had that name is gone.
    ///
    /// # Errors
    /// When it cannot.
    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        step()?;
        self.0.rename(from, to)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// When it cannot.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        step()?;
        self.0.remove(name)
    }

    /// Calls a function with the name of each file.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub(super) fn each_name(&self, mut found: impl FnMut(&str)) -> io::Result<()> {
        self.0.each_name(&mut found)
    }
}

/// Writes at the end of a file. After an error a part may be there.
///
/// # Errors
/// When not all of it could be written.
pub(super) fn write(file: &File, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;

    #[cfg(test)]
    let bytes = match fuse::spend(bytes.len()) {
        Ok(()) => bytes,
        Err(n) => {
            let mut file = file;
            file.write_all(&bytes[..n])?;
            return Err(io::Error::other("the process is gone"));
        }
    };
    let mut file = file;
    file.write_all(bytes)
}

/// Cuts a file back to a length.
///
/// # Errors
/// When it cannot.
pub(super) fn truncate(file: &File, len: u64) -> io::Result<()> {
    step()?;
    file.set_len(len)
}

/// Fills a buffer from a place in a file.
///
/// # Errors
/// When the file cannot be read, or ends before.
pub(super) fn read_exact_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    system::read_exact_at(file, buffer, at)
}

#[cfg(test)]
fn step() -> io::Result<()> {
    fuse::spend(0).map_err(|_| io::Error::other("the process is gone"))
}

#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "tests stop a process here")]
fn step() -> io::Result<()> {
    Ok(())
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "not a regular file"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn folder_and_files_are_the_owners_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a/cache");
        std::fs::create_dir_all(&path).expect("made");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).expect("opened up");
        let folder = Folder::open(&path).expect("opened");
        folder.create("x", &[b"1", b"2"]).expect("written");
        write(&folder.append("y").expect("made"), b"3").expect("written");
        let mode = |path: &Path| path.metadata().expect("there").mode() & 0o777;
        assert_eq!(mode(&path), 0o700, "[SEC-4]");
        assert_eq!(mode(&path.join("x")), 0o600, "[SEC-4]");
        assert_eq!(mode(&path.join("y")), 0o600, "[SEC-4]");
        assert_eq!(std::fs::read(path.join("x")).expect("there"), b"12");
    }

    #[test]
    fn no_link_is_followed() {
        let dir = tempfile::tempdir().expect("a folder");
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "precious").expect("written");
        let path = dir.path().join("cache");
        let folder = Folder::open(&path).expect("opened");
        symlink(&victim, path.join("link")).expect("planted");
        folder.read("link").expect_err("[SEC-4] not followed");
        folder.append("link").expect_err("[SEC-4] not followed");
        folder.create("link", &[b"x"]).expect_err("[SEC-4] not followed");
        folder.create("new", &[b"ours"]).expect("written");
        folder.rename("new", "link").expect("replaced");
        assert_eq!(std::fs::read(&victim).expect("there"), b"precious", "[SEC-4]");
        symlink(&path, dir.path().join("to-cache")).expect("planted");
        Folder::open(&dir.path().join("to-cache")).expect_err("[SEC-4] a link is no folder");
    }

    #[test]
    fn a_pipe_or_a_folder_in_the_place_of_a_file_is_refused_at_once() {
        let dir = tempfile::tempdir().expect("a folder");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0)
            .expect("planted");
        std::fs::create_dir(dir.path().join("folder")).expect("planted");
        let folder = Folder::open(dir.path()).expect("opened");
        for name in ["pipe", "folder"] {
            folder.read(name).expect_err("no regular file");
            folder.append(name).expect_err("no regular file");
        }
    }
}
