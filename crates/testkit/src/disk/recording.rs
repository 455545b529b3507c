//! What a program did to its files, in order.

use std::path::Path;

/// One thing that happened.
#[derive(Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// A file came to be.
    Create {
        /// Its path below the root.
        path: &'a str,
        /// What it is called in other changes.
        inode: u64,
    },
    /// Bytes were written.
    Write {
        /// The file.
        inode: u64,
        /// Where in it.
        place: u64,
        /// What.
        data: &'a [u8],
    },
    /// A file was cut or made longer.
    Resize {
        /// The file.
        inode: u64,
        /// How long it is now.
        size: u64,
    },
    /// What was written to a file is on the disk.
    Sync {
        /// The file.
        inode: u64,
    },
    /// The same failed: what was written may be on the disk or not, and is not written again.
    BadSync {
        /// The file.
        inode: u64,
    },
    /// A name went.
    Unlink {
        /// The path.
        path: &'a str,
    },
    /// A name changed.
    Rename {
        /// The path it had.
        from: &'a str,
        /// The path it has.
        to: &'a str,
    },
    /// A folder came to be.
    MakeFolder {
        /// Its path.
        path: &'a str,
    },
    /// The names in a folder are on the disk.
    SyncFolder {
        /// Its path.
        path: &'a str,
    },
    /// The same failed: they are on their way still.
    BadSyncFolder {
        /// Its path.
        path: &'a str,
    },
    /// The program said something to the world.
    Say(&'a str),
}

/// A recording, as its file holds it.
#[derive(Debug)]
pub struct Recording {
    bytes: Vec<u8>,
    root: String,
}

/// The fixed part of each change in the file, as `shim.c` has it.
const HEAD: usize = 24;

impl Recording {
    /// Reads the recording of what was done below a root.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn read(file: &Path, root: &Path) -> Self {
        let bytes = std::fs::read(file).expect("a recording");
        let root = root.to_str().expect("a path in UTF-8").to_owned();
        Self { bytes, root }
    }

    /// Returns every change.
    ///
    /// # Panics
    /// When the recording is damaged.
    #[must_use]
    pub fn changes(&self) -> Vec<Change<'_>> {
        let mut changes = Vec::new();
        let mut rest = self.bytes.as_slice();
        while let Some((head, after)) = rest.split_at_checked(HEAD) {
            let small = |at: usize| u32::from_ne_bytes(part(head, at));
            let large = |at: usize| u64::from_ne_bytes(part(head, at));
            let (kind, length) = (small(0), small(4) as usize);
            let (data, after) = after.split_at_checked(length).expect("a whole change");
            changes.push(self.change(kind, large(8), large(16), data));
            rest = after;
        }
        assert!(rest.is_empty(), "the recording ends within a change");
        changes
    }

    fn change<'a>(&'a self, kind: u32, inode: u64, place: u64, data: &'a [u8]) -> Change<'a> {
        let text = || std::str::from_utf8(data).expect("text in UTF-8");
        let path = || self.below(text());
        match kind {
            1 => Change::Create { path: path(), inode },
            2 => Change::Write { inode, place, data },
            3 => Change::Resize { inode, size: place },
            4 => Change::Sync { inode },
            5 => Change::Unlink { path: path() },
            6 => {
                let (from, to) = text().split_once('\0').expect("two paths");
                Change::Rename { from: self.below(from), to: self.below(to) }
            }
            7 => Change::MakeFolder { path: path() },
            8 => Change::SyncFolder { path: path() },
            9 => Change::Say(text()),
            10 => Change::BadSync { inode },
            11 => Change::BadSyncFolder { path: path() },
            kind => panic!("no change is of kind {kind}"),
        }
    }

    /// Makes a path one below the root; the root itself is empty.
    fn below<'a>(&self, path: &'a str) -> &'a str {
        let path = path.strip_prefix(self.root.as_str()).expect("a path below the root");
        path.trim_start_matches('/').trim_end_matches('/')
    }
}

fn part<const N: usize>(head: &[u8], at: usize) -> [u8; N] {
    head.get(at..at + N).and_then(|part| part.try_into().ok()).expect("a whole head")
}
