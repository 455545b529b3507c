//! The files that an attempt left, taken into keeping [ART-1].

#[cfg(unix)]
mod keep;
mod name;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use raincheck_core::ids::ArtifactId;
use raincheck_core::task::Artifact;
use raincheck_core::text::{clip, escape, escape_bytes};

use crate::supervise::Claim;

/// The most artifacts of one attempt.
const MAX_ARTIFACTS: usize = 10_000;

/// The most bytes of all artifacts of one attempt together. More is not read, let alone kept.
pub(crate) const MAX_BYTES: u64 = 16 << 30;

/// The most files that are told one by one to be none.
const MAX_NOTES: usize = 50;

/// What an artifact is when the program does not say.
const KIND: &str = "file";

/// Where artifacts come from and go to, on one file system.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    /// The folder in which the program left them.
    pub(crate) from: PathBuf,
    /// The folder of the task that keeps them.
    pub(crate) to: PathBuf,
}

/// What an attempt left.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    /// Its artifacts, sorted by name.
    pub(crate) artifacts: Vec<Artifact>,
    /// What is none, and why: lines for the log of the task.
    pub(crate) notes: Vec<String>,
}

impl Collected {
    /// Says that nothing could be kept.
    pub(crate) fn failed(kind: io::ErrorKind) -> Self {
        let note = format!("the artifacts could not be kept: {kind}");
        Self { artifacts: Vec::new(), notes: vec![note] }
    }
}

/// Tells whether the program left nothing at all.
pub(crate) fn is_empty(shelf: &Shelf) -> bool {
    match std::fs::read_dir(&shelf.from) {
        Ok(mut entries) => entries.next().is_none(),
        // The one that takes them says what is wrong.
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Takes every regular file below `shelf.from` into keeping, without following a link.
///
/// Files are moved, made read-only and hashed. What the program said about them gives each its kind.
/// It must have ended, with everything it started. Once `is_cut` is set nothing more is read, and
/// nothing is kept.
///
/// # Errors
/// When a folder cannot be opened or made. What cannot be kept of single files becomes a note.
pub(crate) fn collect(
    shelf: &Shelf,
    claims: &[Claim],
    is_cut: &AtomicBool,
    new_id: impl FnMut() -> ArtifactId,
) -> io::Result<Collected> {
    let mut notes = Vec::new();
    let mut kinds = BTreeMap::new();
    for claim in claims {
        match name::normal(&claim.path, &shelf.from) {
            Ok(path) => {
                kinds.insert(path, claim.kind.as_deref());
            }
            Err(why) => notes.push(format!("the reported artifact `{}` {why}", shown(&claim.path))),
        }
    }

    let kept = keep(shelf, is_cut, new_id)?;
    notes.extend(kept.notes);
    let mut n_untold = kept.n_untold;
    let mut artifacts = Vec::with_capacity(kept.files.len());
    for file in kept.files {
        let kind = kinds.remove(&file.path).flatten().unwrap_or(KIND);
        artifacts.push(Artifact {
            path: format!("artifacts/{}", file.id).into(),
            id: file.id,
            name: escape_bytes(&file.path).into(),
            kind: escape(kind).into(),
            size: file.size,
            sha256: file.sha256.into(),
        });
    }
    for path in kinds.keys() {
        let path = escape_bytes(path);
        notes.push(format!("the reported artifact `{path}` is no regular file in the folder"));
    }
    n_untold += notes.len().saturating_sub(MAX_NOTES);
    notes.truncate(MAX_NOTES);
    if n_untold > 0 {
        notes.push(format!("{n_untold} more files are no artifacts"));
    }
    Ok(Collected { artifacts, notes })
}

fn shown(path: &str) -> String {
    escape(clip(path, 200)).into_owned()
}

/// A file that is kept.
#[derive(Debug)]
struct Kept {
    /// Its path below the folder, as the file system spells it.
    path: Vec<u8>,
    id: ArtifactId,
    size: u64,
    sha256: String,
}

/// What became of the files of a folder.
#[derive(Debug, Default)]
struct Haul {
    files: Vec<Kept>,
    notes: Vec<String>,
    /// How many more files are none.
    n_untold: usize,
}

#[cfg(unix)]
use keep::keep;

#[cfg(not(unix))]
fn keep(
    _shelf: &Shelf,
    _is_cut: &AtomicBool,
    _new_id: impl FnMut() -> ArtifactId,
) -> io::Result<Haul> {
    Ok(Haul::default())
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
