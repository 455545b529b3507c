//! Bodies: of the right type, within the cap, in time, and whole [SEC-3, SEC-6].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use http_body::Body as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use raincheck_core::scope::Scope;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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

/// What bodies of each owner are being read, in bytes.
#[derive(Debug)]
pub(super) struct Bodies {
    /// How many bytes may be read at once.
    most: usize,
    rooms: Mutex<HashMap<Option<Scope>, Weak<Semaphore>>>,
}

impl Bodies {
    pub(super) fn new(most: usize) -> Self {
        Self { most, rooms: Mutex::default() }
    }

    /// Waits for room for a body, in the order of asking; it is free again when what is returned is
    /// dropped.
    ///
    /// # Cancel safety
    /// Safe: the place in line is given up.
    async fn room(&self, owner: Option<Scope>, n_bytes: usize) -> Option<OwnedSemaphorePermit> {
        let n_bytes = u32::try_from(n_bytes.min(self.most)).unwrap_or(u32::MAX);
        self.of(owner).acquire_many_owned(n_bytes).await.ok()
    }

    fn of(&self, owner: Option<Scope>) -> Arc<Semaphore> {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = rooms.get(&owner).and_then(Weak::upgrade) {
            return room;
        }
        rooms.retain(|_, room| room.strong_count() > 0);
        let room = Arc::new(Semaphore::new(self.most));
        rooms.insert(owner, Arc::downgrade(&room));
        room
    }
}

/// Reads the whole body, once there is room for it among those of its owner.
pub(super) async fn read(
    body: Body,
    max: usize,
    limit: Duration,
    (bodies, owner): (&Bodies, Option<Scope>),
) -> Result<Bytes, Refusal> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let n_bytes = body.size_hint().upper().and_then(|n| usize::try_from(n).ok()).unwrap_or(max);
    let room = awake::timeout(limit, bodies.room(owner, n_bytes.min(max))).await;
    let Ok(_room) = room else { return Err(Refusal::ManyBodies) };
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
