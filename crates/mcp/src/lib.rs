//! MCP in front of an engine: every tool call is a task, and becomes a task id when it takes long.
//!
//! A [`Server`] answers requests in the words of its [`Surface`]s, [`serve_stdio`] holds a session on
//! two streams. [`surfaces::canonical::Canonical`] calls every tool of the engine by its name and adds
//! the task tools, such as `submit_task` and `get_task_result`; [`surfaces::browser::Browser`] has the four
//! tools of a browser. [`Layer`]s wrap the calls of all of them; with the feature `cache`, `layers::cache` keeps
//! what is too large to send.
//!
//! [`Control`] answers most of them for the command line of the server's owner.
//!
//! Bytes stay bytes: arguments reach a tool, and results their caller, as they were written. This is
//! the only crate that names `rmcp`.
//!
//! The modules below are the rooms of this crate; each uses only those above it, as the table in
//! `docs/architecture.md` says. Requirement ids in brackets (`[CALL-1]`) refer to `docs/spec`.

mod wire;

mod answer;

mod caller;

mod call;

mod surface;

pub mod surfaces;

pub mod layers;

mod server;

mod control;

mod transport;

pub mod gateway;

pub mod client;

pub use self::answer::{Answer, Block, Failure, Mark, Parts, Refused, Shows};
pub use self::call::Told;
pub use self::caller::{Asking, Caller, ClientTimeouts, Connection, Peer};
pub use self::control::{Control, Reply};
pub use self::server::{Clash, Options, Server, Starter};
pub use self::surface::{
    Answered, Call, Desk, Extension, Layer, Links, Method, Notice, Notices, Shown, Surface,
};
pub use self::surfaces::canonical::{Listing, Record};
#[cfg(feature = "http")]
pub use self::transport::http::{self, HttpBody, HttpOptions, HttpService};
pub use self::transport::stdio::{
    self, Found, Link, Owners, Streams, serve_attached, serve_shared, serve_stdio, take_stdout,
};
pub use self::wire::check_schema;
