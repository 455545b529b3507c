//! A handler written with `rmcp`, wrapped as it is: its calls become tasks.

use std::sync::Arc;

use raincheck::Raincheck;
use raincheck::mcp::gateway::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

/// A server as it was before.
struct Existing;

impl ServerHandler for Existing {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = Tool::new("render", "Renders a scene", Arc::default());
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tokio::select! {
            () = tokio::time::sleep(std::time::Duration::from_secs(60)) => {
                Ok(CallToolResult::success(vec![ContentBlock::text("rendered")]).into())
            }
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    Raincheck::builder().wrap(Existing).serve_stdio().await
}
