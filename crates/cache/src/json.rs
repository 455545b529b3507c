//! The validating pass, the index that it builds, and views through it.

mod derived;
mod events;
mod index;
mod invalid;
mod pointer;
mod scan;
mod source;
pub(crate) mod text;
mod view;
mod walk;

pub(crate) use self::{
    derived::Derived,
    events::{Event, Events},
    index::{mark_at, to_usize},
    pointer::unescape,
};
pub use self::{
    index::{Index, Kind, Node},
    invalid::{Invalid, Why},
    pointer::{InvalidPointer, Pointer},
    scan::{MAX_DEPTH, Scanner, scan, scan_text},
    source::Source,
    view::{NotFound, View},
    walk::{Child, Children},
};
