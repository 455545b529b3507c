//! `GET /health`: that a server is here, and, to whoever knows the secret, that it is the right one [SEC-4].

use std::sync::Arc;

use axum::Router;
use axum::extract::RawQuery;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::StatusCode;
use serde::Serialize;

use crate::refusal::{Refusal, json};
use crate::secret::Secret;

#[derive(Serialize)]
struct Health {
    ok: bool,
    name: &'static str,
    protocol: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
}

/// What the route tells.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) name: &'static str,
    pub(crate) protocol: u32,
    pub(crate) port: u16,
    pub(crate) secret: Secret,
}

pub(crate) fn router(facts: Facts) -> Router {
    let facts = Arc::new(facts);
    Router::new().route(
        "/health",
        get(async move |RawQuery(query): RawQuery| answer(&facts, query.as_deref())),
    )
}

fn answer(facts: &Facts, query: Option<&str>) -> Response {
    let fields = query.into_iter().flat_map(|query| query.split('&'));
    let mut nonces = fields.filter_map(|field| field.strip_prefix("nonce="));
    let mac = match (nonces.next(), nonces.next()) {
        (None, _) => None,
        (Some(nonce), None) if is_nonce(nonce) => {
            Some(facts.secret.mac(&format!("health|{nonce}|{}", facts.port)))
        }
        (Some(_), _) => return Refusal::BadNonce.into_response(),
    };
    let health = Health { ok: true, name: facts.name, protocol: facts.protocol, mac };
    json(StatusCode::OK, &health)
}

/// Returns whether a text is a nonce. It holds no `|`, so that no nonce makes the message of another use.
fn is_nonce(text: &str) -> bool {
    let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=128).contains(&text.len()) && text.bytes().all(is_base64url)
}
