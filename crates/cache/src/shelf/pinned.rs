//! An entry in use.

use std::fmt;
use std::sync::{Arc, OnceLock};

use uuid::Uuid;

use crate::json::{Index, Source, View};
use crate::shelf::body::Open;
use crate::shelf::entry::Metadata;

/// What holds the body of an entry that is in use.
pub(super) trait Holder: Send + Sync {
    /// Ends the use of a body.
    fn unpin(&self, id: Uuid, number: u64);
}

/// An entry in use: it is not evicted, and its body stays readable, until this is dropped.
pub struct Pinned {
    shared: Arc<dyn Holder>,
    metadata: Metadata,
    number: u64,
    body: Open,
    index: Arc<OnceLock<Index>>,
}

impl Pinned {
    pub(super) fn new(
        shared: Arc<dyn Holder>,
        metadata: Metadata,
        number: u64,
        body: Open,
        index: Arc<OnceLock<Index>>,
    ) -> Self {
        Self { shared, metadata, number, body, index }
    }

    /// Describes the entry as it was when it was found.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns what tells this body from any other, also from another one under the same handle: what a
    /// cursor is bound to ([`PageRequest::binding`](crate::PageRequest::binding)).
    pub fn binding(&self) -> u128 {
        self.metadata.id.as_u128() ^ u128::from(self.metadata.revision)
    }

    /// Returns the bytes of the body.
    ///
    /// Reads of a body in blocks go one after another, and unpack a block once while they stay near it.
    pub fn source(&self) -> &dyn Source {
        &self.body
    }

    /// Returns the view of the body.
    #[expect(clippy::expect_used, reason = "no entry is handed out before its index is built")]
    pub fn view(&self) -> View<'_> {
        View::new(&self.body, self.index.get().expect("an index"))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.shared.unpin(self.metadata.id, self.number);
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned")
            .field("id", &self.metadata.id)
            .field("revision", &self.metadata.revision)
            .finish_non_exhaustive()
    }
}
