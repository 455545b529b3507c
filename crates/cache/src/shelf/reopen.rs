//! What a start finds in the folder, brought into agreement.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use uuid::Uuid;

use crate::shelf::body::{Body, BodyFile, file_name};
use crate::shelf::disk::{self, Disk};
use crate::shelf::entry::{Metadata, Reason};
use crate::shelf::folder::Folder;
use crate::shelf::graves::Tombstone;
use crate::shelf::journal::{Record, Replayed};
use crate::shelf::life::Millis;
use crate::shelf::registry::{Limits, Registry};

/// Opens the folder and returns what it holds.
///
/// # Errors
/// Why it is not used; `None` when there is none.
pub(super) fn open(
    dir: Option<&Path>,
    limits: Limits,
    now: Millis,
) -> Result<(Registry<Body>, Disk), Option<String>> {
    let dir = dir.ok_or(None)?;
    let opened = Folder::open(dir).and_then(|folder| {
        let lock = disk::lock(&folder)?;
        let mut registry = Registry::new(limits);
        let replayed = Replayed::read(&disk::read_index(&folder)?);
        restore(&mut registry, &folder, replayed, (limits, now));
        let disk = Disk::start(Arc::new(folder), lock, &snapshot(&registry))?;
        sweep(&registry, &disk.folder);
        Ok((registry, disk))
    });
    opened.map_err(|error| {
        let path = dir.display();
        Some(if error.kind() == io::ErrorKind::WouldBlock {
            format!("another process uses the folder `{path}`; this one keeps entries in memory")
        } else {
            format!("the folder `{path}` cannot be used: {error}")
        })
    })
}

/// Returns what a folder holds that another process may be writing, and leaves it as it is.
///
/// # Errors
/// When it cannot be read.
pub(super) fn look_at(
    dir: &Path,
    limits: Limits,
    now: Millis,
) -> io::Result<(Registry<Body>, Folder)> {
    if !dir.is_dir() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let folder = Folder::open(dir)?;
    let mut registry = Registry::new(limits);
    restore(&mut registry, &folder, Replayed::read(&disk::read_index(&folder)?), (limits, now));
    Ok((registry, folder))
}

/// Returns whether an error says that a file is not what was written.
pub(super) fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
    )
}

fn restore(
    registry: &mut Registry<Body>,
    folder: &Folder,
    replayed: Replayed,
    (limits, now): (Limits, Millis),
) {
    let (entries, mut graves) = replayed.into_parts();
    let mut held = Vec::new();
    for (mut metadata, index_bytes) in entries {
        // A clock that was set back gives no longer life than a new entry has.
        metadata.created_at = metadata.created_at.min(now);
        metadata.last_access_at = metadata.last_access_at.min(now);
        let end = limits.life.end(metadata.created_at, metadata.last_access_at);
        if end <= now {
            graves.push(buried(&metadata, Reason::Expired, end));
            continue;
        }
        match find(folder, &metadata, index_bytes) {
            Some(body) => held.push((metadata, body)),
            None => graves.push(buried(&metadata, Reason::Lost, now)),
        }
    }
    graves.iter_mut().for_each(|(_, grave)| grave.at = grave.at.min(now));
    graves.sort_by_key(|(_, grave)| grave.at);
    graves.into_iter().for_each(|(id, grave)| registry.bury(id, grave));
    for (metadata, body) in held {
        let (id, grave) = buried(&metadata, Reason::Evicted, now);
        let bytes = body.held();
        if registry.put(now, metadata, body, bytes).is_err() {
            registry.bury(id, grave);
        }
    }
    registry.tick(now);
    // Their files are swept with the rest.
    registry.take_gone();
}

fn buried(metadata: &Metadata, reason: Reason, at: Millis) -> (Uuid, Tombstone) {
    let (scope, rerun) = (metadata.scope.clone(), metadata.rerun());
    (metadata.id, Tombstone { scope, reason, rerun, at })
}

/// Finds the file of an entry; `None` when it is missing, or is not the one that was written.
fn find(folder: &Folder, metadata: &Metadata, index_bytes: u64) -> Option<Body> {
    let (file_bytes, is_at_rest) = match BodyFile::open(folder, metadata) {
        Ok(file) => (file.bytes(), file.is_compressed()),
        Err(error) if is_damage(&error) => return None,
        // It may be readable another time.
        Err(_) => (metadata.size_bytes, true),
    };
    let index = Arc::new(OnceLock::new());
    Some(Body { memory: None, file_bytes: Some(file_bytes), index, index_bytes, is_at_rest })
}

/// Removes what a process left behind that ended in the middle of something.
fn sweep(registry: &Registry<Body>, folder: &Folder) {
    let live: HashSet<String> = registry.iter().map(|row| file_name(&row.metadata)).collect();
    let mut leftovers = Vec::new();
    let listed = folder.each_name(|name| {
        if disk::is_leftover(name) && !live.contains(name) {
            leftovers.push(name.to_owned());
        }
    });
    // What could not be listed or removed is tried again at the next start.
    listed.ok();
    leftovers.iter().for_each(|name| drop(folder.remove(name)));
}

/// Returns the records that say what is held, the least recently used first.
pub(super) fn snapshot(registry: &Registry<Body>) -> Vec<u8> {
    let graves = registry.graves().map(|(id, grave)| Record::Grave { id, grave: grave.clone() });
    let rows = registry.iter().map(|row| record_of(&row.metadata, &row.body));
    disk::encode(&graves.chain(rows).collect::<Vec<_>>())
}

/// The record of an entry that is held.
pub(super) fn record_of(metadata: &Metadata, body: &Body) -> Record {
    if body.file_bytes.is_some() {
        let index_bytes =
            body.index.get().map_or(body.index_bytes, |index| index.heap_bytes() as u64);
        return Record::Put { metadata: Box::new(metadata.clone()), index_bytes };
    }
    let (scope, rerun) = (metadata.scope.clone(), metadata.rerun());
    let grave = Tombstone { scope, reason: Reason::Lost, rerun, at: metadata.created_at };
    Record::Grave { id: metadata.id, grave }
}
