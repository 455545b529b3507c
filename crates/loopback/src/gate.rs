//! What a request must satisfy before a handler sees it.

mod body;
mod host;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use http::header::{AUTHORIZATION, CONNECTION, HOST, ORIGIN, TRANSFER_ENCODING, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue};
use raincheck_core::scope::Scope;

use crate::keys::Denied;
use crate::options::{Bearer, Limits, Options, Origin, Policy};
use crate::refusal::Refusal;
use crate::secret::Secret;

pub(crate) use host::Hosts;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether the peer of a request's connection is on this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near(pub(crate) bool);

/// What every check needs to know about the listener.
#[derive(Debug)]
struct Listener {
    hosts: Hosts,
    secret: Secret,
    limits: Limits,
    bodies: body::Bodies,
    /// Every origin that some surface allows.
    origins: Origin,
}

/// The checks of one surface.
#[derive(Debug)]
struct Door {
    listener: Arc<Listener>,
    policy: Policy,
}

/// Joins the surfaces into one router, each behind its own checks and all behind those of the listener.
///
/// # Panics
/// When two surfaces share a route, or one has a fallback.
pub(crate) fn router(options: Options, hosts: Hosts, secret: Secret, health: Router) -> Router {
    let is_remote = hosts.is_remote();
    let origins = options.surfaces.iter().flat_map(|surface| match &surface.policy.origin {
        Origin::Refused => &[],
        Origin::Pinned(list) => list.as_slice(),
    });
    let origins = Origin::Pinned(origins.cloned().collect());
    let (limits, bodies) = (options.limits, body::Bodies::new(options.limits.bodies));
    let listener = Arc::new(Listener { hosts, secret, limits, bodies, origins });
    let mut all = health;
    for surface in options.surfaces.into_iter().filter(|surface| surface.routes.has_routes()) {
        let mut policy = surface.policy;
        let is_open = match &policy.bearer {
            Bearer::Optional => true,
            Bearer::Named(keys) => keys.is_open(),
            Bearer::Required | Bearer::Public | Bearer::SignedUrl | Bearer::Handshake => false,
        };
        if is_remote && is_open {
            policy.bearer = Bearer::Required;
        }
        let door = Arc::new(Door { listener: Arc::clone(&listener), policy });
        // The body is in memory within the surface's own limit; the library's smaller one is not ours.
        let routes = surface.routes.layer(DefaultBodyLimit::disable());
        all = all.merge(routes.route_layer(from_fn_with_state(door, enter_surface)));
    }
    let nothing = async || Refusal::NoRoute;
    all.fallback(nothing).layer(from_fn_with_state(listener, enter))
}

/// Lets a request to the listener through, or refuses it.
async fn enter(State(listener): State<Arc<Listener>>, request: Request, next: Next) -> Response {
    if let Err(refusal) = listener.check(&request) {
        return refusal.into_response();
    }
    // Where a chunked body ends is told by the body itself. A length beside it may have misled
    // somebody on the way, so nothing that follows on the connection is believed.
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    let mut response = next.run(request).await;
    if is_chunked {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

impl Listener {
    fn check(&self, request: &Request) -> Result<(), Refusal> {
        let (uri, headers) = (request.uri(), request.headers());
        let host = one(headers, &HOST).ok().flatten().ok_or(Refusal::MalformedHost)?;
        self.hosts.check(host.as_bytes())?;
        if let Some(authority) = uri.authority() {
            self.hosts.check(authority.as_str().as_bytes())?;
        }
        let target = uri.path_and_query().map_or(0, |target| target.as_str().len());
        if target > self.limits.max_target {
            return Err(Refusal::LongTarget);
        }
        let head: usize =
            headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if head > self.limits.max_head || headers.len() > self.limits.max_headers {
            return Err(Refusal::LongHead);
        }
        let site = one(headers, &SEC_FETCH_SITE).map_err(|_| Refusal::ForeignSite)?;
        if site.is_some_and(|site| site != "none" && site != "same-origin") {
            return Err(Refusal::ForeignSite);
        }
        check_origin(headers, &self.origins)
    }
}

/// Lets a request to a surface through with its body in memory, or refuses it.
async fn enter_surface(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    match door.check(request).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => door.refuse(refusal),
    }
}

impl Door {
    async fn check(&self, request: Request) -> Result<Request, Refusal> {
        let is_near = matches!(request.extensions().get(), Some(Near(true)));
        if self.policy.is_local && !is_near {
            return Err(Refusal::NoRoute);
        }
        check_origin(request.headers(), &self.policy.origin)?;
        let owner = self.check_bearer(request.headers()).await?;
        body::check(&request, &self.policy)?;
        let (mut head, body) = request.into_parts();
        if let Some(owner) = owner.clone() {
            head.extensions.insert(owner);
        }
        let Listener { bodies, limits, .. } = &*self.listener;
        let bytes = body::read(body, self.policy.max_body, limits.body, (bodies, owner)).await?;
        Ok(Request::from_parts(head, Body::from(bytes)))
    }

    /// Checks who calls; returns the owner where tokens say who that is.
    async fn check_bearer(&self, headers: &HeaderMap) -> Result<Option<Scope>, Refusal> {
        if matches!(self.policy.bearer, Bearer::Public | Bearer::SignedUrl | Bearer::Handshake) {
            return Ok(None);
        }
        let offered = one(headers, &AUTHORIZATION).map_err(|_| Refusal::NoBearer)?;
        let token = match offered {
            None => None,
            Some(value) => Some(value.to_str().ok().and_then(bearer).ok_or(Refusal::NoBearer)?),
        };
        if let Bearer::Named(keys) = &self.policy.bearer {
            return keys.owner(token).await.map(Some).map_err(|denied| match denied {
                Denied::Unknown if token.is_none() => Refusal::NoBearer,
                Denied::Unknown => Refusal::WrongBearer,
                Denied::TooNarrow => Refusal::NarrowBearer,
                Denied::Unchecked => Refusal::UncheckedBearer,
            });
        }
        let is_right = match token {
            None => self.policy.bearer == Bearer::Optional,
            Some(token) => self.listener.secret.is(token),
        };
        if is_right { Ok(None) } else { Err(Refusal::NoBearer) }
    }

    /// Answers a request that does not pass.
    fn refuse(&self, refusal: Refusal) -> Response {
        let mut response = refusal.into_response();
        if refusal.is_of_bearer()
            && let Bearer::Named(keys) = &self.policy.bearer
            && let Some(challenge) = keys.challenge(refusal.bearer_error())
            && let Ok(challenge) = HeaderValue::from_str(&challenge)
        {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

fn check_origin(headers: &HeaderMap, allowed: &Origin) -> Result<(), Refusal> {
    match one(headers, &ORIGIN) {
        Ok(None) => Ok(()),
        Ok(Some(origin)) if allowed.allows(origin.as_bytes()) => Ok(()),
        Ok(Some(_)) | Err(Several) => Err(Refusal::ForeignOrigin),
    }
}

/// A header that may stand once stands several times.
#[derive(Debug)]
struct Several;

/// Returns the value of a header that may stand once.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Several> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() { Err(Several) } else { Ok(first) }
}

/// Returns the token of an `Authorization` value.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_matches(' '))
}
