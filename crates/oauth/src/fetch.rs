//! What an issuer publishes: where its keys are, and the keys.

use std::time::Duration;

use http::header::ACCEPT;
use http::{Request, StatusCode, Uri};
use jsonwebtoken::jwk::{Jwk, JwkSet};
use raincheck_https::Http;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::settings::web;

/// How long a document may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most bytes of a document.
const MAX_BYTES: usize = 512 << 10;

/// The most keys that are kept.
const MAX_KEYS: usize = 64;

#[derive(Deserialize)]
struct Server {
    issuer: String,
    jwks_uri: String,
}

/// Fetches an issuer's keys; in words what stood in the way.
pub(crate) async fn keys(issuer: &str, keys_url: Option<&Uri>) -> Result<Vec<Jwk>, String> {
    let url = match keys_url {
        Some(url) => url.clone(),
        None => discover(issuer).await?,
    };
    let JwkSet { mut keys } = document(&url).await?;
    keys.truncate(MAX_KEYS);
    Ok(keys)
}

/// Finds where the keys are: RFC 8414, and what OpenID Connect has instead.
async fn discover(issuer: &str) -> Result<Uri, String> {
    let mut said = String::from("its metadata was not found");
    for place in places(issuer) {
        let found: Result<Server, String> = match place.parse() {
            Ok(url) => document(&url).await,
            Err(_) => continue,
        };
        match found {
            Ok(server) if server.issuer == issuer => {
                return web("jwks_uri", &server.jwks_uri).map_err(|error| error.to_string());
            }
            Ok(_) => said = format!("{place} is the metadata of another issuer"),
            Err(words) => said = words,
        }
    }
    Err(said)
}

/// Returns where an issuer's metadata may be, in the order in which to look.
fn places(issuer: &str) -> Vec<String> {
    let issuer = issuer.strip_suffix('/').unwrap_or(issuer);
    let path = issuer.parse::<Uri>().map(|url| url.path().to_owned()).unwrap_or_default();
    let path = path.trim_end_matches('/');
    let origin = issuer.strip_suffix(path).unwrap_or(issuer);
    let mut places = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{issuer}/.well-known/openid-configuration"));
    }
    places
}

/// Fetches a JSON document. No redirect is followed.
async fn document<T: DeserializeOwned>(url: &Uri) -> Result<T, String> {
    let failed = |words: &str| format!("{url}: {words}");
    let asked = async {
        // Reading the certificates of the machine takes a while.
        let place = url.clone();
        let http = tokio::task::spawn_blocking(move || Http::new(&place)).await;
        let http =
            http.map_err(|error| failed(&error.to_string()))?.map_err(|words| failed(&words))?;
        let request = Request::get(url.clone()).header(ACCEPT, "application/json").body(Vec::new());
        let request = request.map_err(|error| failed(&error.to_string()))?;
        let answer = http.ask(request).await.map_err(|error| failed(&error.to_string()))?;
        let status = answer.status();
        if status != StatusCode::OK {
            return Err(failed(&format!("status {status}")));
        }
        answer.body(MAX_BYTES).await.map_err(|error| failed(&error.to_string()))
    };
    let bytes = timeout(PATIENCE, asked).await.map_err(|_| failed("no answer in 10 s"))??;
    serde_json::from_slice(&bytes).map_err(|error| failed(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_where_the_standards_say() {
        assert_eq!(
            places("https://a.example"),
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            places("https://a.example/realms/x/"),
            [
                "https://a.example/.well-known/oauth-authorization-server/realms/x",
                "https://a.example/.well-known/openid-configuration/realms/x",
                "https://a.example/realms/x/.well-known/openid-configuration",
            ]
        );
    }
}
