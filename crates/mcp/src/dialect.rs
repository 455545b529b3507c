//! The vocabularies of the surfaces, as tables: one module per dialect.

pub(crate) mod browser;
pub(crate) mod canonical;
