//! Files by signed links: `GET /artifacts/{artifact_id}/{filename}?exp=…&sig=…` [ART-2].
//!
//! A link names an artifact, its file name and an expiry, and is signed. Whatever is not exactly such a
//! link gets the same 404: a changed, expired or foreign one cannot be told from one that never was.

mod beneath;
mod range;
mod signer;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts as Head;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use raincheck_core::ids::ArtifactId;
use raincheck_core::time::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio_util::io::ReaderStream;

use crate::options::{Bearer, Origin, Policy};
use crate::refusal::Refusal;

pub use beneath::{create_beneath, name_beneath, open_beneath, remove_beneath};
use range::{Range, Span};
pub use signer::Signer;

const CORP: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// What files are served from.
#[async_trait]
pub trait ArtifactSource: Send + Sync + 'static {
    /// Opens an artifact; `None` when nobody has it any more. The link has been verified.
    ///
    /// An implementation opens files with [`open_beneath`] [SEC-9].
    async fn open(&self, id: &ArtifactId) -> Option<OpenArtifact>;
}

/// An artifact that is open for reading.
#[derive(Debug)]
pub struct OpenArtifact {
    /// Its bytes.
    pub file: tokio::fs::File,
    /// Its name, as in the link.
    pub name: Arc<str>,
    /// Its size in bytes.
    pub size: u64,
}

/// Returns the current time, for the expiry of links.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Serves the artifacts of a source.
#[derive(Clone)]
pub struct Artifacts {
    signer: Signer,
    source: Arc<dyn ArtifactSource>,
    now: Now,
}

impl Artifacts {
    /// Makes a server of artifacts whose links a signer has signed.
    #[must_use]
    pub fn new(signer: Signer, source: Arc<dyn ArtifactSource>, now: Now) -> Self {
        Self { signer, source, now }
    }

    /// Returns the routes, to be served under [`policy`].
    pub fn router(self) -> Router {
        Router::new().route("/artifacts/{*link}", any(answer)).with_state(self)
    }

    /// Opens what a link names.
    async fn find(&self, request: &Head) -> Option<OpenArtifact> {
        if ![Method::GET, Method::HEAD].contains(&request.method) {
            return None;
        }
        let link = self.signer.verify(request.uri.path(), request.uri.query()?, (self.now)())?;
        let artifact = self.source.open(&link.id).await?;
        (*artifact.name == *link.name).then_some(artifact)
    }
}

impl fmt::Debug for Artifacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Artifacts").finish_non_exhaustive()
    }
}

/// Returns the policy of artifacts: the link is what proves the caller.
#[must_use]
pub fn policy() -> Policy {
    let origin = Origin::Refused;
    let bearer = Bearer::SignedUrl;
    Policy { origin, bearer, json_bodies: false, max_body: 0, is_local: false }
}

async fn answer(State(artifacts): State<Artifacts>, request: Head) -> Response {
    let Some(artifact) = artifacts.find(&request).await else {
        return Refusal::NoRoute.into_response();
    };
    send(artifact, &request).await.unwrap_or_else(|| Refusal::NoRoute.into_response())
}

/// Writes the answer with the file, or the part of it that was asked for. `None` when it cannot be read.
async fn send(artifact: OpenArtifact, request: &Head) -> Option<Response> {
    let OpenArtifact { mut file, name, size } = artifact;
    let mut response = Response::new(Body::empty());
    guard(response.headers_mut(), &name);
    let span = match range::parse(request.headers.get(RANGE), size) {
        Range::Whole => Span { start: 0, length: size },
        Range::Part(span) => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            insert(response.headers_mut(), CONTENT_RANGE, &span.content_range(size));
            span
        }
        Range::Outside => {
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            insert(response.headers_mut(), CONTENT_RANGE, &format!("bytes */{size}"));
            return Some(response);
        }
    };
    insert(response.headers_mut(), CONTENT_LENGTH, &span.length.to_string());
    if request.method == Method::GET {
        file.seek(std::io::SeekFrom::Start(span.start)).await.ok()?;
        *response.body_mut() = Body::from_stream(ReaderStream::new(file.take(span.length)));
    }
    Some(response)
}

/// Makes sure that a browser keeps the file as a file, whatever is in it.
fn guard(headers: &mut HeaderMap, name: &str) {
    let fixed = [
        (CONTENT_TYPE, "application/octet-stream"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'"),
        (CORP, "same-origin"),
        (CACHE_CONTROL, "private, no-store"),
        (ACCEPT_RANGES, "bytes"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let name = name.rsplit('/').next().unwrap_or_default();
    let disposition = format!("attachment; filename*=UTF-8''{}", signer::encode(name));
    insert(headers, CONTENT_DISPOSITION, &disposition);
}

/// Inserts a value made of visible ASCII.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
