//! Whose tokens are believed, and for what.

use std::net::IpAddr;

use http::Uri;

/// An issuer of access tokens, and the resource that they must be made for [HTTP-9].
///
/// ```
/// use raincheck_oauth::OAuth;
///
/// let oauth = OAuth::new("https://login.example.org", "https://mcp.example.org/mcp")?.require("tasks")?;
/// assert_eq!(
///     oauth.metadata_url(),
///     "https://mcp.example.org/.well-known/oauth-protected-resource/mcp",
/// );
/// # Ok::<(), raincheck_oauth::BadSetting>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuth {
    pub(crate) issuer: String,
    pub(crate) resource: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) keys_url: Option<Uri>,
}

/// What cannot be a setting, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSetting(String);

impl OAuth {
    /// Believes the tokens of `issuer` (their `iss`, byte for byte) that were made for `resource` (one of their
    /// `aud`, byte for byte): the URL of this server's `/mcp` as clients call it.
    ///
    /// # Errors
    /// When one of them is no URL with `https`, or with `http` and a loopback host, or when it has a query, a
    /// fragment or a user.
    pub fn new(issuer: &str, resource: &str) -> Result<Self, BadSetting> {
        web("issuer", issuer)?;
        let place = web("resource", resource)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "/-._~".contains(c);
        if !place.path().chars().all(plain) {
            let words = "the path of `resource` may have letters, digits and -._~/ only";
            return Err(BadSetting(words.into()));
        }
        Ok(Self {
            issuer: issuer.to_owned(),
            resource: resource.to_owned(),
            scopes: Vec::new(),
            keys_url: None,
        })
    }

    /// Refuses tokens that lack a scope (`scope` or `scp`).
    ///
    /// # Errors
    /// When it is no scope of [RFC 6749](https://www.rfc-editor.org/rfc/rfc6749#section-3.3).
    pub fn require(mut self, scope: &str) -> Result<Self, BadSetting> {
        let sound = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        if scope.is_empty() || !scope.bytes().all(sound) {
            let words = format!("`{scope}` is no scope: visible ASCII without spaces, \" and \\");
            return Err(BadSetting(words));
        }
        self.scopes.push(scope.to_owned());
        Ok(self)
    }

    /// Takes the issuer's keys from this URL (a JWK set), instead of the one that its metadata names.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn keys_at(mut self, url: &str) -> Result<Self, BadSetting> {
        self.keys_url = Some(web("keys_url", url)?);
        Ok(self)
    }

    /// Returns the scopes that a token must have.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }
}

/// Takes a URL that a secret may depend on.
pub(crate) fn web(name: &str, text: &str) -> Result<Uri, BadSetting> {
    let wrong = |words: &str| BadSetting(format!("`{name}` {words}"));
    let url: Uri = text.parse().map_err(|_| wrong("is no URL"))?;
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    match url.scheme_str() {
        Some("https") if !host.is_empty() => {}
        Some("http") if is_here => {}
        _ => return Err(wrong("must begin with https:// (http:// for this machine alone)")),
    }
    if text.contains(['?', '#']) || url.authority().is_some_and(|it| it.as_str().contains('@')) {
        return Err(wrong("must have no query, no fragment and no user"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_anybody_on_the_way_could_change_is_no_issuer() {
        // [HTTP-9]
        let resource = "https://mcp.example.org/mcp";
        for sound in [
            "https://a.example",
            "https://a.example/realms/x",
            "http://127.0.0.1:8080",
            "http://[::1]:9",
        ] {
            assert!(OAuth::new(sound, resource).is_ok(), "{sound}");
        }
        for wrong in [
            "",
            "a.example",
            "/x",
            "http://a.example",
            "http://127.0.0.1.example",
            "ftp://a.example",
            "https://a.example?x=1",
            "https://a.example#x",
            "https://u:p@a.example",
        ] {
            assert!(OAuth::new(wrong, resource).is_err(), "{wrong}");
            assert!(OAuth::new("https://a.example", wrong).is_err(), "{wrong}");
        }
        assert!(OAuth::new("https://a.example", "https://a.example/{x}").is_err());
        let oauth = OAuth::new("https://a.example", resource).expect("sound");
        assert!(oauth.clone().keys_at("http://a.example/keys").is_err());
        for wrong in ["", "a b", "a\"b", "ä"] {
            assert!(oauth.clone().require(wrong).is_err(), "{wrong}");
        }
        assert_eq!(oauth.require("tasks:read").expect("a scope").scopes(), ["tasks:read"]);
    }
}
