//! Whether a folder holds one store or several.

use std::fs::{self, DirEntry, File};
use std::io::{self, Read as _};
use std::path::Path;

use crate::files;

/// What a file of SQLite begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Tells whether the store at `path` is the only one in its folder, so that what lies beside it is its
/// own. One that was put aside as damaged counts as another. What cannot be seen counts as a no.
#[must_use]
pub fn is_alone(path: &Path) -> bool {
    look(path).unwrap_or(false)
}

fn look(path: &Path) -> io::Result<bool> {
    let path = std::path::absolute(path)?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(false) };
    let (own, name) = (files::behind_links(&path), name.to_string_lossy());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.file_name();
        let found = found.to_string_lossy();
        if found.contains(".damaged-") {
            return Ok(false);
        }
        // Its log, its lock and its copies of older versions are named after it.
        let is_beside = found.strip_prefix(&*name).is_some_and(|rest| {
            matches!(rest.as_bytes(), [] | [b'-', ..])
                || rest
                    .strip_prefix(".v")
                    .is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()))
        });
        if !is_beside && files::behind_links(&entry.path()) != own && is_store(&entry)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_store(entry: &DirEntry) -> io::Result<bool> {
    // A link is followed; a pipe would be waited for.
    match fs::metadata(entry.path()) {
        Ok(facts) if facts.is_file() => {}
        Ok(_) => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    }
    let mut first = Vec::new();
    File::open(entry.path())?.take(16).read_to_end(&mut first)?;
    Ok(first == MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    // [SWEEP-1]
    #[test]
    fn another_store_in_the_folder_is_seen_under_whatever_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let (own, magic) = (at("store.db"), &MAGIC[..]);
        let write = |name: &str, text: &[u8]| fs::write(at(name), text).expect("written");
        for name in ["store.db", "store.db-wal", "store.db.v3"] {
            write(name, magic);
        }
        write("raincheck.toml", b"[tools]");
        write("store.db.lock", b"{}");
        fs::create_dir(at("tasks")).expect("made");
        assert!(is_alone(&own));
        for (name, text) in [
            ("mine", magic),
            ("store.db2", magic),
            ("store.db.old", magic),
            ("store.db.damaged-7", b""),
        ] {
            write(name, text);
            assert!(!is_alone(&own), "{name}");
            fs::remove_file(at(name)).expect("removed");
        }
        assert!(is_alone(&own));
        assert!(!is_alone(&at("nowhere/store.db")));
    }

    // [SWEEP-1]
    #[cfg(unix)]
    #[test]
    fn a_store_that_is_reached_by_a_link_is_the_same_or_another() {
        let (folder, far) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("one"));
        for name in ["one", "two"] {
            fs::write(far.path().join(name), MAGIC).expect("written");
        }
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(far.path().join(to), folder.path().join(name))
                .expect("linked");
        };
        link("one", "store.db");
        link("one", "again.db");
        assert!(is_alone(&folder.path().join("store.db")));
        link("two", "other.db");
        assert!(!is_alone(&folder.path().join("store.db")));
    }
}
