//! Raincheck for embedders: a tool call takes a rain check.
//!
//! A caller of a long tool gets a task id when its wait ends, and comes back for the result. A
//! server of your own has that in a few lines:
//!
//! ```no_run
//! use raincheck::{ToolError, Raincheck, TaskContext, Tool};
//! use raincheck::core::progress::Progress;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Deserialize)]
//! struct Scene {
//!     frames: u64,
//! }
//!
//! #[derive(Serialize)]
//! struct Rendered {
//!     frames: u64,
//! }
//!
//! async fn render(scene: Scene, context: TaskContext) -> Result<Rendered, ToolError> {
//!     for frame in 1..=scene.frames {
//!         tokio::time::sleep(std::time::Duration::from_secs(1)).await;
//!         let (step, step_total) = (Some(frame), Some(scene.frames));
//!         context.progress(Progress { step, step_total, ..Progress::default() });
//!     }
//!     Ok(Rendered { frames: scene.frames })
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let schema = r#"{"type":"object","properties":{"frames":{"type":"integer"}},"required":["frames"]}"#;
//!     let render = Tool::new("render", "Renders a scene", render).schema(schema)?;
//!     let server = Raincheck::builder().server_info("studio", "1.0.0").tool(render);
//!     server.serve_stdio().await?;
//!     Ok(())
//! }
//! ```
//!
//! The server has the tool `render` and the tools that keep hold of its tasks, such as
//! `get_task_result`. A call of `render` that takes longer than its caller waits answers with a
//! handle, and the task goes on.
//!
//! # Parts
//! [`core`] is the contract as data, [`runtime`] the engine. Features choose the rest: `mcp` (on by
//! default) the MCP facade, `cache` handles for answers that are too large to send, `loopback` links to artifacts, `http` Streamable HTTP, `process` any program as a tool, `schemars` input
//! schemas derived from types.

mod begin;

mod builder;

mod tool;

mod tool_error;

#[cfg(feature = "http")]
mod http;

#[cfg(feature = "loopback")]
mod listener;

#[cfg(feature = "loopback")]
mod sharing;

mod child;

#[cfg(feature = "cache")]
pub use raincheck_cache as cache;
pub use raincheck_core as core;
#[cfg(feature = "loopback")]
pub use raincheck_loopback as loopback;
#[cfg(feature = "mcp")]
pub use raincheck_mcp as mcp;
#[cfg(feature = "oauth")]
pub use raincheck_oauth as oauth;
#[cfg(feature = "process")]
pub use raincheck_process as process;
pub use raincheck_runtime as runtime;

pub use builder::{Builder, Raincheck};
#[cfg(feature = "process")]
pub use child::supervisor;
pub use child::{Role, child_main};
#[cfg(feature = "http")]
pub use http::HttpConfig;
#[cfg(feature = "loopback")]
pub use listener::LoopbackConfig;
#[cfg(feature = "oauth")]
pub use raincheck_oauth::OAuth;
pub use raincheck_runtime::TaskContext;
#[cfg(feature = "loopback")]
pub use sharing::{Sharing, Standing};
pub use tool::Tool;
pub use tool_error::ToolError;

/// The example of the README, compiled.
#[cfg(all(doctest, feature = "mcp"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
