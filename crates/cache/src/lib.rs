//! Keeps large answers under a handle: a page, an outline, a search or a filter reads what it needs of
//! the bytes and never parses them twice.
//!
//! The crate knows nothing of tasks, of MCP or of an async runtime, and reads no clock.

mod filter;
mod json;
mod outline;
mod page;
mod sample;
#[cfg(test)]
mod samples;
mod search;
mod shelf;

pub use filter::{
    BodyKey, ChildProgram, Filter, FilterFailure, Filters, FiltersConfig, InvalidFilter, LimitKind,
    Limits, MAX_FILTER_BYTES, Outputs, run_child,
};
pub use json::{
    Child, Children, Index, Invalid, InvalidPointer, Kind, MAX_DEPTH, Node, NotFound, Pointer,
    Scanner, Source, View, Why, scan, scan_text,
};
pub use outline::DEFAULT_OUTLINE_BYTES;
pub use page::{
    Alternative, At, BadCursor, Budget, DEFAULT_PAGE_BYTES, Page, PageError, PageRequest,
    Pagination,
};
pub use sample::Sample;
pub use search::{Hit, Hits, InvalidQuery, MAX_HITS, Query};
pub use shelf::{
    BodyKind, Cache, Config, Metadata, Millis, Miss, New, Pinned, Reason, Receipt, Refused, Rerun,
    Storage, Usage, parse_id,
};
