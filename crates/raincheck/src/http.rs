//! Where and to whom a server is reached over HTTP.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use raincheck_core::scope::Scope;
use raincheck_core::text;
use raincheck_loopback::{Bearer, Keys, Options, Origin, Policy, Surface, at};
use raincheck_mcp::{HttpOptions, HttpService};
#[cfg(feature = "oauth")]
use raincheck_oauth::OAuth;

/// The path of MCP.
const PATH: &str = "/mcp";

/// How a server is reached over HTTP.
///
/// Whoever calls shows a token, which says whose the tasks are that the call makes. The listener's own
/// secret, drawn at each start and written to its endpoint file, is a token of the server's
/// [scope](crate::Builder::scope).
///
/// ```
/// use raincheck::HttpConfig;
///
/// let http = HttpConfig::new(([127, 0, 0, 1], 7700).into())
///     .token("alice", "a-token-of-32-characters-or-more");
/// ```
#[derive(Clone, Debug)]
pub struct HttpConfig {
    address: SocketAddr,
    is_remote_meant: bool,
    names: Vec<String>,
    origins: Vec<String>,
    tokens: Vec<(Scope, Token)>,
    is_anonymous: bool,
    #[cfg(feature = "oauth")]
    oauth: Option<OAuth>,
}

/// A token that no log shows.
#[derive(Clone)]
struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl HttpConfig {
    /// The shortest token that is taken, in characters.
    pub const MIN_TOKEN: usize = 32;

    /// Listens on an address; port 0 is any that is free. A port that belongs to another program is an
    /// error: clients have it written down.
    #[must_use]
    pub const fn new(address: SocketAddr) -> Self {
        Self {
            address,
            is_remote_meant: false,
            names: Vec::new(),
            origins: Vec::new(),
            tokens: Vec::new(),
            is_anonymous: false,
            #[cfg(feature = "oauth")]
            oauth: None,
        }
    }

    /// Believes the access tokens of an authorization server too. Their owner is `ISSUER#SUBJECT`; callers
    /// without a token are told where to get one. What the server asks for is served at the path of the
    /// resource, so that a proxy in front must pass `/.well-known/oauth-protected-resource` on.
    #[cfg(feature = "oauth")]
    #[must_use]
    pub fn oauth(mut self, oauth: OAuth) -> Self {
        self.oauth = Some(oauth);
        self
    }

    /// Tells whether some caller could show a token of the configuration.
    fn has_tokens(&self) -> bool {
        #[cfg(feature = "oauth")]
        if self.oauth.is_some() {
            return true;
        }
        !self.tokens.is_empty()
    }

    /// Lets whoever shows `token` call as `owner`.
    #[must_use]
    pub fn token(mut self, owner: &str, token: &str) -> Self {
        self.tokens.push((Scope::new(owner), Token(token.to_owned())));
        self
    }

    /// Says that an address that other machines reach is meant. It needs a token, too; what travels is
    /// not encrypted, so that a proxy with a certificate should stand before it.
    #[must_use]
    pub const fn allow_remote(mut self) -> Self {
        self.is_remote_meant = true;
        self
    }

    /// Adds a name that clients, or a proxy in front of the listener, call it by, on whatever port.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.names.push(name.to_owned());
        self
    }

    /// Adds an origin that a request may carry, such as `https://app.example`; there is none by default.
    /// It is for programs that send the header without being a browser, and for pages of the server's
    /// own host: what a browser sends for a page of another site is refused all the same.
    #[must_use]
    pub fn origin(mut self, origin: &str) -> Self {
        self.origins.push(origin.to_owned());
        self
    }

    /// Lets whoever shows no token call as the server's scope: every user and program of this machine.
    /// A remote listener refuses it.
    #[must_use]
    pub const fn anonymous(mut self) -> Self {
        self.is_anonymous = true;
        self
    }

    /// Checks what would be refused at the start: an address without leave or token, a token that can
    /// be guessed, or one of two owners.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self) -> Result<(), String> {
        if !self.address.ip().is_loopback() {
            if !self.is_remote_meant || !self.has_tokens() {
                return Err(format!(
                    "other machines reach {}, which needs leave (--allow-remote) and a token \
                     ([http.tokens] or RAINCHECK_HTTP_TOKEN), or an issuer of tokens",
                    self.address
                ));
            }
            if self.is_anonymous {
                return Err("callers without a token are let in on loopback alone".into());
            }
        }
        for (place, (owner, Token(token))) in self.tokens.iter().enumerate() {
            let mut before = self.tokens.iter().take(place);
            let same = before.find(|(_, Token(one))| one == token);
            if let Some((other, _)) = same.filter(|(other, _)| other != owner) {
                return Err(format!(
                    "`{other}` and `{owner}` have the same token; give each its own"
                ));
            }
            let is_sound = token.bytes().all(|byte| byte.is_ascii_graphic());
            if token.len() < Self::MIN_TOKEN || !is_sound {
                return Err(format!(
                    "the token of `{owner}` must have {} or more visible ASCII characters; \
                     make one: openssl rand -hex 32",
                    Self::MIN_TOKEN
                ));
            }
        }
        Ok(())
    }

    /// Returns who may call.
    pub(crate) fn keys(&self, scope: &Scope) -> io::Result<Keys> {
        self.check().map_err(|words| io::Error::new(io::ErrorKind::InvalidInput, words))?;
        let mut keys = Keys::new();
        for (owner, Token(token)) in &self.tokens {
            keys = keys.with(token, owner.clone());
        }
        if self.is_anonymous {
            keys = keys.with_anonymous(scope.clone());
        }
        #[cfg(feature = "oauth")]
        if let Some(oauth) = &self.oauth {
            keys = keys.with_issued(oauth.checker(), &oauth.metadata_url(), oauth.scopes());
        }
        Ok(keys)
    }

    /// Says where to listen, and how clients may call the listener.
    pub(crate) fn placed(&self, options: Options) -> Options {
        Options {
            address: self.address,
            is_exact: true,
            kept_port: None,
            allow_remote: self.is_remote_meant,
            names: self.names.clone(),
            ..options
        }
    }

    /// Makes what is served: MCP, to whoever shows a key or the listener's own secret.
    pub(crate) fn surfaces(&self, service: HttpService, keys: Keys) -> Vec<Surface> {
        let origin = match self.origins.is_empty() {
            true => Origin::Refused,
            false => Origin::Pinned(self.origins.clone()),
        };
        let policy = Policy {
            origin,
            bearer: Bearer::Named(keys),
            json_bodies: true,
            max_body: HttpOptions::MAX_BODY,
            is_local: false,
        };
        let surfaces = vec![Surface { routes: at(PATH, service), policy }];
        #[cfg(feature = "oauth")]
        let surfaces =
            surfaces.into_iter().chain(self.oauth.as_ref().map(OAuth::surface)).collect();
        surfaces
    }
}

/// Says where MCP is served, and what lets a caller in: the tokens that were given, and the secret of the
/// endpoint file, which is one of the server's own owner.
pub(crate) fn announce(url: &str, http: &HttpConfig, scope: &Scope, endpoint: Option<&Path>) {
    tracing::info!("{}", announced(url, http, scope, endpoint));
}

fn announced(url: &str, http: &HttpConfig, scope: &Scope, endpoint: Option<&Path>) -> String {
    let mut owners: Vec<&str> = http.tokens.iter().map(|(owner, _)| owner.as_str()).collect();
    owners.dedup();
    let has_own = owners.contains(&scope.as_str());
    let mut said = format!("serving MCP at {url}{PATH}");
    if http.is_anonymous {
        said.push_str("; callers of this machine need no token");
    }
    if !owners.is_empty() {
        let owners: Vec<String> =
            owners.iter().map(|owner| format!("`{}`", text::escape(owner))).collect();
        said.push_str(&format!("; tokens were given for {}", owners.join(", ")));
    }
    match endpoint {
        Some(path) if has_own || http.is_anonymous => {
            said.push_str(&format!("; the secret in {} is a token, too", path.display()));
        }
        Some(path) => {
            said.push_str(&format!("; the owner's token is the secret in {}", path.display()));
        }
        None => {}
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_says_which_tokens_let_a_caller_in() {
        // [HTTP-3]
        let token = "0123456789abcdef0123456789abcdef";
        let (scope, path) = (Scope::new("local"), Path::new("/run/endpoint.json"));
        let http = || HttpConfig::new(([127, 0, 0, 1], 0).into());
        let said = |http: &HttpConfig| announced("http://x", http, &scope, Some(path));
        assert!(said(&http()).ends_with("the owner's token is the secret in /run/endpoint.json"));
        let own = said(&http().token("local", token));
        assert!(own.contains("tokens were given for `local`"), "{own}");
        assert!(!own.contains("owner's token is the secret") && !own.contains(token), "{own}");
        let other = said(&http().token("alice", token));
        assert!(other.contains("`alice`; the owner's token is the secret"), "{other}");
        assert!(said(&http().anonymous()).contains("need no token"));
    }

    #[test]
    fn two_owners_have_two_tokens() {
        // [HTTP-3]
        let token = "0123456789abcdef0123456789abcdef";
        let http = HttpConfig::new(([127, 0, 0, 1], 0).into()).token("alice", token);
        assert_eq!(http.clone().token("alice", token).check(), Ok(()));
        let words = http.token("bob", token).check().expect_err("the same token");
        assert!(words.contains("`alice` and `bob`") && !words.contains(token), "{words}");
    }
}
