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

pub use settings::{BadSetting, OAuth};
