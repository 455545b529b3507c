//! A real browser as tools.
//!
//! An extension in the browser polls a listener of this machine for commands and posts what became of
//! them. [`Browser`] is both ends' meeting place: a [`ToolSet`](raincheck_runtime::ToolSet) to the
//! engine, and a [`Surface`](raincheck_loopback::Surface) to the listener. Every command is a task: it
//! has a lane (one per tab), deadlines, and exactly one end, whatever becomes of the browser, the
//! extension or the server meanwhile.
//!
//! # A command's way
//!
//! 1. The engine leases the task and hands it to the `executor`, which puts it into the `outbox`.
//! 2. The next poll of the extension takes it from there. The extension notes it down and posts
//!    `accepted`; the lease becomes a run, that is committed, and only then the answer says so [LEASE-5].
//! 3. The extension runs it and posts what became of it. That is committed before the extension may
//!    forget it [LEASE-6].
//!
//! What is posted about a command that nobody waits for any more is kept beside its outcome [LEASE-7].

mod settings;

mod wire;

mod verdict;

mod outbox;

mod lanes;

mod bridge;

mod executor;

mod routes;

mod revisions;
mod rings;

mod known;

mod address;

mod arguments;

mod actions;

mod checks;

mod files;
mod gist;
mod heard;
mod undone;

mod order;

mod shape;

mod told;

mod saving;

mod views;

mod choices;
mod configure;

mod specs;

mod tools;

mod typed;

pub mod extension;

mod owner;

mod listening;

pub use bridge::Browser;
pub use lanes::tab_of;
pub use listening::BridgeListener;
pub use owner::owned_elsewhere;
pub use settings::{Settings, Shows};
