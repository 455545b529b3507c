//! The engine of Raincheck on tokio: the only place that spawns, sleeps, reads clocks and makes
//! identities.
//!
//! A [`ToolSet`] brings tools and the [`Executor`] that runs them; [`start`] makes a [`Service`],
//! which owns everything that runs, and a [`Handle`], the only way in. The store decides: the
//! engine posts what happened and tells executors when to stop.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use raincheck_core::content::{Content, Json};
//! use raincheck_core::scope::Scope;
//! use raincheck_core::task::Outcome;
//! use raincheck_core::tool::ToolSpec;
//! use raincheck_runtime::{Functions, Options, Request, Submission, start};
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let echo = ToolSpec::new("echo", "Says it again", Json::empty_object());
//! let tools = Functions::new().with(echo, |attempt, _context| async move {
//!     Outcome::Succeeded(vec![Content::Json(attempt.inputs)])
//! });
//! let (handle, service) = start(Options::in_memory().with_tools(Arc::new(tools)));
//! let stop = CancellationToken::new();
//! let client = async {
//!     let request = Request::new("echo", Json::parse(r#"{"say":"hello"}"#)?, Scope::local());
//!     let Submission::Task(accepted) = handle.submit(request).await? else {
//!         return Err("an echo is a task".into());
//!     };
//!     let wait = Duration::from_secs(10);
//!     let view = handle.wait_end(&Scope::local(), accepted.record.id(), wait).await?;
//!     stop.cancel();
//!     Ok::<_, Box<dyn std::error::Error>>(view.record.state)
//! };
//! let (state, ()) = tokio::join!(client, service.run(stop.clone()));
//! assert_eq!(state?.as_str(), "succeeded");
//! # Ok(())
//! # }
//! ```
//!
//! Requirement ids in brackets (`[CANCEL-3]`) refer to `docs/spec`.

mod clock;

mod ids;

mod executor;

mod asking;

mod context;

mod toolset;

mod functions;

mod stop;

mod running;

mod kernel;

mod options;

mod tools;

mod engine;

mod service;

mod handle;

mod waits;

mod live;

mod shards;

mod observe;

mod logs;

pub use clock::{Clock, ManualClock, SystemClock};
pub use context::{AttemptProtocol, TaskContext};
pub use executor::{Attempt, Executor, StartReport};
pub use functions::Functions;
pub use handle::{
    Accepted, AskedBefore, Called, Cancelled, Given, Handle, Kept, Request, Submission, TaskHandle,
    Told, ToolCall, View, Waited,
};
pub use ids::{Ids, OsIds};
pub use logs::FileLogs;
pub use options::Options;
pub use running::sleep_running;
pub use service::{Service, start};
pub use stop::StopReason;
pub use tools::ToolsWatch;
pub use toolset::{CONTROL_LANE, Call, Route, TaskPlan, ToolSet, ToolsChanged};
pub use waits::Watch;
