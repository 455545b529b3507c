//! The answers to requests that reach no handler.

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use raincheck_core::error::{Guarantee, Kind};
use serde::Serialize;

/// Why a request reaches no handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No `Host`, several, or none that could be one.
    MalformedHost,
    /// The `Host` is another's.
    ForeignHost,
    /// The `Origin` is not allowed here.
    ForeignOrigin,
    /// A page of another site made the browser send it.
    ForeignSite,
    /// The target is too long.
    LongTarget,
    /// The header lines are too long.
    LongHead,
    /// The secret is missing, or is no bearer.
    NoBearer,
    /// The token is not to be believed.
    WrongBearer,
    /// The token has not the scopes that it needs.
    NarrowBearer,
    /// Whose the token is cannot be found out for now.
    UncheckedBearer,
    /// The body is encoded.
    EncodedBody,
    /// The body is not JSON.
    NotJson,
    /// The body is over the cap.
    LargeBody {
        /// The cap.
        max: usize,
    },
    /// The body did not come in time.
    SlowBody,
    /// Its owner's other bodies took too long to be read.
    ManyBodies,
    /// The body broke off.
    BrokenBody,
    /// The nonce is none.
    BadNonce,
    /// Only a WebSocket is served here.
    NoWebSocket,
    /// Nothing is here.
    NoRoute,
}

/// What to do when a page was the caller.
const NOT_FOR_PAGES: &str =
    "web pages may not call this server; use the program or extension that is paired with it";

impl Refusal {
    const fn status(self) -> StatusCode {
        match self {
            Self::MalformedHost | Self::BrokenBody | Self::BadNonce | Self::NoWebSocket => {
                StatusCode::BAD_REQUEST
            }
            Self::ForeignHost | Self::ForeignOrigin | Self::ForeignSite | Self::NarrowBearer => {
                StatusCode::FORBIDDEN
            }
            Self::LongTarget => StatusCode::URI_TOO_LONG,
            Self::LongHead => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::NoBearer | Self::WrongBearer => StatusCode::UNAUTHORIZED,
            Self::EncodedBody | Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::LargeBody { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::ManyBodies | Self::UncheckedBearer => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoRoute => StatusCode::NOT_FOUND,
        }
    }

    const fn kind(self) -> Kind {
        match self {
            Self::ForeignHost
            | Self::ForeignOrigin
            | Self::ForeignSite
            | Self::NoBearer
            | Self::WrongBearer
            | Self::NarrowBearer => Kind::Unauthorized,
            Self::UncheckedBearer => Kind::PeerNotReady,
            Self::LargeBody { .. } => Kind::TooLarge,
            Self::ManyBodies => Kind::QueueFull,
            Self::NoRoute => Kind::NotFound,
            Self::MalformedHost
            | Self::LongTarget
            | Self::LongHead
            | Self::EncodedBody
            | Self::NotJson
            | Self::SlowBody
            | Self::BrokenBody
            | Self::BadNonce
            | Self::NoWebSocket => Kind::InvalidRequest,
        }
    }

    /// Tells whether it is about the bearer, so that the answer says how to get one.
    pub(crate) const fn is_of_bearer(self) -> bool {
        matches!(self, Self::NoBearer | Self::WrongBearer | Self::NarrowBearer)
    }

    /// Returns what was wrong with a bearer that was shown, in the words of RFC 6750.
    pub(crate) fn bearer_error(self) -> Option<&'static str> {
        let words =
            [(Self::WrongBearer, "invalid_token"), (Self::NarrowBearer, "insufficient_scope")];
        words.into_iter().find(|(refusal, _)| *refusal == self).map(|(_, words)| words)
    }

    /// Returns what is wrong and what to do next. Nothing of the request is repeated.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::MalformedHost => (
                "`Host` is missing or malformed",
                "send one `Host` header with the name and port of the url in endpoint.json",
            ),
            Self::ForeignHost => (
                "`Host` is not this listener",
                "call it by the name and port of the url in endpoint.json, or by a name that its \
                 configuration lists",
            ),
            Self::ForeignOrigin => ("`Origin` is not allowed here", NOT_FOR_PAGES),
            Self::ForeignSite => {
                ("`Sec-Fetch-Site` tells of a page of another site", NOT_FOR_PAGES)
            }
            Self::LongTarget => ("the request target is too long", "send a shorter path and query"),
            Self::LongHead => ("the headers are too long", "send fewer or shorter headers"),
            Self::NoBearer | Self::WrongBearer => {
                ("`Authorization` carries no valid bearer", self.kind().entry().hint)
            }
            Self::NarrowBearer => (
                "the token lacks a scope that this server asks for",
                "ask for a token with the scopes in `WWW-Authenticate`",
            ),
            Self::UncheckedBearer => (
                "the keys that tokens are checked with cannot be reached",
                "call again; the server's log says what is in the way",
            ),
            Self::EncodedBody => ("`Content-Encoding` is not supported", "send the body as it is"),
            Self::NotJson => (
                "`Content-Type` is not `application/json`",
                "send JSON with `Content-Type: application/json`",
            ),
            Self::LargeBody { .. } => ("the body is larger than is read", "send at most max_bytes"),
            Self::SlowBody => ("the body did not come in time", "send the whole body at once"),
            Self::ManyBodies => (
                "too many bodies of this owner are on their way",
                "send the request again when others are through",
            ),
            Self::BrokenBody => ("the body broke off or is malformed", self.kind().entry().hint),
            Self::BadNonce => (
                "`nonce` is not 1 to 128 characters of base64url",
                "send random bytes as base64url without padding",
            ),
            Self::NoWebSocket => (
                "only a WebSocket is served here",
                "ask for one: GET with Upgrade: websocket and Sec-WebSocket-Version: 13",
            ),
            Self::NoRoute => ("nothing is here", "check the path"),
        }
    }
}

#[derive(Serialize)]
struct Body {
    code: &'static str,
    message: &'static str,
    retryable: bool,
    guarantee: &'static str,
    recovery: &'static str,
    hint: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_bytes: Option<usize>,
}

impl IntoResponse for Refusal {
    /// Writes the error object, and ends the connection: what follows on it was not read.
    fn into_response(self) -> Response {
        let (message, hint) = self.words();
        let is_passing = matches!(self, Self::ManyBodies | Self::UncheckedBearer);
        let body = Body {
            code: self.kind().as_str(),
            message,
            retryable: is_passing,
            guarantee: Guarantee::NotExecuted.as_str(),
            recovery: self.kind().entry().recovery.as_str(),
            hint,
            max_bytes: if let Self::LargeBody { max } = self { Some(max) } else { None },
        };
        let mut response = json(self.status(), &body);
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if is_passing {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if matches!(self, Self::NoBearer | Self::WrongBearer) {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Writes an answer in JSON.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let bytes = serde_json::to_vec(body).unwrap_or_default();
    let mut response = (status, bytes).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
