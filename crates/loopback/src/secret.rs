//! The secret of a listener: who knows it may call [SEC-3].

mod kept;

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use crate::error::{Error, random};

/// 32 random bytes, written as 43 characters of base64url.
///
/// Neither `Debug` nor an error shows it; [`Secret::text`] is the only way out.
#[derive(Clone)]
pub struct Secret {
    bytes: [u8; 32],
    text: Arc<str>,
}

impl Secret {
    /// Draws a secret from the operating system.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn random() -> Result<Self, Error> {
        random().map(Self::from_bytes)
    }

    /// Takes 32 bytes as the secret.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        let text = URL_SAFE_NO_PAD.encode(bytes).into();
        Self { bytes, text }
    }

    /// Reads a secret as it is written; `None` when it is none.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        bytes.try_into().ok().map(Self::from_bytes)
    }

    /// Returns the secret as it is written in `endpoint.json` and sent as a bearer.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether a caller offered this secret, in a time that does not tell how much of it was right.
    #[must_use]
    pub fn is(&self, offered: &str) -> bool {
        self.text.as_bytes().ct_eq(offered.as_bytes()).into()
    }

    /// Returns base64url of the HMAC-SHA256 of a message under this secret.
    #[must_use]
    pub fn mac(&self, message: &str) -> String {
        #[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.bytes).expect("any key will do");
        mac.update(message.as_bytes());
        URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
    }

    /// Returns whether `mac` is what [`Secret::mac`] returns for the message, in constant time.
    ///
    /// Compares the text, so that a message has exactly one that is accepted.
    #[must_use]
    pub fn proves(&self, message: &str, mac: &str) -> bool {
        self.mac(message).as_bytes().ct_eq(mac.as_bytes()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Secret {
        Secret::from_bytes(std::array::from_fn(|at| u8::try_from(at).expect("small")))
    }

    #[test]
    fn a_secret_is_256_bits_and_written_as_43_characters() {
        let secret = Secret::random().expect("random bytes");
        assert_eq!(secret.text().len(), 43, "[SEC-3]");
        assert_eq!(
            Secret::from_text(secret.text()).expect("readable").text(),
            secret.text(),
            "what is written is read"
        );
        assert_ne!(Secret::random().expect("random bytes").text(), secret.text());
        assert_eq!(known().text(), "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8");
    }

    #[test]
    fn what_is_no_secret_is_not_read() {
        let long = known().text().to_owned() + "A";
        for bad in ["", "short", "not base64url!", &long, &(known().text().to_owned() + "=")] {
            assert!(Secret::from_text(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn only_the_whole_secret_is_the_secret() {
        let secret = known();
        assert!(secret.is(secret.text()), "[SEC-3]");
        let longer = secret.text().to_owned() + "x";
        for bad in ["", &secret.text()[..42], &longer, &secret.text().to_lowercase()] {
            assert!(!secret.is(bad), "{bad}");
        }
    }

    #[test]
    fn macs_are_those_of_other_implementations() {
        // RFC 4231 has no test with a key of 32 bytes; these come from Python's `hmac`.
        let vectors =
            [("health|kit-nonce-123|4711", HEALTH), ("server|AAAA|BBBB|4711", SERVER), ("", EMPTY)];
        for (message, mac) in vectors {
            assert_eq!(known().mac(message), mac, "{message}");
            assert!(known().proves(message, mac));
            assert!(!known().proves(message, &mac[1..]));
            assert!(!known().proves("another", mac));
        }
    }

    const HEALTH: &str = "xm42vawMaxxVXLT6IQDLCzxNl1BvlIOXSk2sLkjXoGU";
    const SERVER: &str = "9_s1MQ8FrUEkLqeT0Ufclbwjr-VyQu5Zt8b7l9Rm7tc";
    const EMPTY: &str = "04tCCW2A9F-Ca0Sp1WB95ySWpBXT9KGoyI47udqNwcs";

    #[test]
    fn debug_does_not_show_it() {
        assert_eq!(format!("{:?}", known()), "Secret");
    }
}
