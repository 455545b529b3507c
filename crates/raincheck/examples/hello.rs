//! The smallest server: one tool, and the task tools that come with it.

use raincheck::{Raincheck, TaskContext, Tool, ToolError};

async fn greet(name: String, _: TaskContext) -> Result<String, ToolError> {
    Ok(format!("hello {name}"))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let greet = Tool::new("greet", "Greets somebody", greet);
    Raincheck::builder().tool(greet).serve_stdio().await
}
