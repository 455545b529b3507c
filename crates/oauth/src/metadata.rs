//! What a resource says of itself: RFC 9728.

use axum::Router;
use axum::response::IntoResponse as _;
use axum::routing::get;
use http::Uri;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use raincheck_loopback::{Bearer, Policy, Surface};
use serde::Serialize;

use crate::settings::OAuth;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

#[derive(Serialize)]
struct Metadata<'a> {
    resource: &'a str,
    authorization_servers: [&'a str; 1],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    scopes_supported: &'a [String],
    bearer_methods_supported: [&'static str; 1],
}

/// Returns the URL of the metadata of a resource: its well-known part stands between host and path.
pub(crate) fn url(resource: &str) -> String {
    let path = path(resource);
    let place = resource.strip_suffix('/').unwrap_or(resource);
    let origin = place.strip_suffix(path.as_str()).unwrap_or(place);
    format!("{origin}{WELL_KNOWN}{path}")
}

/// Returns the path of a resource without a slash at its end: nothing for the root.
fn path(resource: &str) -> String {
    let path = resource.parse::<Uri>().map(|url| url.path().to_owned()).unwrap_or_default();
    path.strip_suffix('/').map_or(path.as_str(), |path| path).to_owned()
}

/// Serves the metadata at the place of the resource's path, and at the root for clients that look there.
pub(crate) fn surface(oauth: &OAuth) -> Surface {
    let metadata = Metadata {
        resource: &oauth.resource,
        authorization_servers: [&oauth.issuer],
        scopes_supported: &oauth.scopes,
        bearer_methods_supported: ["header"],
    };
    let body = serde_json::to_string(&metadata).unwrap_or_default();
    let answer = async move || {
        let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "max-age=300")];
        (headers, body.clone()).into_response()
    };
    let mut routes = Router::new().route(WELL_KNOWN, get(answer.clone()));
    let path = path(&oauth.resource);
    if !path.is_empty() {
        routes = routes.route(&format!("{WELL_KNOWN}{path}"), get(answer));
    }
    Surface { routes, policy: Policy { bearer: Bearer::Public, max_body: 0, ..Policy::default() } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_well_known_part_stands_before_the_path() {
        for (resource, expected) in [
            ("https://a.example/mcp", "https://a.example/.well-known/oauth-protected-resource/mcp"),
            (
                "https://a.example:8443/x/mcp/",
                "https://a.example:8443/.well-known/oauth-protected-resource/x/mcp",
            ),
            ("https://a.example", "https://a.example/.well-known/oauth-protected-resource"),
            ("https://a.example/", "https://a.example/.well-known/oauth-protected-resource"),
        ] {
            assert_eq!(url(resource), expected);
        }
    }
}
