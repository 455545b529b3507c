//! One token: whose it is, or why it is not believed.

use async_trait::async_trait;
use jsonwebtoken::{DecodingKey, Header, Validation, decode, decode_header};
use raincheck_core::scope::Scope;
use raincheck_loopback::{Denied, Issued};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::crypto;
use crate::keys::KeySet;
use crate::settings::OAuth;

/// How far the clocks of the issuer and of this machine may be apart, in seconds.
const LEEWAY: u64 = 60;

/// The most bytes of a subject.
const MAX_SUBJECT: usize = 255;

/// What a token says.
#[derive(Deserialize)]
struct Claims {
    sub: String,
    #[serde(default)]
    scope: Granted,
    #[serde(default)]
    scp: Granted,
    /// Says that the token is of use with the proof of a key only.
    cnf: Option<IgnoredAny>,
}

/// Scopes: in one text as RFC 8693 has them, or in a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Granted {
    Text(String),
    List(Vec<String>),
}

impl Default for Granted {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Granted {
    fn has(&self, scope: &str) -> bool {
        match self {
            Self::Text(text) => text.split(' ').any(|one| one == scope),
            Self::List(list) => list.iter().any(|one| one == scope),
        }
    }
}

/// Knows the tokens of an issuer.
#[derive(Debug)]
pub(crate) struct Checker {
    oauth: OAuth,
    keys: KeySet,
}

impl Checker {
    pub(crate) fn new(oauth: OAuth, keys: KeySet) -> Self {
        crypto::install();
        Self { oauth, keys }
    }

    fn validation(&self, header: &Header) -> Validation {
        let mut validation = Validation::new(header.alg);
        validation.leeway = LEEWAY;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.oauth.issuer]);
        validation.set_audience(&[&self.oauth.resource]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation
    }

    /// Tells whose a token is that one of the keys has signed.
    fn read(&self, token: &str, header: &Header, keys: &[DecodingKey]) -> Result<Scope, Denied> {
        let validation = self.validation(header);
        let read = |key| decode::<Claims>(token, key, &validation).ok();
        let claims = keys.iter().find_map(read).ok_or(Denied::Unknown)?.claims;
        if claims.cnf.is_some() || claims.sub.is_empty() || claims.sub.len() > MAX_SUBJECT {
            return Err(Denied::Unknown);
        }
        let has = |scope: &String| claims.scope.has(scope) || claims.scp.has(scope);
        if !self.oauth.scopes.iter().all(has) {
            return Err(Denied::TooNarrow);
        }
        // A URL has no `#` of its own here: no two of issuer and subject are one name, and none is a name of
        // the configuration.
        Ok(Scope::new(format!("{}#{}", self.oauth.issuer, claims.sub)))
    }
}

#[async_trait]
impl Issued for Checker {
    async fn owner(&self, token: &str) -> Result<Scope, Denied> {
        let header = decode_header(token).map_err(|_| Denied::Unknown)?;
        if !crypto::TAKEN.contains(&header.alg) || header.crit.is_some() || !is_access(&header) {
            return Err(Denied::Unknown);
        }
        let keys = self.keys.find(header.kid.as_deref(), header.alg).await;
        self.read(token, &header, &keys.map_err(|_| Denied::Unchecked)?)
    }
}

/// Tells whether a token may be one for access: other kinds say what they are.
fn is_access(header: &Header) -> bool {
    let typ = header.typ.as_deref().map(str::to_ascii_lowercase);
    matches!(typ.as_deref(), None | Some("jwt" | "at+jwt" | "application/at+jwt"))
}
