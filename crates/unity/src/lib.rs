//! Unity editors as tools.
//!
//! A package in the editor connects to a listener of this machine by a WebSocket, both ends prove that
//! they know the secret of `endpoint.json`, and from then on calls go one way and results the other.
//! [`Unity`] is their meeting place: a [`ToolSet`](raincheck_runtime::ToolSet) to the engine, and what
//! serves the connections that [`UnityListener`] takes. Every call is a task: it has a lane (one per
//! editor), deadlines, and exactly one end, whatever becomes of the editor, its code or the server.
//!
//! # A call's way
//!
//! 1. The engine leases the task and hands it to the `executor`, which waits until its editor takes calls
//!    and its main thread is free, and lays it on the `desk`.
//! 2. The `connection` writes it. From then on the editor may have it; that it does not is known only if
//!    it says so when it comes back [LEASE-5].
//! 3. The editor says `accepted`, runs it, and says how it ended. That is committed before the editor may
//!    forget it [LEASE-6].
//!
//! What is said about a call that nobody waits for any more is kept beside its outcome [LEASE-7].

mod settings;

mod wire;

mod specs;

mod backend;

mod session;

mod coplay;

mod lanes;

mod spelling;

mod desk;

mod owner;

mod bridge;

mod hearing;

mod connection;

mod order;

mod executor;

mod tools;

mod views;

mod places;

mod routes;

mod listening;

pub mod package;

/// What `GET /health` calls the server.
const NAME: &str = "unity-mcp";

pub use bridge::{EditorView, Unity};
pub use listening::UnityListener;
pub use owner::owned_elsewhere;
pub use places::Places;
pub use settings::Settings;
pub use specs::{ExecutionMode, Meta, Tool, canonical_name, tools};
pub use views::NO_PROJECT;
