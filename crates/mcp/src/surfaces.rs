//! The vocabularies: one folder each. None knows another.

pub mod browser;
pub mod canonical;
pub mod operations;
