//! A lock that one process holds: whoever has it owns what the lock is for.
//!
//! The system frees it with the process, however that ends, so that a lock that is held proves an owner
//! that lives. A file or a process number proves nothing of the kind.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use crate::error::{Error, ErrorKind};
use crate::folder::Folder;

/// The lock of this process. Dropping it frees it; the file stays.
#[derive(Debug)]
pub struct OwnerLock {
    _file: File,
}

/// What came of asking for a lock.
#[derive(Debug)]
pub enum Taken {
    /// It is this process's.
    Ours(OwnerLock),
    /// It is another's: its process, where that can be read.
    Theirs(Option<u32>),
}

/// Asks for the lock of a file, which is made in a folder that only its owner can look into. Works with
/// blocking calls and does not wait for another owner.
///
/// # Errors
/// [`ErrorKind::File`] when the folder or the file cannot be used, [`ErrorKind::Lock`] when its file
/// system refuses locks, as some network folders do.
pub fn take(path: &Path) -> Result<Taken, Error> {
    let opened = Folder::of(path).and_then(|(folder, name)| folder.open_or_create(name));
    let mut file = opened.map_err(|error| {
        let message = format!("the lock `{}` cannot be made", path.display());
        Error::new(ErrorKind::File, message).because(error)
    })?;
    match file.try_lock() {
        Ok(()) => {
            if let Err(error) = sign(&mut file) {
                tracing::debug!(%error, "the lock does not name its owner");
            }
            Ok(Taken::Ours(OwnerLock { _file: file }))
        }
        Err(TryLockError::WouldBlock) => Ok(Taken::Theirs(signed(&mut file))),
        Err(TryLockError::Error(error)) => {
            let folder = path.parent().unwrap_or(path);
            let message = format!("the folder `{}` refuses locks of files", folder.display());
            Err(Error::new(ErrorKind::Lock, message).because(error))
        }
    }
}

/// Writes who owns the lock, for others to show.
fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())
}

fn signed(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_one_owner_and_is_free_once_that_is_gone() {
        // [BROWSER-18]
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("run/lock");
        let first = take(&path).expect("usable");
        assert!(matches!(first, Taken::Ours(_)));
        let Taken::Theirs(owner) = take(&path).expect("usable") else { panic!("two owners") };
        assert_eq!(owner, Some(std::process::id()));
        drop(first);
        assert!(matches!(take(&path).expect("usable"), Taken::Ours(_)));
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_told_by_its_name() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("file");
        std::fs::write(&file, "").expect("written");
        let error = take(&file.join("lock")).expect_err("no folder");
        assert_eq!(error.kind(), ErrorKind::File);
        assert!(error.to_string().contains(&*file.to_string_lossy()), "{error}");
    }
}
