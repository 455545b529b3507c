//! The way in.

mod idle;
mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use uuid::Uuid;

use crate::json::{Index, Invalid};
use crate::shelf::blocks::Table;
use crate::shelf::body::{Body, Memory, Open, index_of};
use crate::shelf::disk::{self, Staged};
use crate::shelf::entry::{BodyKind, Metadata, Miss, Reason};
use crate::shelf::folder::Folder;
use crate::shelf::graves::Bounds;
use crate::shelf::life::{Life, Millis};
use crate::shelf::pinned::{Holder, Pinned};
use crate::shelf::registry::{Limits, Refusal, charge};
use crate::shelf::reopen;
use state::State;

const MIB: u64 = 1024 * 1024;

/// Where a cache is, and how much it may hold.
///
/// The byte budgets bound what is in memory and, each for itself, what is in files: bodies in the form
/// in which they are, indexes, descriptions and tombstones.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder, for handles that survive a restart. It is made when it is missing.
    pub dir: Option<PathBuf>,
    /// Bytes of all scopes.
    pub total_bytes: u64,
    /// Bytes of one scope.
    pub scope_bytes: u64,
    /// Bytes of one body.
    pub entry_bytes: u64,
    /// Entries of one scope.
    pub entries_per_scope: usize,
    /// Life after the last read.
    pub ttl_ms: Millis,
    /// Life after an entry was stored.
    pub absolute_ttl_ms: Millis,
    /// After so long without a read a body is compressed, and leaves memory when it has a file.
    pub idle_ms: Millis,
    /// How long a tombstone stays.
    pub tombstone_ttl_ms: Millis,
    /// Tombstones of one scope. They take a sixteenth of its bytes at most, and go first where room is wanted.
    pub tombstones_per_scope: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            dir: None,
            total_bytes: 256 * MIB,
            scope_bytes: 128 * MIB,
            entry_bytes: 64 * MIB,
            entries_per_scope: 256,
            ttl_ms: 30 * 60 * 1000,
            absolute_ttl_ms: 4 * 60 * 60 * 1000,
            idle_ms: 60 * 1000,
            tombstone_ttl_ms: 24 * 60 * 60 * 1000,
            tombstones_per_scope: 1024,
        }
    }
}

impl Config {
    fn limits(&self) -> Limits {
        Limits {
            total_bytes: self.total_bytes,
            scope_bytes: self.scope_bytes,
            entries_per_scope: self.entries_per_scope,
            life: Life { sliding: self.ttl_ms, absolute: self.absolute_ttl_ms },
            graves: Bounds {
                ttl: self.tombstone_ttl_ms,
                per_scope: self.tombstones_per_scope,
                bytes_per_scope: self.scope_bytes / 16,
                in_total: self.tombstones_per_scope.saturating_mul(8),
            },
        }
    }
}

/// A body to store, and what is said of it.
#[derive(Debug)]
pub struct New {
    /// The tool that answered.
    pub tool: String,
    /// Its arguments as JSON text, without what is sensitive in them.
    pub params: String,
    /// The body, byte for byte.
    pub body: Vec<u8>,
    /// What it is.
    pub kind: BodyKind,
    /// Its index, when it was built while the body arrived. It must be this body's.
    pub index: Option<Index>,
    /// It is held in memory only. So is what is made of an entry of which this is said.
    pub is_sensitive: bool,
    /// The entry that it was filtered from.
    pub parent: Option<Uuid>,
    /// The filter that made it.
    pub jq_filter: Option<String>,
    /// Who wrote the text; what has a parent has its parent's mark when this is `None`.
    pub mark: Option<String>,
    /// Nobody asked for it yet.
    pub is_ahead: bool,
}

impl New {
    /// Returns the answer of a tool, with nothing else said of it.
    pub fn answer(
        tool: impl Into<String>,
        params: impl Into<String>,
        body: impl Into<Vec<u8>>,
        kind: BodyKind,
    ) -> Self {
        Self {
            tool: tool.into(),
            params: params.into(),
            body: body.into(),
            kind,
            index: None,
            is_sensitive: false,
            parent: None,
            jq_filter: None,
            mark: None,
            is_ahead: false,
        }
    }
}

/// A stored body.
#[derive(Debug)]
pub struct Receipt {
    /// The entry, for a first page and an outline. That is no read.
    pub entry: Pinned,
    /// Its handle survives the end of this process.
    pub is_durable: bool,
}

impl Receipt {
    /// Returns the handle.
    pub fn id(&self) -> Uuid {
        self.entry.metadata().id
    }
}

/// Why a body was not stored. Nothing else was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// It would not fit even if it were alone.
    #[error("a body of {bytes} bytes is too large: the limit is {limit}")]
    TooLarge {
        /// What it would take.
        bytes: u64,
        /// What is allowed.
        limit: u64,
    },
    /// What is being read leaves no room for it.
    #[error("the cache is full of entries that are being read")]
    CacheFull,
    /// It is not what its kind says.
    #[error("the body is refused: {0}")]
    Invalid(#[from] Invalid),
    /// There is no entry to refresh.
    #[error(transparent)]
    Gone(#[from] Miss),
}

/// Where new entries are held.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Storage {
    /// In memory and in the folder.
    Folder,
    /// In memory only.
    Memory {
        /// What kept them out of the folder, when one was asked for.
        why: Option<String>,
    },
}

/// What a scope holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Usage {
    /// Entries of the scope.
    pub entries: usize,
    /// Bytes charged to the scope.
    pub bytes: u64,
    /// Bytes charged to all scopes.
    pub total_bytes: u64,
}

/// Holds bodies under handles. A clone is the same cache.
///
/// # Examples
///
/// ```
/// use raincheck_cache::{BodyKind, Cache, Config, New, Pointer};
///
/// let cache = Cache::open(Config::default(), 0);
/// let new = New::answer("list", "{}", r#"{"items":[1,2,3]}"#, BodyKind::Json);
/// let id = cache.insert(0, "me", new)?.id();
/// let entry = cache.get(1_000, "me", id)?;
/// let items = entry.view().resolve(&Pointer::parse("/items")?)?;
/// assert_eq!(entry.view().raw(items)?, b"[1,2,3]".as_slice());
/// assert!(cache.get(1_000, "another", id).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cache {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    config: Config,
    folder: Option<Arc<Folder>>,
    state: Mutex<State>,
    /// Held by who replaces a body, so that no two have the same revision.
    refreshing: Mutex<()>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holder for Shared {
    fn unpin(&self, id: Uuid, number: u64) {
        self.lock().unpin(id, number);
    }
}

/// A body on its way in.
struct Arrival {
    metadata: Metadata,
    body: Vec<u8>,
    /// Absent while the body has not been looked at.
    index: Option<Index>,
}

/// From this length on, the file of a body is written while the body is validated: what a thread
/// costs is little beside that.
const LONG: usize = 512 * 1024;

impl Cache {
    /// Opens a cache. With a folder, the entries of the process before are there again.
    ///
    /// A folder that cannot be used, or that another process has, is no error: see [`Cache::storage`].
    pub fn open(config: Config, now: Millis) -> Self {
        let (state, folder) = reopen::open(config.dir.as_deref(), config.limits(), now)
            .map_or_else(
                |why| (State::in_memory(config.limits(), why), None),
                |(registry, disk)| {
                    let folder = disk.folder.clone();
                    (State::with_disk(registry, disk, now), Some(folder))
                },
            );
        let shared =
            Shared { config, folder, state: Mutex::new(state), refreshing: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Opens a folder to look at it, though another process may be using it: nothing in it is changed.
    ///
    /// What is stored, read or deleted here is so in this process alone.
    ///
    /// # Errors
    /// When there is no such folder, or it cannot be read.
    pub fn open_read_only(dir: &Path, now: Millis) -> io::Result<Self> {
        let config = Config { dir: Some(dir.to_owned()), ..Config::default() };
        let limits = Limits {
            total_bytes: u64::MAX,
            scope_bytes: u64::MAX,
            entries_per_scope: usize::MAX,
            ..config.limits()
        };
        let (registry, folder) = reopen::look_at(dir, limits, now)?;
        let state = Mutex::new(State::read_only(registry, now));
        let folder = Some(Arc::new(folder));
        let shared = Shared { config, folder, state, refreshing: Mutex::default() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns the scopes that have entries.
    pub fn scopes(&self, now: Millis) -> Vec<Arc<str>> {
        let mut state = self.shared.lock();
        state.expire(now);
        let scopes = state.registry.iter().map(|row| row.metadata.scope.clone());
        scopes.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Says where new entries are held.
    pub fn storage(&self) -> Storage {
        self.shared.lock().storage()
    }

    /// Validates a body and stores it. The handle is good once this returns.
    ///
    /// # Errors
    /// When the body is not what its kind says, or does not fit. Nothing was evicted then.
    pub fn insert(&self, now: Millis, scope: &str, new: New) -> Result<Receipt, Refused> {
        self.check_length(&new.body)?;
        let index = new.index.filter(|index| index.body_bytes() == new.body.len());
        let parent = new.parent.and_then(|id| self.peek(now, scope, id).ok());
        let mark = new.mark.map(Arc::from);
        let metadata = Metadata {
            id: new_id(),
            scope: scope.into(),
            tool: new.tool.into(),
            params: new.params.into(),
            kind: new.kind,
            size_bytes: new.body.len() as u64,
            created_at: now,
            last_access_at: now,
            expires_at: now,
            access_count: 0,
            parent: new.parent,
            jq_filter: new.jq_filter.map(Arc::from),
            mark: mark.or_else(|| parent.as_ref().and_then(|parent| parent.mark.clone())),
            is_sensitive: new.is_sensitive || parent.is_some_and(|parent| parent.is_sensitive),
            is_ahead: new.is_ahead,
            revision: 0,
        };
        self.store(now, Arrival { metadata, body: new.body, index })
    }

    /// Stores a newer body under a handle: its life begins again. Readers of the one before go on reading that.
    ///
    /// # Errors
    /// As [`Cache::insert`], and when there is no such entry. The body before stays then.
    pub fn refresh(
        &self,
        now: Millis,
        scope: &str,
        id: Uuid,
        body: Vec<u8>,
    ) -> Result<Receipt, Refused> {
        self.check_length(&body)?;
        let refreshing = &self.shared.refreshing;
        let _one_at_a_time = refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.peek(now, scope, id)?;
        let metadata = Metadata {
            size_bytes: body.len() as u64,
            created_at: now,
            last_access_at: now,
            revision: before.revision.wrapping_add(1),
            ..before
        };
        self.store(now, Arrival { metadata, body, index: None })
    }

    fn check_length(&self, body: &[u8]) -> Result<(), Refused> {
        let (bytes, limit) = (body.len() as u64, self.shared.config.entry_bytes);
        if bytes <= limit { Ok(()) } else { Err(Refused::TooLarge { bytes, limit }) }
    }

    fn store(&self, now: Millis, arrival: Arrival) -> Result<Receipt, Refused> {
        let Arrival { metadata, body: mut bytes, index } = arrival;
        if bytes.capacity() - bytes.len() > bytes.len() / 16 {
            bytes.shrink_to_fit();
        }
        let (index, early) = match index {
            Some(index) => (index, None),
            None => self.validate(now, &metadata, &bytes)?,
        };
        let index_bytes = index.heap_bytes() as u64;
        let bytes = Arc::new(bytes);
        let mut body = Body {
            memory: Some(Memory::Verbatim(bytes.clone())),
            file_bytes: None,
            index: Arc::new(OnceLock::from(index)),
            index_bytes,
            is_at_rest: false,
        };
        let refused = |refusal| match refusal {
            Refusal::Full => Refused::CacheFull,
            Refusal::TooLarge { limit } => {
                Refused::TooLarge { bytes: charge(&metadata, bytes.len() as u64), limit }
            }
        };
        // Before a file is written: the answer rarely changes until it is.
        let has_room = self.shared.lock().check_room(now, &metadata, body.held());
        if let Err(refusal) = has_room {
            self.discard(early);
            return Err(refused(refusal));
        }
        let staged = early.or_else(|| self.stage(&metadata, &bytes));
        body.file_bytes = staged.as_ref().map(|staged| staged.bytes);

        let mut state = self.shared.lock();
        // A refreshed entry may have gone meanwhile: its handle is not brought back.
        let is_gone = metadata.revision > 0 && state.registry.row(metadata.id).is_none();
        let put = if is_gone {
            state.look(now, &metadata.scope, metadata.id).map(|_| ()).map_err(Refused::Gone)
        } else {
            state.put(now, metadata.clone(), body).map_err(refused)
        };
        if let Err(refused) = put {
            self.discard(staged);
            return Err(refused);
        }
        let is_durable = state.keep(metadata.id, staged);
        state.registry.hold(metadata.id);
        let entry = state.registry.row(metadata.id).map(|row| {
            let open = Open::Verbatim(bytes);
            let (metadata, index) = (row.metadata.clone(), row.body.index.clone());
            Pinned::new(self.shared.clone(), metadata, row.number, open, index)
        });
        drop(state);
        let entry = entry.ok_or(Refused::CacheFull)?;
        Ok(Receipt { entry, is_durable })
    }

    /// Builds the index of a body. A long one is written to its file at the same time, if it can be
    /// expected to have one: the record of the entry, which makes its handle good, waits for both.
    fn validate(
        &self,
        now: Millis,
        metadata: &Metadata,
        bytes: &[u8],
    ) -> Result<(Index, Option<Staged>), Refused> {
        let is_long = bytes.len() >= LONG && self.has_folder_for(metadata);
        let held = bytes.len() as u64;
        if !is_long || self.shared.lock().check_room(now, metadata, held).is_err() {
            return Ok((index_of(metadata.kind, bytes)?, None));
        }
        let (index, staged) = std::thread::scope(|scope| {
            let writer = std::thread::Builder::new()
                .name("cache-writer".to_owned())
                .spawn_scoped(scope, || self.stage(metadata, bytes));
            let index = index_of(metadata.kind, bytes);
            // Without a thread, the file is written afterwards.
            let staged = writer.ok().and_then(|writer| writer.join().ok()).flatten();
            (index, staged)
        });
        match index {
            Ok(index) => Ok((index, staged)),
            Err(invalid) => {
                self.discard(staged);
                Err(invalid.into())
            }
        }
    }

    fn has_folder_for(&self, metadata: &Metadata) -> bool {
        self.shared.folder.is_some() && !metadata.is_sensitive && self.storage() == Storage::Folder
    }

    fn discard(&self, staged: Option<Staged>) {
        if let Some((staged, folder)) = staged.zip(self.shared.folder.as_deref()) {
            staged.discard(folder);
        }
    }

    /// Writes the file of a body; `None` when it has none, or the folder is out of order.
    fn stage(&self, metadata: &Metadata, bytes: &[u8]) -> Option<Staged> {
        let folder = self.shared.folder.as_deref().filter(|_| self.has_folder_for(metadata))?;
        disk::stage(folder, metadata, &Table::verbatim(bytes), bytes).ok()
    }

    /// Finds an entry, counts a read, and lets its life slide. The entry stays while the answer is held.
    ///
    /// # Errors
    /// When there is no body under the handle, with what became of it.
    pub fn get(&self, now: Millis, scope: &str, id: Uuid) -> Result<Pinned, Miss> {
        self.find(now, scope, id, true)
    }

    /// Finds an entry as [`Cache::get`] does, but counts no read: its life goes on as it was.
    ///
    /// # Errors
    /// As [`Cache::get`].
    pub fn pin(&self, now: Millis, scope: &str, id: Uuid) -> Result<Pinned, Miss> {
        self.find(now, scope, id, false)
    }

    fn find(&self, now: Millis, scope: &str, id: Uuid, is_read: bool) -> Result<Pinned, Miss> {
        loop {
            let (metadata, number, body) = {
                let mut state = self.shared.lock();
                let row = if is_read {
                    state.pin(now, scope, id)?
                } else {
                    state.look(now, scope, id)?;
                    state.registry.hold(id);
                    state.registry.row(id).ok_or(Miss::UNKNOWN)?
                };
                (row.metadata.clone(), row.number, row.body.clone())
            };
            let opened = Open::new(&body, &metadata, self.shared.folder.as_deref());
            let opened = opened.and_then(|open| {
                if body.index.get().is_none() {
                    let index = index_of(metadata.kind, &open.whole()?).map_err(damage)?;
                    // Another reader may have been first, with the same index.
                    body.index.set(index).ok();
                }
                Ok(open)
            });
            let index = body.index.clone();
            let shared = self.shared.clone();
            match opened {
                Ok(open) => return Ok(Pinned::new(shared, metadata, number, open, index)),
                Err(error) => {
                    let mut state = self.shared.lock();
                    state.unpin(id, number);
                    // A newer body may have taken the file's place.
                    if state.registry.row(id).is_some_and(|row| row.number == number) {
                        return Err(state.lose(now, scope, id, &error));
                    }
                }
            }
        }
    }

    /// Describes an entry, and counts nothing.
    ///
    /// # Errors
    /// As [`Cache::get`].
    pub fn peek(&self, now: Millis, scope: &str, id: Uuid) -> Result<Metadata, Miss> {
        self.shared.lock().look(now, scope, id)
    }

    /// Describes the entries of a scope, the one used last first.
    pub fn list(&self, now: Millis, scope: &str) -> Vec<Metadata> {
        let mut state = self.shared.lock();
        state.expire(now);
        state.registry.list(scope).map(|row| row.metadata.clone()).collect()
    }

    /// Says what a scope holds.
    pub fn usage(&self, now: Millis, scope: &str) -> Usage {
        let mut state = self.shared.lock();
        state.expire(now);
        Usage {
            entries: state.registry.list(scope).count(),
            bytes: state.registry.bytes_of(scope),
            total_bytes: state.registry.bytes(),
        }
    }

    /// Deletes an entry.
    ///
    /// # Errors
    /// As [`Cache::get`].
    pub fn delete(&self, now: Millis, scope: &str, id: Uuid) -> Result<(), Miss> {
        let mut state = self.shared.lock();
        state.look(now, scope, id)?;
        state.remove(now, id, Reason::Deleted);
        Ok(())
    }

    /// Deletes the entries of a scope, and returns how many there were.
    pub fn clear(&self, now: Millis, scope: &str) -> usize {
        let mut state = self.shared.lock();
        state.expire(now);
        let ids: Vec<Uuid> = state.registry.list(scope).map(|row| row.metadata.id).collect();
        ids.iter().for_each(|id| state.remove(now, *id, Reason::Deleted));
        ids.len()
    }

    /// Takes out what has expired, compresses what is idle, and returns when there is something to do again.
    ///
    /// Takes as long as compressing some 32 MiB at most; other calls are answered meanwhile.
    pub fn tick(&self, now: Millis) -> Option<Millis> {
        self.shared.lock().tick(now);
        idle::rest(&self.shared, now)
    }
}

fn damage(invalid: Invalid) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, invalid)
}

#[expect(clippy::disallowed_methods, reason = "the one place where handles are made")]
fn new_id() -> Uuid {
    Uuid::new_v4()
}
