//! A service over an engine in memory, and what a client sends it.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use raincheck_core::scope::Scope;
use raincheck_mcp::{HttpBody, HttpOptions, HttpService, Options, Server};
use raincheck_runtime::{Handle, start};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use crate::tools;

/// A running service.
pub(crate) struct Web {
    pub(crate) service: HttpService,
    pub(crate) handle: Handle,
    _engine: JoinSet<()>,
}

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) status: StatusCode,
    pub(crate) session: Option<String>,
    pub(crate) form: String,
    pub(crate) text: String,
}

impl Read {
    /// Returns the JSON that it is.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// Returns the messages of a stream of events, or the one that it is.
    pub(crate) fn messages(&self) -> Vec<Value> {
        if self.form == "application/json" {
            return vec![self.json()];
        }
        let data = self.text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).expect("JSON")).collect()
    }

    /// Returns the error code of the protocol.
    pub(crate) fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {self:?}"))
    }
}

impl Web {
    pub(crate) fn start() -> Self {
        Self::start_with(Options::new("0.0.0"), HttpOptions::new(Some(Scope::local())))
    }

    pub(crate) fn start_with(options: Options, http: HttpOptions) -> Self {
        Self::start_of(tools::engine(), options, http)
    }

    pub(crate) fn start_of(
        engine: raincheck_runtime::Options,
        options: Options,
        http: HttpOptions,
    ) -> Self {
        let (handle, service) = start(engine);
        let mut engine = JoinSet::new();
        engine.spawn(service.run(CancellationToken::new()));
        let server = Server::new(handle.clone(), options, Box::new(|| ())).expect("sound tools");
        Self { service: HttpService::new(server, http), handle, _engine: engine }
    }

    /// Sends a request, and returns the response before its body is read.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Response<HttpBody> {
        let Ok(response) = self.service.clone().call(request).await;
        response
    }

    /// Sends a request and reads the response.
    pub(crate) async fn exchange(&self, request: Request<Full<Bytes>>) -> Read {
        read(self.send(request).await).await
    }

    /// Posts a message with some headers.
    pub(crate) async fn post(&self, headers: &[(&str, &str)], body: &str) -> Read {
        self.exchange(post(headers, body)).await
    }

    /// Begins a session and returns its id.
    pub(crate) async fn initialize(&self, scope: Option<&str>) -> String {
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "web", "version": "0"}}});
        let mut request = post(&[], &body.to_string());
        if let Some(scope) = scope {
            request.extensions_mut().insert(Scope::new(scope));
        }
        let read = self.exchange(request).await;
        assert_eq!(read.json()["result"]["protocolVersion"], "2025-11-25", "{read:?}");
        let session = read.session.expect("a session");
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let mut request = post(&[("Mcp-Session-Id", &session)], ready);
        if let Some(scope) = scope {
            request.extensions_mut().insert(Scope::new(scope));
        }
        assert_eq!(self.exchange(request).await.status, StatusCode::ACCEPTED);
        session
    }

    /// Calls a tool in a session.
    pub(crate) async fn call(&self, session: &str, id: u64, tool: &str, arguments: &str) -> Read {
        self.post(&[("Mcp-Session-Id", session)], &call(id, tool, arguments)).await
    }

    /// Calls a tool by a request that stands alone.
    pub(crate) async fn call_alone(&self, tool: &str, arguments: &str) -> Read {
        self.exchange(call_alone(tool, arguments, "")).await
    }

    /// Submits a task and returns its id.
    pub(crate) async fn submit(&self, tool: &str, inputs: &str) -> String {
        let arguments = format!(r#"{{"tool_name":"{tool}","inputs":{inputs}}}"#);
        let submitted = self.call_alone("submit_task", &arguments).await;
        let text = submitted.json()["result"]["content"][0]["text"].as_str().map(str::to_owned);
        let said: Value = serde_json::from_str(&text.expect("text")).expect("JSON");
        said["task_id"].as_str().expect("an id").to_owned()
    }

    /// Returns the state of the newest task.
    pub(crate) async fn state(&self) -> String {
        let listed = self.call_alone("list_tasks", "{}").await;
        let text = listed.json()["result"]["content"][0]["text"].as_str().expect("text").to_owned();
        let listed: Value = serde_json::from_str(&text).expect("JSON");
        listed["tasks"][0]["state"].as_str().expect("a task").to_owned()
    }
}

/// Reads a response to its end.
pub(crate) async fn read(response: Response<HttpBody>) -> Read {
    let status = response.status();
    let header = |name: &str| {
        let value = response.headers().get(name);
        value.map(|value| value.to_str().expect("ASCII").to_owned())
    };
    let (session, form) = (header("mcp-session-id"), header("content-type").unwrap_or_default());
    let Ok(body) = response.into_body().collect().await;
    let text = String::from_utf8(body.to_bytes().to_vec()).expect("UTF-8");
    Read { status, session, form, text }
}

/// Makes a request of a method with some headers.
pub(crate) fn request(
    method: Method,
    headers: &[(&str, &str)],
    body: &str,
) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri("/mcp").header("Host", "localhost:1");
    let given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    if !given("Accept") {
        request = request.header("Accept", "application/json, text/event-stream");
    }
    if !given("Content-Type") {
        request = request.header("Content-Type", "application/json");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(Bytes::from(body.to_owned()))).expect("a request")
}

/// Makes a POST.
pub(crate) fn post(headers: &[(&str, &str)], body: &str) -> Request<Full<Bytes>> {
    request(Method::POST, headers, body)
}

/// Writes a call.
pub(crate) fn call(id: u64, tool: &str, arguments: &str) -> String {
    let params =
        format!(r#"{{"name":"{tool}","arguments":{arguments},"_meta":{{"progressToken":{id}}}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
}

/// What every request of a revision without sessions says of itself.
pub(crate) const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

/// Makes a call that stands alone; `meta` is more of its metadata, with a comma before it.
pub(crate) fn call_alone(tool: &str, arguments: &str, meta: &str) -> Request<Full<Bytes>> {
    let params = format!(r#"{{"name":"{tool}","arguments":{arguments},"_meta":{{{META}{meta}}}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
    post(&headers, &body)
}
