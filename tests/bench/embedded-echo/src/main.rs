//! One tool, `echo`, as a closure in a Raincheck server: each call is a task, without a program.
//! Tasks are in memory, or with an argument in that file, at durability `full`.

use raincheck::core::ids::LaneId;
use raincheck::core::lane;
use raincheck::{ToolError, Raincheck, TaskContext, Tool};
use raincheck_store_sqlite::{Options, SqliteStore};
use serde_json::Value;

async fn echo(inputs: Value, _context: TaskContext) -> Result<Value, ToolError> {
    Ok(inputs)
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let echo = Tool::new("echo", "Answers", echo).schema(r#"{"type":"object"}"#)?.lane("wide");
    let mut server = Raincheck::builder();
    if let Some(path) = std::env::args_os().nth(1) {
        server = server.store(SqliteStore::new(Options::full(path)));
    }
    server
        .server_info("embedded", "0.1.0")
        .lane(LaneId::from("wide"), lane::Config::new(16, 1_000_000))
        .tool(echo)
        .serve_stdio()
        .await?;
    Ok(())
}
