//! The trace that a request belongs to, on its way to the other server.

use serde::Serialize;
use serde_json::{Map, Value};

use raincheck_core::trace::TraceContext;

/// What of a request's `_meta` is passed on: where it stands among the calls of other programs [TRACE-3].
#[derive(Debug, Serialize)]
pub(super) struct Traced<'a> {
    traceparent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracestate: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baggage: Option<&'a str>,
}

impl<'a> From<&'a TraceContext> for Traced<'a> {
    fn from(trace: &'a TraceContext) -> Self {
        Self { traceparent: trace.parent(), tracestate: trace.state(), baggage: trace.baggage() }
    }
}

/// Reads the trace in the `_meta` of a request.
pub(super) fn of_meta(meta: &str) -> Option<TraceContext> {
    let meta: Map<String, Value> = serde_json::from_str(meta).ok()?;
    let field = |name: &str| meta.get(name).and_then(Value::as_str);
    TraceContext::new(field("traceparent")?, field("tracestate"), field("baggage"))
}
