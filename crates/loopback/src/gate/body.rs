//! Bodies: of the right type, within the cap, in time, and whole [SEC-3, SEC-6].

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use http_body::Body as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::one;
use crate::awake::{self, Elapsed};
use crate::options::Policy;
use crate::refusal::Refusal;

/// Checks what the head says about the body, before any of it is read.
pub(super) fn check(request: &Request, policy: &Policy) -> Result<(), Refusal> {
    let headers = request.headers();
    let has_body = !request.body().is_end_stream();
    if has_body && headers.get_all(CONTENT_ENCODING).iter().any(|value| value != "identity") {
        return Err(Refusal::EncodedBody);
    }
    // An empty form can be posted by any page, so that an empty POST needs the type too.
    let needs_type = policy.json_bodies && (has_body || request.method() == Method::POST);
    if needs_type && !is_json(headers) {
        return Err(Refusal::NotJson);
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > policy.max_body as u64) {
        return Err(Refusal::LargeBody { max: policy.max_body });
    }
    Ok(())
}

/// Reads the whole body.
pub(super) async fn read(body: Body, max: usize, limit: Duration) -> Result<Bytes, Refusal> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    match awake::timeout(limit, Limited::new(body, max).collect()).await {
        Err(Elapsed) => Err(Refusal::SlowBody),
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::LargeBody { max }),
        Ok(Err(_)) => Err(Refusal::BrokenBody),
    }
}

/// Returns whether the one content type is JSON, whatever parameters it has.
fn is_json(headers: &HeaderMap) -> bool {
    let Ok(Some(value)) = one(headers, &CONTENT_TYPE) else { return false };
    let essence = |value: &HeaderValue| {
        let text = value.to_str().ok()?;
        Some(text.split(';').next()?.trim().to_ascii_lowercase())
    };
    essence(value).as_deref() == Some("application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_json_with_any_parameters_and_nothing_else_is() {
        let typed = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(value));
            is_json(&headers)
        };
        for good in ["application/json", "Application/JSON", "application/json; charset=utf-8"] {
            assert!(typed(good), "{good}");
        }
        for bad in ["", "text/plain", "application/jsonp", "text/plain; application/json"] {
            assert!(!typed(bad), "[SEC-3] {bad}");
        }
        let mut two = HeaderMap::new();
        two.append(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        two.append(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        assert!(!is_json(&two), "[SEC-3] two types are none");
    }
}
