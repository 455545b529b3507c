//! Why a filter has no outputs.

use std::io;

use super::limits::{LimitKind, Limits};

/// Why a filter has no outputs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterFailure {
    /// The filter failed on this body, as with `error("…")` or `.a` of a string.
    #[error("{message}")]
    Failed {
        /// What it failed with.
        message: String,
        /// How many outputs it had before.
        outputs_before: usize,
    },
    /// The filter wanted more than it may use.
    #[error("the filter was stopped at its limit on {kind}: {limit}")]
    Limit {
        /// Which limit.
        kind: LimitKind,
        /// The limit, in its unit: see [`LimitKind`].
        limit: u64,
    },
    /// No process can run the filter.
    #[error("this filter needs the filter process: {0}")]
    Unavailable(String),
    /// The body cannot be read.
    #[error("the body cannot be read")]
    Body(#[source] io::Error),
}

impl FilterFailure {
    pub(super) fn limit(limits: &Limits, kind: LimitKind) -> Self {
        Self::Limit { kind, limit: limits.of(kind) }
    }
}
