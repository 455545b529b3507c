//! Filters over bodies, in the language of jq.
//!
//! A filter that only follows paths, such as `.items[].name`, runs on the bytes of a body and its index,
//! without parsing anything. Every other runs in a process of its own, which can see nothing but the body,
//! is limited in what it may use, and can be killed: whatever a filter does, the server goes on.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "of a token, a syntax tree or a value of the engine, what is not named is all that is left"
)]

mod child;
mod deadline;
mod engine;
mod failure;
mod limits;
mod paths;
mod pool;
mod syntax;
mod text;
mod value;
mod wire;

pub use child::run_child;
pub use failure::FilterFailure;
pub use limits::{LimitKind, Limits};
pub use pool::{BodyKey, ChildProgram, Filters, FiltersConfig};
pub use text::{Filter, InvalidFilter, MAX_FILTER_BYTES};

/// What a filter yields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outputs {
    /// How many values there are.
    pub count: usize,
    /// The values as strict JSON, compact, with commas between them: the inside of an array.
    pub bytes: Vec<u8>,
}

impl Outputs {
    /// Returns the values as a JSON array.
    #[must_use]
    pub fn into_array(self) -> Vec<u8> {
        let mut array = Vec::with_capacity(self.bytes.len() + 2);
        array.push(b'[');
        array.extend_from_slice(&self.bytes);
        array.push(b']');
        array
    }
}
