//! What is said of an entry: while it is held, when it is refused, and when it is gone.

use std::sync::Arc;

use uuid::Uuid;

use crate::shelf::life::Millis;

/// What the bytes of a body are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyKind {
    /// One JSON value.
    Json,
    /// Lines of UTF-8.
    Text,
}

/// Describes an entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Metadata {
    /// The handle.
    pub id: Uuid,
    /// Whose it is.
    pub scope: Arc<str>,
    /// The tool that answered.
    pub tool: Arc<str>,
    /// The tool's arguments: JSON text.
    pub params: Arc<str>,
    /// What the body is.
    pub kind: BodyKind,
    /// Length of the body, uncompressed.
    pub size_bytes: u64,
    /// When this body was stored; a refreshed entry begins anew.
    pub created_at: Millis,
    /// The last read that counted.
    pub last_access_at: Millis,
    /// The first instant at which it is gone, unless it is read before.
    pub expires_at: Millis,
    /// Reads that counted.
    pub access_count: u64,
    /// The entry that this one was filtered from.
    pub parent: Option<Uuid>,
    /// The filter that made it of its parent.
    pub jq_filter: Option<Arc<str>>,
    /// Who wrote the text when it was not this program: a label that goes with every excerpt.
    pub mark: Option<Arc<str>>,
    /// Is held in memory only, and its arguments are in no tombstone.
    pub is_sensitive: bool,
    /// Was stored before anybody asked for it, so that it can be refreshed unasked, too.
    pub is_ahead: bool,
    /// How often the body was replaced under the same handle.
    pub revision: u32,
}

impl Metadata {
    /// Returns the bytes of its texts.
    pub(super) fn text_bytes(&self) -> u64 {
        let optional = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
        let texts = self.scope.len()
            + self.tool.len()
            + self.params.len()
            + optional(&self.jq_filter)
            + optional(&self.mark);
        texts as u64
    }

    /// Returns the call that brings the data again; the arguments are absent when they are sensitive or long.
    pub(super) fn rerun(&self) -> Rerun {
        let can_say = !self.is_sensitive && self.params.len() <= MAX_RERUN_PARAMS;
        Rerun { tool: self.tool.clone(), params: can_say.then(|| self.params.clone()) }
    }
}

/// The longest arguments that a tombstone holds.
const MAX_RERUN_PARAMS: usize = 2 * 1024;

/// The call that brings the data of a lost handle again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rerun {
    /// The tool.
    pub tool: Arc<str>,
    /// Its arguments as JSON text; `None` when they were sensitive or longer than 2 KiB.
    pub params: Option<Arc<str>>,
}

/// Why there is no body under a handle.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reason {
    /// Its life ended.
    Expired,
    /// It made room for others.
    Evicted,
    /// It was deleted on request.
    Deleted,
    /// It was held in memory by a process that ended, or its file is damaged or gone.
    Lost,
    /// There never was such a handle, or it is another scope's.
    Unknown,
}

impl Reason {
    /// Returns the word for answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Evicted => "evicted",
            Self::Deleted => "deleted",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
        }
    }
}

/// The answer for a handle without a body.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the cached response is {}", .reason.as_str())]
pub struct Miss {
    /// What became of it.
    pub reason: Reason,
    /// What to call to have it again; only for the handle's owner.
    pub rerun: Option<Rerun>,
}

impl Miss {
    pub(super) const UNKNOWN: Self = Self { reason: Reason::Unknown, rerun: None };
}

/// Reads a handle as a caller wrote it; `None` unless it has the one spelling that handles are given in.
pub fn parse_id(text: &str) -> Option<Uuid> {
    let id = Uuid::try_parse(text).ok()?;
    let mut buffer = Uuid::encode_buffer();
    (id.hyphenated().encode_lower(&mut buffer) == text).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::parse_id;

    #[test]
    fn a_handle_has_one_spelling() {
        let id = "67e55044-10b1-426f-9247-bb680e5fe0c8";
        assert_eq!(parse_id(id).expect("a handle").to_string(), id);
        let long = "9".repeat(100_000);
        for odd in [
            "",
            "../../etc/hostname",
            "67e55044-10b1-426f-9247-bb680e5fe0c8\n",
            " 67e55044-10b1-426f-9247-bb680e5fe0c8",
            "67E55044-10B1-426F-9247-BB680E5FE0C8",
            "67e5504410b1426f9247bb680e5fe0c8",
            "{67e55044-10b1-426f-9247-bb680e5fe0c8}",
            "urn:uuid:67e55044-10b1-426f-9247-bb680e5fe0c8",
            "１２３",
            "null",
            &long,
        ] {
            assert_eq!(parse_id(odd), None, "{odd:.50}");
        }
    }
}
