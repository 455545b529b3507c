//! A tool behind MCP over HTTP, mounted in a listener beside whatever else that serves.
//!
//! ```sh
//! cargo run --package raincheck --features http --example http
//! ```

#![expect(clippy::print_stdout, reason = "the address is for whoever started it")]

use raincheck::core::scope::Scope;
use raincheck::loopback::{Bearer, Options, Policy, at, bind};
use raincheck::mcp::HttpOptions;
use raincheck::{Raincheck, TaskContext, Tool, ToolError};
use tokio_util::sync::CancellationToken;

async fn double(n: u64, _: TaskContext) -> Result<u64, ToolError> {
    n.checked_mul(2).ok_or_else(|| ToolError::new("the number is too large"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stop = CancellationToken::new();
    let server = Raincheck::builder().tool(Tool::new("double", "Doubles a number", double));
    // Whoever is let in below owns the same tasks. A layer that knows its callers puts the `Scope` of each
    // into the extensions of the request instead.
    let http = HttpOptions::new(Some(Scope::local()));
    let (mcp, engine) = server.into_service(http, stop.clone())?;
    let policy = Policy { bearer: Bearer::Optional, ..Policy::default() };
    let (listener, info) = bind(Options::new("double")?.serving(at("/mcp", mcp), policy)).await?;
    println!("MCP at {}/mcp until Ctrl-C", info.url);
    let until_told = async {
        let told = tokio::signal::ctrl_c().await;
        stop.cancel();
        told
    };
    // The listener goes on until the last requests are answered.
    let over = CancellationToken::new();
    let engine = async {
        engine.await;
        over.cancel();
    };
    let (told, (), ()) = tokio::join!(until_told, engine, listener.run(over.clone()));
    Ok(told?)
}
