//! Opening a file below a folder, and nowhere else [SEC-9].

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Component, Path};

/// Opens a regular file below `root` for reading. No component of `path` may be a link, and none may
/// lead out; `root` itself is trusted. Works with blocking calls.
///
/// # Errors
/// When there is no such file, or it is reached in another way.
pub fn open_beneath(root: &Path, path: &Path) -> io::Result<File> {
    let (folders, file) = names(path)?;
    let file = walk::open(root, &folders, file)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Makes a new regular file below `root`, and the folders on the way to it. No component of `path` may be a
/// link, and none may lead out; `root` itself is trusted. Works with blocking calls.
///
/// # Errors
/// `AlreadyExists` when something of this name is there, also a link; any other when there is no way to it.
pub fn create_beneath(root: &Path, path: &Path) -> io::Result<File> {
    let (folders, file) = names(path)?;
    walk::create(root, &folders, file)
}

/// Gives a file below `root` another name in its folder, unless something has that name. It is reached as by
/// [`create_beneath`]. Works with blocking calls.
///
/// # Errors
/// `AlreadyExists` when something of the new name is there; any other when there is no such file.
pub fn name_beneath(root: &Path, path: &Path, name: &OsStr) -> io::Result<()> {
    let (folders, file) = names(path)?;
    walk::name(root, &folders, file, name)
}

/// Removes a file below `root`. It is reached as by [`create_beneath`]. Works with blocking calls.
///
/// # Errors
/// When there is no such file.
pub fn remove_beneath(root: &Path, path: &Path) -> io::Result<()> {
    let (folders, file) = names(path)?;
    walk::remove(root, &folders, file)
}

/// Takes a path apart: the folders and the file.
fn names(path: &Path) -> io::Result<(Vec<&OsStr>, &OsStr)> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::ParentDir => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        }
    }
    let file = names.pop().ok_or(io::ErrorKind::InvalidInput)?;
    Ok((names, file))
}

#[cfg(unix)]
mod walk {
    use std::ffi::OsStr;
    use std::fs::File;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::{
        AtFlags, Mode, OFlags, linkat, mkdirat, open as open_at_root, openat, renameat, statat,
        unlinkat,
    };
    use rustix::io::Errno;

    const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    pub(super) fn open(root: &Path, folders: &[&OsStr], file: &OsStr) -> io::Result<File> {
        let at = folder(root, folders)?;
        // NONBLOCK: a pipe without a writer would wait for one.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat(&at, file, flags, Mode::empty())?.into())
    }

    pub(super) fn create(root: &Path, folders: &[&OsStr], file: &OsStr) -> io::Result<File> {
        let mut at = open_at_root(root, FOLDER, Mode::empty())?;
        for name in folders {
            match mkdirat(&at, *name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            at = enter(&at, name)?;
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        Ok(openat(&at, file, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o666))?.into())
    }

    pub(super) fn name(
        root: &Path,
        folders: &[&OsStr],
        file: &OsStr,
        name: &OsStr,
    ) -> io::Result<()> {
        let at = folder(root, folders)?;
        match linkat(&at, file, &at, name, AtFlags::empty()) {
            Ok(()) => {
                // It has its name; that it has another one too loses nothing.
                let _ = unlinkat(&at, file, AtFlags::empty());
                Ok(())
            }
            // A file system without links.
            Err(Errno::PERM | Errno::NOTSUP | Errno::NOSYS) => {
                match statat(&at, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => Ok(renameat(&at, file, &at, name)?),
                    Err(error) => Err(error.into()),
                    Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn remove(root: &Path, folders: &[&OsStr], file: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&folder(root, folders)?, file, AtFlags::empty())?)
    }

    fn folder(root: &Path, folders: &[&OsStr]) -> io::Result<OwnedFd> {
        let mut at = open_at_root(root, FOLDER, Mode::empty())?;
        for name in folders {
            at = enter(&at, name)?;
        }
        Ok(at)
    }

    fn enter(at: &OwnedFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
        openat(at, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())
    }
}

#[cfg(not(unix))]
mod walk {
    use std::ffi::OsStr;
    use std::fs::File;
    use std::io;
    use std::path::{Path, PathBuf};

    pub(super) fn open(root: &Path, folders: &[&OsStr], file: &OsStr) -> io::Result<File> {
        let mut at = root.to_owned();
        for name in folders.iter().chain([&file]) {
            step(&mut at, name)?;
        }
        File::open(at)
    }

    pub(super) fn create(root: &Path, folders: &[&OsStr], file: &OsStr) -> io::Result<File> {
        let mut at = root.to_owned();
        for name in folders {
            match std::fs::create_dir(at.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => step(&mut at, name)?,
            }
        }
        File::create_new(at.join(file))
    }

    pub(super) fn name(
        root: &Path,
        folders: &[&OsStr],
        file: &OsStr,
        name: &OsStr,
    ) -> io::Result<()> {
        let at = folder(root, folders)?;
        match std::fs::hard_link(at.join(file), at.join(name)) {
            Ok(()) => {
                let _ = std::fs::remove_file(at.join(file));
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // A file system without links.
            Err(_) if at.join(name).symlink_metadata().is_err() => {
                std::fs::rename(at.join(file), at.join(name))
            }
            Err(_) => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    pub(super) fn remove(root: &Path, folders: &[&OsStr], file: &OsStr) -> io::Result<()> {
        std::fs::remove_file(folder(root, folders)?.join(file))
    }

    fn folder(root: &Path, folders: &[&OsStr]) -> io::Result<PathBuf> {
        let mut at = root.to_owned();
        for name in folders {
            step(&mut at, name)?;
        }
        Ok(at)
    }

    fn step(at: &mut PathBuf, name: &OsStr) -> io::Result<()> {
        at.push(name);
        let is_link = at.symlink_metadata()?.is_symlink();
        if is_link { Err(io::ErrorKind::InvalidInput.into()) } else { Ok(()) }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_regular_files_below_the_folder_are_opened() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("sub")).expect("made");
        std::fs::write(root.join("sub/a"), "inside").expect("written");
        std::fs::write(dir.path().join("secret"), "outside").expect("written");
        symlink(dir.path().join("secret"), root.join("link")).expect("planted");
        symlink(dir.path(), root.join("up")).expect("planted");
        symlink("sub", root.join("same")).expect("planted");

        let mut text = String::new();
        open_beneath(&root, Path::new("sub/a"))
            .expect("opened")
            .read_to_string(&mut text)
            .expect("read");
        assert_eq!(text, "inside");
        let wandering = [
            "link",
            "up/secret",
            "same/a",
            "../secret",
            "sub/../../secret",
            "/etc/hostname",
            "sub",
            "",
            "no",
        ];
        for path in wandering {
            assert!(open_beneath(&root, Path::new(path)).is_err(), "[SEC-9] {path}");
        }
    }
}
