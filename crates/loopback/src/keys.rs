//! Who calls, by the token that is shown: a listener with several owners.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use raincheck_core::scope::Scope;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Why the holder of a token is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The token is not to be believed: 401.
    Unknown,
    /// It is sound, and not for what this server does: 403.
    TooNarrow,
    /// Nothing can be said about it for now: 503.
    Unchecked,
}

/// Knows tokens that somebody else has issued.
#[async_trait]
pub trait Issued: Send + Sync + 'static {
    /// Returns whose a token is.
    ///
    /// # Errors
    /// Why its holder is not let in.
    ///
    /// # Cancel safety
    /// Must be safe to drop.
    async fn owner(&self, token: &str) -> Result<Scope, Denied>;
}

/// The tokens of a listener, and whose they are. Cloning shares them.
///
/// A request that is let through carries the [`Scope`] of its caller among its extensions.
#[derive(Clone, Default)]
pub struct Keys(Arc<Ring>);

#[derive(Clone, Default)]
struct Ring {
    /// Digests, so that a comparison tells nothing by the time that it takes.
    tokens: Vec<([u8; 32], Scope)>,
    anonymous: Option<Scope>,
    issued: Option<Arc<dyn Issued>>,
    /// What a refusal says of how to get a token.
    hint: Option<Hint>,
}

#[derive(Clone)]
struct Hint {
    metadata: Box<str>,
    scopes: Box<str>,
}

impl Keys {
    /// Knows nobody.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets whoever shows `token` call as `owner`.
    #[must_use]
    pub fn with(self, token: &str, owner: Scope) -> Self {
        self.changed(|ring| ring.tokens.push((digest(token), owner)))
    }

    /// Lets whoever shows no token call as `owner`. A wrong token is still refused.
    #[must_use]
    pub fn with_anonymous(self, owner: Scope) -> Self {
        self.changed(|ring| ring.anonymous = Some(owner))
    }

    /// Believes tokens of an issuer too. `metadata` is where callers learn who that is
    /// [RFC 9728](https://www.rfc-editor.org/rfc/rfc9728); a refusal names it, and the scopes that a token
    /// needs.
    #[must_use]
    pub fn with_issued(self, issued: Arc<dyn Issued>, metadata: &str, scopes: &[String]) -> Self {
        self.changed(|ring| {
            ring.issued = Some(issued);
            let scopes = scopes.join(" ").into();
            ring.hint = Some(Hint { metadata: metadata.into(), scopes });
        })
    }

    fn changed(mut self, change: impl FnOnce(&mut Ring)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Tells whether a request without a token is let through.
    pub(crate) fn is_open(&self) -> bool {
        self.0.anonymous.is_some()
    }

    /// Returns who shows a token, or none.
    pub(crate) async fn owner(&self, token: Option<&str>) -> Result<Scope, Denied> {
        let Some(token) = token else { return self.0.anonymous.clone().ok_or(Denied::Unknown) };
        let shown = digest(token);
        let mut found = None;
        for (known, owner) in &self.0.tokens {
            if bool::from(known.ct_eq(&shown)) {
                found = Some(owner.clone());
            }
        }
        match (found, &self.0.issued) {
            (Some(owner), _) => Ok(owner),
            (None, Some(issued)) => issued.owner(token).await,
            (None, None) => Err(Denied::Unknown),
        }
    }

    /// Returns what a refusal says of how to get a token, for `WWW-Authenticate`; `error` is what was wrong
    /// with the one that was shown.
    pub(crate) fn challenge(&self, error: Option<&str>) -> Option<String> {
        let Hint { metadata, scopes } = self.0.hint.as_ref()?;
        let mut challenge = format!("Bearer resource_metadata=\"{metadata}\"");
        if let Some(error) = error {
            challenge.push_str(&format!(", error=\"{error}\""));
        }
        if !scopes.is_empty() {
            challenge.push_str(&format!(", scope=\"{scopes}\""));
        }
        Some(challenge)
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Keys {}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("n_tokens", &self.0.tokens.len())
            .field("is_open", &self.is_open())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_token_says_who_calls_and_a_wrong_one_says_nothing() {
        // [HTTP-3, SCOPE-1]
        let keys = Keys::new().with("of-a", Scope::new("a")).with("of-b", Scope::new("b"));
        assert_eq!(keys.owner(Some("of-a")).await, Ok(Scope::new("a")));
        assert_eq!(keys.owner(Some("of-b")).await, Ok(Scope::new("b")));
        for wrong in ["", "of-", "of-ab", "OF-A"] {
            assert_eq!(keys.owner(Some(wrong)).await, Err(Denied::Unknown), "{wrong}");
        }
        assert_eq!(keys.owner(None).await, Err(Denied::Unknown));
        let open = keys.with_anonymous(Scope::local());
        assert_eq!(open.owner(None).await, Ok(Scope::local()));
        let wrong = open.owner(Some("of-c")).await;
        assert_eq!(wrong, Err(Denied::Unknown), "a wrong token is none at all");
        assert!(!format!("{open:?}").contains("of-a"));
    }
}
