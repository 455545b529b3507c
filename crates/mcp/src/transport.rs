//! How clients are reached.

mod refusals;

#[cfg(feature = "http")]
pub mod http;

pub mod stdio;
