//! How clients are reached.

pub mod stdio;
