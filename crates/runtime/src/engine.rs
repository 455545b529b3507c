//! The engine: [`Options`] make a [`Service`], which owns what runs, and a handle to it.

mod dispatch;
mod drive;
mod heartbeat;
mod options;
mod service;
mod shared;
mod shutdown;
mod sink;
mod sweep;
mod timers;
mod tools;

pub use options::Options;
pub use service::{Service, start};

pub(crate) use shared::Shared;
