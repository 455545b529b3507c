//! Opening a file below a folder, and nowhere else [SEC-9].

use std::fs::File;
use std::io;
use std::path::{Component, Path};

/// Opens a regular file below `root` for reading. No component of `path` may be a link, and none may
/// lead out; `root` itself is trusted. Works with blocking calls.
///
/// # Errors
/// When there is no such file, or it is reached in another way.
pub fn open_beneath(root: &Path, path: &Path) -> io::Result<File> {
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
    let Some(file) = names.pop() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let file = walk(root, &names, file)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

#[cfg(unix)]
fn walk(root: &Path, folders: &[&std::ffi::OsStr], file: &std::ffi::OsStr) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open, openat};

    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = open(root, folder, Mode::empty())?;
    for name in folders {
        at = openat(&at, *name, folder | OFlags::NOFOLLOW, Mode::empty())?;
    }
    // NONBLOCK: a pipe without a writer would wait for one.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(openat(&at, file, flags, Mode::empty())?.into())
}

#[cfg(not(unix))]
fn walk(root: &Path, folders: &[&std::ffi::OsStr], file: &std::ffi::OsStr) -> io::Result<File> {
    let mut at = root.to_owned();
    for name in folders.iter().chain([&file]) {
        at.push(name);
        if at.symlink_metadata()?.is_symlink() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
    }
    File::open(at)
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
