//! The facade's own tools, one module per surface.

pub(crate) mod browser;
pub(crate) mod canonical;
