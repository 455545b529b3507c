//! What is done for bodies that nobody reads.

use std::io;
use std::sync::Arc;

use crate::shelf::blocks::Blocks;
use crate::shelf::body::{Body, Memory, Open};
use crate::shelf::cache::Shared;
use crate::shelf::disk::{self, Staged};
use crate::shelf::entry::Metadata;
use crate::shelf::heap;
use crate::shelf::life::Millis;

/// Bytes of bodies that one call compresses.
const AT_ONCE: u64 = 32 * 1024 * 1024;

/// Bytes of bodies that came to rest from which on the allocator is asked to give them back.
const WORTH_GIVING_BACK: u64 = 1024 * 1024;

/// Shorter bodies gain nothing.
const WORTH_IT: u64 = 4 * 1024;

/// Compresses what is idle, and returns when there is something to do again.
pub(super) fn rest(shared: &Shared, now: Millis) -> Option<Millis> {
    let mut left = AT_ONCE;
    let next = compress_idle(shared, now, &mut left);
    if AT_ONCE - left >= WORTH_GIVING_BACK {
        heap::give_back();
    }
    next
}

fn compress_idle(shared: &Shared, now: Millis, left: &mut u64) -> Option<Millis> {
    while let Some((metadata, number, body)) = next(shared, now) {
        if metadata.size_bytes > *left && *left < AT_ONCE {
            return Some(now.saturating_add(1));
        }
        *left = left.saturating_sub(metadata.size_bytes.max(1));
        let (body, staged) = at_rest(shared, &metadata, body);
        let idle_before = now.saturating_sub(shared.config.idle_ms);
        shared.lock().rest(idle_before, (metadata.id, number), body, staged);
    }
    let state = shared.lock();
    let idle = state.registry.iter().filter(|row| !row.body.is_at_rest);
    let idle = idle.map(|row| row.metadata.last_access_at.saturating_add(shared.config.idle_ms));
    // One in use is looked at again when its reader may have ended.
    let idle = idle.map(|at| if at <= now { now.saturating_add(1000) } else { at });
    idle.chain(state.registry.next_end()).min()
}

/// Returns an idle body that is not at rest, the one idle for longest first.
fn next(shared: &Shared, now: Millis) -> Option<(Metadata, u64, Body)> {
    let state = shared.lock();
    let row = state.registry.iter().find(|row| {
        let idle_since = row.metadata.last_access_at.saturating_add(shared.config.idle_ms);
        !row.body.is_at_rest && !row.is_pinned() && idle_since <= now
    })?;
    Some((row.metadata.clone(), row.number, row.body.clone()))
}

/// Returns a body in the form that takes least: its file compressed and nothing in memory, or compressed in memory.
fn at_rest(shared: &Shared, metadata: &Metadata, body: Body) -> (Body, Option<Staged>) {
    let blocks = compress(shared, metadata, &body).ok().flatten();
    let mut body = Body { is_at_rest: true, ..body };
    if body.file_bytes.is_none() {
        if let Some(blocks) = blocks {
            body.memory = Some(Memory::Compressed(Arc::new(blocks)));
        }
        return (body, None);
    }
    // The file has the body already; when it cannot be made smaller it stays as it is.
    body.memory = None;
    let staged = blocks.zip(shared.folder.as_deref()).and_then(|(blocks, folder)| {
        disk::stage(folder, metadata, &blocks.table, &blocks.stored).ok()
    });
    body.file_bytes = staged.as_ref().map(|staged| staged.bytes).or(body.file_bytes);
    (body, staged)
}

/// Compresses a body; `None` when it does not shrink.
fn compress(shared: &Shared, metadata: &Metadata, body: &Body) -> io::Result<Option<Blocks>> {
    if metadata.size_bytes < WORTH_IT {
        return Ok(None);
    }
    let blocks = match &body.memory {
        Some(Memory::Verbatim(bytes)) => Blocks::compress(bytes)?,
        Some(Memory::Compressed(_)) => return Ok(None),
        None => {
            let open = Open::new(body, metadata, shared.folder.as_deref())?;
            Blocks::compress(&open.whole()?)?
        }
    };
    let is_smaller = blocks.heap_bytes() < metadata.size_bytes - metadata.size_bytes / 16;
    Ok(is_smaller.then_some(blocks))
}
