//! MCP in front of an engine: every tool call is a task, and becomes a handle when it takes long.
//!
//! [`Facade`] answers requests, [`serve_stdio`] holds a session on two streams. A call of a tool by
//! its name goes one way, the budgeted call: the result if it comes within the caller's patience,
//! else a handle and the next call to make. Beside the tools of the engine stand the six canonical
//! ones, `submit_task` to `get_task_result`.
//!
//! [`Control`] answers the same six but one for the command line of the server's owner.
//!
//! Bytes stay bytes: arguments reach a tool, and results their caller, as they were written. This is
//! the only crate that names `rmcp`.
//!
//! Requirement ids in brackets (`[CALL-1]`) refer to `docs/spec`.

mod server;

mod call;

mod budget;

mod progress;

mod tools;

mod dialect;

mod answer;

mod arguments;

mod strict;

mod schema;

mod cursor;

mod instructions;

mod connection;

mod links;

mod control;

pub mod stdio;

pub mod client;

pub use self::budget::ClientTimeouts;
pub use self::control::{Control, Reply};
pub use self::links::Links;
pub use self::schema::check_schema;
pub use self::server::{Dialect, Facade, Options, Starter};
pub use self::stdio::{Streams, serve_stdio, take_stdout};
pub use self::tools::canonical::{Listing, Record};
