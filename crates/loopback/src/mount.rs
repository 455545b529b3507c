//! Routes of services that were made elsewhere.

use std::convert::Infallible;

use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse;
use tower_service::Service;

/// Serves a `tower` service at a path, whatever the method.
///
/// # Panics
/// When the path does not begin with a slash.
pub fn at<S>(path: &str, service: S) -> Router
where
    S: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Response: IntoResponse,
    S::Future: Send + 'static,
{
    Router::new().route_service(path, service)
}
