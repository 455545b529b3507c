//! Keeps large answers under a handle: a page, an outline, a search or a filter reads what it needs of
//! the bytes and never parses them twice.
//!
//! The crate knows nothing of tasks, of MCP or of an async runtime, and reads no clock.
