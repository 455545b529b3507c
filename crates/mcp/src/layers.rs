//! What wraps the calls of every surface, one folder each.

#[cfg(feature = "cache")]
pub mod cache;
pub mod native;
