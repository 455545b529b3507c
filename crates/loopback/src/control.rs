//! `POST /control/call`: calls by programs of the same user, such as a command line, in JSON.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

use crate::options::Policy;

/// The route.
pub const PATH: &str = "/control/call";

/// The most bytes of one call.
const MAX_BODY: usize = 256 * 1024;

/// Who answers.
#[async_trait]
pub trait Calls: Send + Sync + 'static {
    /// Answers the body of one call. The caller has shown the listener's secret [SEC-3].
    ///
    /// Dropped when the caller goes away.
    async fn call(&self, body: &[u8]) -> Reply;
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Its HTTP status; what is none becomes 500.
    pub status: u16,
    /// A JSON text.
    pub body: String,
}

/// Returns the route, to be served under [`policy`].
pub fn router(calls: Arc<dyn Calls>) -> Router {
    Router::new().route(PATH, post(answer)).with_state(Calling(calls))
}

/// Returns the policy of calls: the strictest, for small bodies, and for this machine alone.
#[must_use]
pub fn policy() -> Policy {
    Policy { max_body: MAX_BODY, is_local: true, ..Policy::default() }
}

#[derive(Clone)]
struct Calling(Arc<dyn Calls>);

impl fmt::Debug for Calling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calling")
    }
}

async fn answer(State(Calling(calls)): State<Calling>, body: Bytes) -> Response {
    let Reply { status, body } = calls.call(&body).await;
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
