//! Access tokens of an authorization server, for a server over HTTP.
//!
//! An [`OAuth`] names the issuer whose tokens are believed and the resource that they must be made for. Its
//! [`checker`](OAuth::checker) tells whose a token is; its [`surface`](OAuth::surface) tells callers without one
//! where to get one, as [RFC 9728](https://www.rfc-editor.org/rfc/rfc9728) says. Tokens are JWTs
//! ([RFC 9068](https://www.rfc-editor.org/rfc/rfc9068)); they are checked here, and nobody is asked about one.

mod crypto;
mod fetch;
mod keys;
mod metadata;
mod settings;
mod token;

use std::sync::Arc;

use raincheck_loopback::{Issued, Surface};

use crate::keys::KeySet;
use crate::token::Checker;

pub use settings::{BadSetting, OAuth};

impl OAuth {
    /// Returns where callers find who issues tokens for the resource.
    #[must_use]
    pub fn metadata_url(&self) -> String {
        metadata::url(&self.resource)
    }

    /// Makes what tells whose a token is. Its keys are fetched when the first token comes, every ten minutes
    /// while tokens come, and when a token names a key that is not known, twice a minute at most. It needs a
    /// tokio runtime.
    #[must_use]
    pub fn checker(&self) -> Arc<dyn Issued> {
        let keys = KeySet::new(self.issuer.clone(), self.keys_url.clone());
        Arc::new(Checker::new(self.clone(), keys))
    }

    /// Makes what tells callers who issues tokens. It can be read by everybody.
    #[must_use]
    pub fn surface(&self) -> Surface {
        metadata::surface(self)
    }
}
