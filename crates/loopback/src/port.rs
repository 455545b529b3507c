//! The port that outlives its server: links and pairings stay good when the next start gets it again.

use std::io;
use std::path::Path;

use crate::folder::Folder;

/// Reads the port that the last start had; `None` when there is none, or something else is in the file.
#[must_use]
pub fn last(path: &Path) -> Option<u16> {
    if !path.exists() {
        return None;
    }
    let (folder, name) = Folder::of(path).ok()?;
    let bytes = folder.read(name).ok()??;
    std::str::from_utf8(&bytes).ok()?.trim_end().parse().ok()
}

/// Keeps a port for the next start.
pub(crate) fn keep(path: &Path, port: u16) -> io::Result<()> {
    let (folder, name) = Folder::of(path)?;
    folder.replace(name, format!("{port}\n").as_bytes())
}
