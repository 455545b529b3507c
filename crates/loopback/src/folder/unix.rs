//! The folder as a descriptor: names are looked up in it, never through a path again.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};

use super::MAX;

const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

impl Folder {
    /// Opens the folder, and takes the rights of others away.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        let status = rustix::fs::fstat(&folder)?;
        if status.st_uid != rustix::process::geteuid().as_raw() {
            let why = format!("the folder `{}` belongs to another user", path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        if Mode::from_raw_mode(status.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
            rustix::fs::fchmod(&folder, Mode::RWXU)?;
        }
        Ok(Self(folder))
    }

    pub(super) fn create(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&self.0, name, flags, PRIVATE_FILE)?);
        file.write_all(bytes)?;
        file.sync_all()
    }

    pub(super) fn open_or_create(&self, name: &str) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.0, name, flags, PRIVATE_FILE)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a regular file"));
        }
        Ok(file)
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    pub(super) fn link(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::linkat(&self.0, from, &self.0, to, AtFlags::empty())?)
    }

    pub(super) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.0, name, flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(MAX as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt, symlink};

    use crate::folder::Folder;

    #[test]
    fn files_and_folder_are_the_owners_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a/b/endpoint.json");
        let (folder, name) = Folder::of(&path).expect("opened");
        folder.replace(name, b"1").expect("written");
        assert_eq!(path.metadata().expect("there").mode() & 0o777, 0o600, "[SEC-4]");
        let parent = path.parent().expect("a parent");
        assert_eq!(parent.metadata().expect("there").mode() & 0o777, 0o700, "[SEC-4]");
        assert_eq!(parent.read_dir().expect("listed").count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_folder_that_others_could_read_is_closed_to_them() {
        let dir = tempfile::tempdir().expect("a folder");
        let open = dir.path().join("open");
        std::fs::create_dir(&open).expect("made");
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).expect("opened up");
        Folder::of(&open.join("x")).expect("usable");
        assert_eq!(open.metadata().expect("there").mode() & 0o777, 0o700, "[SEC-4]");
    }

    #[test]
    fn a_link_is_replaced_and_what_it_names_is_left_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "precious").expect("written");
        let path = dir.path().join("private/endpoint.json");
        let (folder, name) = Folder::of(&path).expect("opened");
        symlink(&victim, &path).expect("planted");
        assert!(folder.read(name).is_err(), "[SEC-4] a link is not followed");
        folder.replace(name, b"ours").expect("written");
        assert_eq!(std::fs::read(&victim).expect("there"), b"precious", "[SEC-4]");
        assert!(path.symlink_metadata().expect("there").is_file(), "[SEC-4]");
        assert_eq!(folder.read(name).expect("read").as_deref(), Some(&b"ours"[..]));
    }

    #[test]
    fn a_folder_that_is_a_link_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(dir.path().join("real")).expect("made");
        symlink(dir.path().join("real"), dir.path().join("link")).expect("planted");
        assert!(Folder::of(&dir.path().join("link/endpoint.json")).is_err(), "[SEC-4]");
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_does_not_hang_the_reader() {
        let dir = tempfile::tempdir().expect("a folder");
        let pipe = dir.path().join("endpoint.json");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .expect("planted");
        let (folder, name) = Folder::of(&pipe).expect("opened");
        assert!(folder.read(name).is_err());
    }
}
