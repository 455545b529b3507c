//! What was written into a project, by the hash of each file: so an edit is seen.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{FILES, Identity, MANIFEST, below, identity, is_sound};

/// The file in the package that holds it. Unity overlooks names that begin with a dot.
pub(super) const NAME: &str = ".raincheck-install.json";

/// The files that were written, by their names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    version: String,
    files: BTreeMap<String, String>,
}

/// Something else is where the package goes.
#[derive(Debug)]
pub(super) struct Foreign;

impl Kept {
    /// Describes the package that this library carries.
    pub(super) fn current() -> &'static Self {
        static CURRENT: OnceLock<Kept> = OnceLock::new();
        CURRENT.get_or_init(|| {
            let files = FILES.iter().map(|(name, bytes)| ((*name).to_owned(), hash(name, bytes)));
            Self { version: identity().version.clone(), files: files.collect() }
        })
    }

    /// Reads what was written into a folder; `None` where nothing is.
    pub(super) fn find(folder: &Path) -> Result<Option<Self>, Foreign> {
        match fs::symlink_metadata(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(found) if found.is_dir() => {}
            Ok(_) | Err(_) => return Err(Foreign),
        }
        let Some(found) = Identity::of(folder) else {
            let is_empty = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
            return if is_empty { Ok(None) } else { Err(Foreign) };
        };
        if found.name != identity().name {
            return Err(Foreign);
        }
        let read = fs::read(folder.join(NAME)).ok();
        let read: Option<Self> = read.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let read = read.filter(|kept| kept.files.keys().all(|name| is_sound(name)));
        // Copied by hand, or from a repository that leaves the list out: what is as ours is not edited.
        Ok(Some(read.unwrap_or(Self { version: found.version, ..Self::current().clone() })))
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Returns the files that are neither as they were written nor as this library has them. One that was
    /// deleted is none of them.
    pub(super) fn edited(&self, folder: &Path) -> Vec<String> {
        let mut names: Vec<&str> = self.names().chain(Self::current().names()).collect();
        names.sort_unstable();
        names.dedup();
        let is_edited = |name: &&str| {
            let path = below(folder, name);
            let Ok(bytes) = fs::read(&path) else { return path.is_dir() };
            let found = hash(name, &bytes);
            let written = [self, Self::current()].map(|kept| kept.files.get(*name));
            !written.contains(&Some(&found))
        };
        names.into_iter().filter(is_edited).map(str::to_owned).collect()
    }

    pub(super) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self).map_err(io::Error::from)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

impl Identity {
    /// Reads the identity of the package in a folder.
    fn of(folder: &Path) -> Option<Self> {
        let bytes = fs::read(folder.join(MANIFEST)).ok()?;
        serde_json::from_slice(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes)).ok()
    }
}

/// Tells whether a file is as this library has it.
pub(super) fn is_current(folder: &Path, name: &str) -> bool {
    let found = fs::read(below(folder, name)).ok().map(|bytes| hash(name, &bytes));
    found.is_some() && found.as_ref() == Kept::current().files.get(name)
}

/// Returns the hash of a file in hex. Line ends do not count, since git writes those of the system; of a
/// `.meta` file only the GUID does, since Unity writes the rest anew.
fn hash(name: &str, bytes: &[u8]) -> String {
    let mut hash = Sha256::new();
    let is_meta = name.ends_with(".meta");
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let (text, end): (_, &[u8]) = match line.strip_suffix(b"\n") {
            Some(text) => (text.strip_suffix(b"\r").unwrap_or(text), b"\n"),
            None => (line, b""),
        };
        if !is_meta {
            hash.update(text);
            hash.update(end);
        } else if text.starts_with(b"guid:") {
            hash.update(text.trim_ascii());
        }
    }
    hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_do_not_count_and_everything_else_does() {
        let hash = |bytes| hash("a.cs", bytes);
        assert_eq!(hash(b"a\r\nb\r\n"), hash(b"a\nb\n"));
        assert_ne!(hash(b"a\rb"), hash(b"a\nb"));
        assert_ne!(hash(b"a\n\nb"), hash(b"a\nb"));
        assert_ne!(hash(b"a\n"), hash(b"a"));
        assert_eq!(hash(b"abc").len(), 64);
    }

    #[test]
    fn what_unity_writes_into_a_meta_file_is_no_edit_and_another_guid_is() {
        let hash = |text: &str| hash("a.cs.meta", text.as_bytes());
        let ours = hash("fileFormatVersion: 2\nguid: 0123\n");
        assert_eq!(hash("fileFormatVersion: 2\r\nguid: 0123\r\nMonoImporter:\r\n"), ours);
        assert_ne!(hash("fileFormatVersion: 2\nguid: 4567\n"), ours);
    }
}
