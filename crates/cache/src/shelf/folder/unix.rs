//! The folder as a descriptor: names are looked up in it, never through a path again.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Mode, OFlags};

const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);
/// A pipe is opened without waiting for its other end, and refused after.
const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

impl Folder {
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

    fn open_at(&self, name: &str, flags: OFlags) -> io::Result<File> {
        Ok(File::from(rustix::fs::openat(&self.0, name, flags | PLAIN, PRIVATE_FILE)?))
    }

    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        self.open_at(name, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL)
    }

    pub(super) fn read(&self, name: &str) -> io::Result<File> {
        self.open_at(name, OFlags::RDONLY)
    }

    pub(super) fn append(&self, name: &str) -> io::Result<File> {
        self.open_at(name, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    pub(super) fn each_name(&self, found: &mut dyn FnMut(&str)) -> io::Result<()> {
        for entry in Dir::read_from(&self.0)? {
            if let Ok(name) = entry?.file_name().to_str() {
                found(name);
            }
        }
        Ok(())
    }
}

pub(super) fn read_exact_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(buffer, at)
}
