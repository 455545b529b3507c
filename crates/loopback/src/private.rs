//! Files that only their owner can read, for whoever keeps a secret beside a listener [SEC-4].

use std::io;
use std::path::Path;

use crate::error::{Error, ErrorKind};
use crate::folder::Folder;

/// Writes a file whole, in a folder that is made its owner's alone. Works with blocking calls.
///
/// # Errors
/// When the folder is another user's, or cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let written = Folder::of(path).and_then(|(folder, name)| folder.replace(name, bytes));
    written.map_err(|error| unusable(path, error))
}

/// Reads a file of at most 1 MiB; `None` when there is none. Works with blocking calls.
///
/// # Errors
/// When it is there and cannot be read.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    if !path.exists() {
        return Ok(None);
    }
    let found = Folder::of(path).and_then(|(folder, name)| folder.read(name));
    found.map_err(|error| unusable(path, error))
}

fn unusable(path: &Path, error: io::Error) -> Error {
    let message = format!(
        "the private file `{}` cannot be used; see that its folder is yours and writable",
        path.display()
    );
    Error::new(ErrorKind::File, message).because(error)
}
