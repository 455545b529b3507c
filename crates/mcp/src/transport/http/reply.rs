//! Responses that are made at once: refusals, and what has no answer.

use std::borrow::Cow;

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde::Serialize;

use super::body::HttpBody;
use super::channel::{End, Inlet, Out};
use crate::transport::refusals::Refused;
use crate::wire::Id;

pub(super) const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";

/// Why a request is not served.
#[derive(Debug)]
pub(super) enum Reply {
    /// An error of the protocol.
    Error(StatusCode, Refused),
    /// The request is none of the protocol.
    Plain(StatusCode, Cow<'static, str>),
    /// The method is not served here; these are.
    NotAllowed(&'static str),
}

impl Reply {
    pub(super) fn plain(status: StatusCode, words: impl Into<Cow<'static, str>>) -> Self {
        Self::Plain(status, words.into())
    }

    /// The service takes no further request.
    pub(super) const fn ending() -> Self {
        Self::Plain(StatusCode::SERVICE_UNAVAILABLE, Cow::Borrowed("the server is about to end"))
    }

    pub(super) const fn not_allowed(allowed: &'static str) -> Self {
        Self::NotAllowed(allowed)
    }

    /// An error under the id of its request.
    pub(super) const fn error(status: StatusCode, id: Option<Id>, error: ErrorData) -> Self {
        Self::Error(status, Refused::new(id, error))
    }

    pub(super) fn into_response(self) -> Response<HttpBody> {
        match self {
            Self::Error(status, refused) => json(status, &refused),
            Self::Plain(status, words) => plain(status, words),
            Self::NotAllowed(allowed) => {
                let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "this is not served here");
                response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
                response
            }
        }
    }
}

/// Writes a refusal in words.
pub(super) fn plain(status: StatusCode, words: impl Into<Cow<'static, str>>) -> Response<HttpBody> {
    let words = words.into();
    let error = ErrorData::new(ErrorCode::INVALID_REQUEST, words, None);
    let mut response = json(status, &Refused::new(None, error));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Refuses a request whose owner is not known.
pub(super) fn unauthorized() -> Response<HttpBody> {
    let words =
        "the request names nobody whom this server knows; send `Authorization: Bearer TOKEN`";
    let mut response = plain(StatusCode::UNAUTHORIZED, words);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Says that something was taken in and has no answer.
pub(super) fn accepted() -> Response<HttpBody> {
    typed(StatusCode::ACCEPTED, None, HttpBody::of(""))
}

/// Writes a body in JSON.
pub(super) fn json(status: StatusCode, body: &impl Serialize) -> Response<HttpBody> {
    let bytes = serde_json::to_vec(body).unwrap_or_default();
    typed(status, Some(JSON), HttpBody::of(bytes))
}

/// Writes the answer to a request, which is all there is to say.
pub(super) fn answer(status: StatusCode, out: Out, inlet: Inlet) -> Response<HttpBody> {
    typed(status, Some(JSON), HttpBody::answer(out, inlet))
}

/// Begins a stream of events.
pub(super) fn events(body: HttpBody) -> Response<HttpBody> {
    let mut response = typed(StatusCode::OK, Some(EVENTS), body);
    // Some proxies hold a stream back until it has grown.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Makes a response.
pub(super) fn typed(
    status: StatusCode,
    form: Option<&'static str>,
    body: HttpBody,
) -> Response<HttpBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(form) = form {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(form));
    }
    response
}

/// Returns the status of an answer in the revisions without sessions; the others know only 200.
pub(super) const fn status(end: End) -> StatusCode {
    match end {
        End::Error(-32022..=-32020) => StatusCode::BAD_REQUEST,
        End::Error(-32601) => StatusCode::NOT_FOUND,
        End::Result | End::Error(_) => StatusCode::OK,
    }
}
