//! Cutting a body into pages.

mod tables;

pub(crate) use self::tables::Tables;
