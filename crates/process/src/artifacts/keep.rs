//! Walking a folder that a stranger filled, by descriptors only.
//!
//! Every step opens one name below an open folder and never follows a link, so that no path can
//! lead outside, whatever the program left behind.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use raincheck_core::ids::ArtifactId;
use raincheck_core::text::escape_bytes;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, chmodat, fchmod, fstat, openat, renameat,
    statat, unlinkat,
};
use sha2::{Digest as _, Sha256};

use super::{Haul, Kept, MAX_ARTIFACTS, MAX_BYTES, MAX_NOTES, Shelf};

/// How deep folders are looked into.
const MAX_DEPTH: usize = 32;

/// Moves every regular file into keeping.
pub(super) fn keep(
    shelf: &Shelf,
    is_cut: &AtomicBool,
    new_id: impl FnMut() -> ArtifactId,
) -> io::Result<Haul> {
    let from = open_folder(CWD, &shelf.from)?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&shelf.to)?;
    let to = open_folder(CWD, &shelf.to)?;
    let (haul, links) = (Haul::default(), BTreeMap::new());
    let mut walk = Walk { to, new_id, haul, links, n_links: 0, left: MAX_BYTES, is_cut };
    walk.folder(&from, &[], 0);
    walk.linked(&from);
    let Walk { to, mut haul, .. } = walk;
    if is_cut.load(Ordering::Relaxed) {
        for kept in std::mem::take(&mut haul.files) {
            let _ = unlinkat(&to, kept.id.as_str(), AtFlags::empty());
        }
        haul.notes = vec!["the artifacts were not taken: the task was to end meanwhile".to_owned()];
    }
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

/// What tells a file from every other, whatever its names: its device and its number.
type Identity = (u64, u64);

struct Walk<'a, F> {
    to: OwnedFd,
    new_id: F,
    haul: Haul,
    /// The files that have several names, with those names that were found.
    links: BTreeMap<Identity, Vec<Vec<u8>>>,
    /// How many such names there were, also those that are not held.
    n_links: usize,
    /// How many bytes may still be kept.
    left: u64,
    is_cut: &'a AtomicBool,
}

impl<F: FnMut() -> ArtifactId> Walk<'_, F> {
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
            if self.is_cut.load(Ordering::Relaxed) {
                return;
            }
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
            FileType::RegularFile if facts.st_nlink > 1 => {
                self.n_links += 1;
                if self.n_links > MAX_ARTIFACTS {
                    return self.skip(&path, "is one too many");
                }
                self.links.entry(identity(&facts)).or_default().push(path);
            }
            FileType::RegularFile => self.file(folder.as_fd(), name, path, &facts),
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
    fn file(&mut self, folder: BorrowedFd<'_>, name: &CStr, path: Vec<u8>, facts: &Stat) {
        let Some(size) = self.room(&path, facts) else { return };
        let id = (self.new_id)();
        let kept =
            renameat(folder, name, &self.to, id.as_str()).map_err(io::Error::from).and_then(|()| {
                let file = open_own(self.to.as_fd(), id.as_str())?;
                fchmod(&file, Mode::RUSR)?;
                copied(file, io::sink(), size, self.is_cut)
            });
        self.kept(path, id, kept);
    }

    /// Keeps the files that have several names, each of them as a copy, where all the names are in the
    /// folder. One that has another name elsewhere is not this task's: whose it is, and who else
    /// writes to it, cannot be seen [SEC-13].
    fn linked(&mut self, from: &OwnedFd) {
        for (identity, paths) in std::mem::take(&mut self.links) {
            for path in &paths {
                if self.is_cut.load(Ordering::Relaxed) {
                    return;
                }
                if self.haul.files.len() >= MAX_ARTIFACTS {
                    self.skip(path, "is one too many");
                    continue;
                }
                match open_below(from, path) {
                    Ok((file, facts)) if facts_are(&facts, identity, paths.len()) => {
                        self.copy(file, path.clone(), &facts);
                    }
                    Ok(_) if self.n_links > MAX_ARTIFACTS => self.skip(path, "has too many names"),
                    Ok(_) => self.skip(path, "is also a file outside of the folder"),
                    Err(error) => self.skip(path, &format!("cannot be read: {}", error.kind())),
                }
            }
        }
    }

    /// Keeps a copy of one file. To move it and take its rights away would reach its other names.
    fn copy(&mut self, file: File, path: Vec<u8>, facts: &Stat) {
        let Some(size) = self.room(&path, facts) else { return };
        let id = (self.new_id)();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let kept = openat(&self.to, id.as_str(), flags, Mode::RUSR)
            .map_err(io::Error::from)
            .and_then(|copy| copied(file, File::from(copy), size, self.is_cut));
        self.kept(path, id, kept);
    }

    /// Tells how large a file is, if so much may still be kept.
    fn room(&mut self, path: &[u8], facts: &Stat) -> Option<u64> {
        let size = u64::try_from(facts.st_size).unwrap_or(u64::MAX);
        if size <= self.left {
            return Some(size);
        }
        let left = self.left;
        self.skip(path, &format!("has {size} bytes, and only {left} more may be kept"));
        None
    }

    fn kept(&mut self, path: Vec<u8>, id: ArtifactId, kept: io::Result<(u64, String)>) {
        match kept {
            Ok((size, sha256)) => {
                self.left = self.left.saturating_sub(size);
                self.haul.files.push(Kept { path, id, size, sha256 });
            }
            Err(error) => {
                let _ = unlinkat(&self.to, id.as_str(), AtFlags::empty());
                self.skip(&path, &format!("cannot be kept: {}", error.kind()));
            }
        }
    }

    fn skip(&mut self, path: &[u8], why: &str) {
        if self.haul.notes.len() == MAX_NOTES {
            self.haul.n_untold += 1;
            return;
        }
        self.haul.notes.push(format!("`{}` is no artifact: it {why}", escape_bytes(path)));
    }
}

#[expect(clippy::unnecessary_cast, reason = "the types differ from system to system")]
fn identity(facts: &Stat) -> Identity {
    (facts.st_dev as u64, facts.st_ino as u64)
}

/// Tells whether a file is still the one that was seen, with no more names than were found.
fn facts_are(facts: &Stat, seen: Identity, n_names: usize) -> bool {
    #[expect(clippy::unnecessary_cast, reason = "the type differs from system to system")]
    let n_links = facts.st_nlink as u64;
    identity(facts) == seen && u64::try_from(n_names) == Ok(n_links)
}

/// Opens a file below a folder, step by step and without following a link.
fn open_below(folder: &OwnedFd, path: &[u8]) -> io::Result<(File, Stat)> {
    let mut at = folder.try_clone()?;
    let mut parts = path.split(|byte| *byte == b'/').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_some() {
            at = open_folder(&at, part)?;
        } else {
            let file = open_file(at.as_fd(), part)?;
            let facts = fstat(&file)?;
            return Ok((file, facts));
        }
    }
    Err(io::ErrorKind::InvalidInput.into())
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

/// Copies a file that has `size` bytes and returns its size and hash.
///
/// # Errors
/// Also when it has grown, or when it is to be left alone.
fn copied(
    from: File,
    mut to: impl io::Write,
    size: u64,
    is_cut: &AtomicBool,
) -> io::Result<(u64, String)> {
    let (mut hash, mut n_bytes) = (Sha256::new(), 0);
    let mut buffer = vec![0; 64 << 10];
    let mut from = from.take(size.saturating_add(1));
    loop {
        if is_cut.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let n = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let bytes = buffer.get(..n).unwrap_or_default();
        hash.update(bytes);
        to.write_all(bytes)?;
        n_bytes += bytes.len() as u64;
    }
    if n_bytes > size {
        return Err(io::Error::other("it is still being written"));
    }
    let mut hex = String::with_capacity(64);
    for byte in hash.finalize() {
        let _ = write!(hex, "{byte:02x}");
    }
    Ok((n_bytes, hex))
}
