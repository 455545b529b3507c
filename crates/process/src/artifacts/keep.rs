//! Walking a folder that a stranger filled, by descriptors only.
//!
//! Every step opens one name below an open folder and never follows a link, so that no path can
//! lead outside, whatever the program left behind.

use std::ffi::{CStr, CString};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;

use raincheck_core::ids::ArtifactId;
use raincheck_core::text::escape_bytes;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, fchmod, openat, renameat, statat, unlinkat,
};
use sha2::{Digest as _, Sha256};

use super::{Haul, Kept, MAX_ARTIFACTS, MAX_NOTES, Shelf};

/// How deep folders are looked into.
const MAX_DEPTH: usize = 32;

/// Moves every regular file into keeping.
pub(super) fn keep(shelf: &Shelf, new_id: impl FnMut() -> ArtifactId) -> io::Result<Haul> {
    let from = open_folder(CWD, &shelf.from)?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&shelf.to)?;
    let to = open_folder(CWD, &shelf.to)?;
    let mut walk = Walk { to, new_id, haul: Haul::default() };
    walk.folder(&from, &[], 0);
    let mut haul = walk.haul;
    haul.files.sort_by(|a, b| a.path.cmp(&b.path));
    if haul.files.is_empty() {
        let _ = std::fs::remove_dir(&shelf.to);
    }
    Ok(haul)
}

fn open_folder(at: impl AsFd, path: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, path, how, Mode::empty())
}

struct Walk<F> {
    to: OwnedFd,
    new_id: F,
    haul: Haul,
}

impl<F: FnMut() -> ArtifactId> Walk<F> {
    fn folder(&mut self, folder: &OwnedFd, path: &[u8], depth: usize) {
        let names = match names(folder) {
            Ok(names) => names,
            Err(error) => return self.skip(path, &format!("cannot be read: {}", error.kind())),
        };
        for name in names {
            let mut path = path.to_vec();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name.to_bytes());
            self.entry(folder, &name, path, depth);
        }
    }

    fn entry(&mut self, folder: &OwnedFd, name: &CStr, path: Vec<u8>, depth: usize) {
        let facts = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(facts) => facts,
            Err(error) => return self.skip(&path, &format!("cannot be read: {error}")),
        };
        match FileType::from_raw_mode(facts.st_mode) {
            FileType::RegularFile if self.haul.files.len() >= MAX_ARTIFACTS => {
                self.skip(&path, "is one too many");
            }
            FileType::RegularFile => {
                let is_shared = facts.st_nlink > 1;
                match self.file(folder.as_fd(), name, is_shared) {
                    Ok((id, size, sha256)) => {
                        self.haul.files.push(Kept { path, id, size, sha256 });
                    }
                    Err(error) => self.skip(&path, &format!("cannot be kept: {}", error.kind())),
                }
            }
            FileType::Directory if depth >= MAX_DEPTH => self.skip(&path, "lies too deep"),
            FileType::Directory => match open_folder(folder, name) {
                Ok(inner) => self.folder(&inner, &path, depth + 1),
                Err(error) => self.skip(&path, &format!("cannot be opened: {error}")),
            },
            FileType::Symlink => self.skip(&path, "is a link"),
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => self.skip(&path, "is no regular file"),
        }
    }

    /// Keeps one file under its new name.
    ///
    /// A file that has other names is copied: to move it and take its rights away would reach the
    /// file behind those names.
    fn file(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &CStr,
        is_shared: bool,
    ) -> io::Result<(ArtifactId, u64, String)> {
        let id = (self.new_id)();
        let kept = if is_shared {
            open_file(folder, name).and_then(|source| {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let copy = openat(&self.to, id.as_str(), flags, Mode::RUSR)?;
                copied(source, File::from(copy))
            })
        } else {
            renameat(folder, name, &self.to, id.as_str())?;
            open_own(self.to.as_fd(), id.as_str()).and_then(|file| {
                fchmod(&file, Mode::RUSR)?;
                copied(file, io::sink())
            })
        };
        let (size, sha256) = kept.inspect_err(|_| {
            let _ = unlinkat(&self.to, id.as_str(), AtFlags::empty());
        })?;
        Ok((id, size, sha256))
    }

    fn skip(&mut self, path: &[u8], why: &str) {
        if self.haul.notes.len() == MAX_NOTES {
            self.haul.n_untold += 1;
            return;
        }
        self.haul.notes.push(format!("`{}` is no artifact: it {why}", escape_bytes(path)));
    }
}

/// Returns the names in a folder, sorted.
fn names(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn open_file(folder: BorrowedFd<'_>, name: impl rustix::path::Arg) -> io::Result<File> {
    let how = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, name, how, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Opens a file in our own folder, also one that its program left without the right to read it.
fn open_own(folder: BorrowedFd<'_>, name: &str) -> io::Result<File> {
    match open_file(folder, name) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            chmodat(folder, name, Mode::RUSR, AtFlags::empty())?;
            open_file(folder, name)
        }
        opened => opened,
    }
}

/// Copies a file and returns its size and hash.
fn copied(mut from: File, mut to: impl io::Write) -> io::Result<(u64, String)> {
    let (mut hash, mut size) = (Sha256::new(), 0);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let bytes = buffer.get(..n).unwrap_or_default();
        hash.update(bytes);
        to.write_all(bytes)?;
        size += bytes.len() as u64;
    }
    let mut hex = String::with_capacity(64);
    for byte in hash.finalize() {
        let _ = write!(hex, "{byte:02x}");
    }
    Ok((size, hex))
}
