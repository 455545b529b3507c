//! What is on a disk for good, what is only on its way there, and what a loss of power makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::random::Random;
use super::recording::Change;

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

/// What becomes of the changes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// They are all lost.
    All,
    /// They all made it.
    Nothing,
    /// Any of them are lost, so that later ones are there without earlier ones.
    Some,
    /// They made it in order up to one of which any sectors are lost.
    Torn,
    /// Any sectors of any of them are lost.
    Sectors,
}

impl Loss {
    /// Every kind of loss.
    pub const ALL: [Self; 5] = [Self::All, Self::Nothing, Self::Some, Self::Torn, Self::Sectors];
}

/// A change of a file's content.
#[derive(Clone, Copy, Debug)]
enum Edit<'a> {
    Write { place: usize, data: &'a [u8] },
    Resize(usize),
}

/// A change of names.
#[derive(Clone, Copy, Debug)]
enum Naming<'a> {
    Create { path: &'a str, file: usize },
    Unlink { path: &'a str },
    Rename { from: &'a str, to: &'a str },
    MakeFolder { path: &'a str },
}

impl Naming<'_> {
    /// The folder whose sync makes it last.
    fn folder(&self) -> &str {
        let (Self::Create { path, .. }
        | Self::Unlink { path }
        | Self::Rename { to: path, .. }
        | Self::MakeFolder { path }) = self;
        path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

#[derive(Debug, Default)]
struct File<'a> {
    durable: Vec<u8>,
    pending: Vec<Edit<'a>>,
}

#[derive(Clone, Debug, Default)]
struct Names<'a> {
    files: BTreeMap<&'a str, usize>,
    folders: BTreeSet<&'a str>,
}

/// A disk in the middle of a recording. It holds less than any real one promises: a name lasts only
/// once its folder is synced, and no file system keeps the order of what is not.
#[derive(Debug, Default)]
pub struct Disk<'a> {
    files: Vec<File<'a>>,
    /// The file that an inode stands for now; numbers are used again.
    inodes: BTreeMap<u64, usize>,
    durable: Names<'a>,
    pending: Vec<Naming<'a>>,
}

/// The files of a disk, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Contents by path below the root.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The folders.
    pub folders: BTreeSet<String>,
}

impl<'a> Disk<'a> {
    /// Makes the disk of an empty root, which itself lasts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one change of the recording. `random` decides what a sync that failed kept.
    ///
    /// # Panics
    /// When the change is of a file that the recording never made.
    pub fn apply(&mut self, change: &Change<'a>, random: &mut Random) {
        match *change {
            Change::Create { path, inode } => {
                self.inodes.insert(inode, self.files.len());
                self.pending.push(Naming::Create { path, file: self.files.len() });
                self.files.push(File::default());
            }
            Change::Write { inode, place, data } => {
                self.file(inode).pending.push(Edit::Write { place: whole(place), data });
            }
            Change::Resize { inode, size } => {
                self.file(inode).pending.push(Edit::Resize(whole(size)));
            }
            Change::Sync { inode } => self.file(inode).settle(|| true),
            Change::BadSync { inode } => self.file(inode).settle(|| random.coin()),
            Change::Unlink { path } => self.pending.push(Naming::Unlink { path }),
            Change::Rename { from, to } => self.pending.push(Naming::Rename { from, to }),
            Change::MakeFolder { path } => self.pending.push(Naming::MakeFolder { path }),
            Change::SyncFolder { path } => {
                let (settled, pending) =
                    self.pending.drain(..).partition(|naming| naming.folder() == path);
                self.pending = pending;
                self.durable.apply(settled);
            }
            Change::BadSyncFolder { .. } | Change::Say(_) => {}
        }
    }

    fn file(&mut self, inode: u64) -> &mut File<'a> {
        let known = self.inodes.get(&inode).and_then(|file| self.files.get_mut(*file));
        known.expect("a file whose making was recorded")
    }

    /// Returns what is found after a loss of power at this moment.
    #[must_use]
    pub fn after(&self, loss: Loss, random: &mut Random) -> Tree {
        let mut names = self.durable.clone();
        let kept = self.pending.iter().copied().filter(|_| match loss {
            Loss::All => false,
            Loss::Nothing => true,
            Loss::Some | Loss::Torn | Loss::Sectors => random.coin(),
        });
        names.apply(kept.collect());
        let is_there = |path: &str| {
            let above = path.match_indices('/').map(|(at, _)| path.split_at(at).0);
            above.into_iter().all(|folder| names.folders.contains(folder))
        };
        let mut tree = Tree::default();
        for path in names.folders.iter().filter(|path| is_there(path)) {
            tree.folders.insert((*path).to_owned());
        }
        for (path, file) in names.files.iter().filter(|(path, _)| is_there(path)) {
            if let Some(file) = self.files.get(*file) {
                tree.files.insert((*path).to_owned(), file.after(loss, random));
            }
        }
        tree
    }
}

impl File<'_> {
    /// Makes those changes last that `keeps` says, and forgets the others.
    fn settle(&mut self, mut keeps: impl FnMut() -> bool) {
        for edit in self.pending.drain(..).filter(|_| keeps()) {
            edit.apply(&mut self.durable);
        }
    }

    fn after(&self, loss: Loss, random: &mut Random) -> Vec<u8> {
        let mut content = self.durable.clone();
        let n_in_order = random.below(self.pending.len() + 1);
        for (place, edit) in self.pending.iter().enumerate() {
            let (is_whole, is_torn) = match loss {
                Loss::All => (false, false),
                Loss::Nothing => (true, false),
                Loss::Some => (random.coin(), false),
                Loss::Torn => (place < n_in_order, place == n_in_order),
                Loss::Sectors => (false, true),
            };
            if is_whole {
                edit.apply(&mut content);
            } else if is_torn {
                edit.apply_torn(&mut content, random);
            }
        }
        content
    }
}

impl Edit<'_> {
    fn apply(&self, content: &mut Vec<u8>) {
        match *self {
            Self::Write { place, data } => put(content, place, data),
            Self::Resize(size) => content.resize(size, 0),
        }
    }

    /// Applies any sectors of a write; a change of size happens or not.
    fn apply_torn(&self, content: &mut Vec<u8>, random: &mut Random) {
        match *self {
            Self::Write { place, data } => {
                let mut at = place;
                let mut rest = data;
                while !rest.is_empty() {
                    let to_border = SECTOR - at % SECTOR;
                    let (sector, after) = rest.split_at(to_border.min(rest.len()));
                    if random.coin() {
                        put(content, at, sector);
                    }
                    at += sector.len();
                    rest = after;
                }
            }
            Self::Resize(size) if random.coin() => content.resize(size, 0),
            Self::Resize(_) => {}
        }
    }
}

fn put(content: &mut Vec<u8>, place: usize, data: &[u8]) {
    let end = place + data.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    if let Some(part) = content.get_mut(place..end) {
        part.copy_from_slice(data);
    }
}

fn whole(n: u64) -> usize {
    usize::try_from(n).expect("a place that memory has")
}

impl<'a> Names<'a> {
    fn apply(&mut self, namings: Vec<Naming<'a>>) {
        for naming in namings {
            match naming {
                Naming::Create { path, file } => drop(self.files.insert(path, file)),
                Naming::Unlink { path } => drop(self.files.remove(path)),
                Naming::Rename { from, to } => {
                    if let Some(file) = self.files.remove(from) {
                        self.files.insert(to, file);
                    }
                }
                Naming::MakeFolder { path } => drop(self.folders.insert(path)),
            }
        }
    }
}

impl Tree {
    /// Writes the files below a folder.
    ///
    /// # Panics
    /// When they cannot be written.
    pub fn write_to(&self, folder: &Path) {
        for path in &self.folders {
            std::fs::create_dir_all(folder.join(path)).expect("a folder");
        }
        for (path, content) in &self.files {
            std::fs::write(folder.join(path), content).expect("a file");
        }
    }

    /// Reads the files below a folder, but for indexes of logs, which are made anew.
    ///
    /// # Panics
    /// When they cannot be read.
    #[must_use]
    pub fn read(folder: &Path) -> Self {
        let mut tree = Self::default();
        tree.take(folder, "");
        tree
    }

    fn take(&mut self, folder: &Path, prefix: &str) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                self.take(&entry.path(), &format!("{path}/"));
                self.folders.insert(path);
            } else if !path.ends_with("-shm") {
                self.files.insert(path, std::fs::read(entry.path()).expect("a file"));
            }
        }
    }
}
