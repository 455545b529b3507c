//! Both ends prove that they know the secret, which itself never travels [SEC-4].

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use raincheck_loopback::Secret;

/// Whose proof it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Server,
    Client,
}

/// What both proofs of one connection are made of.
#[derive(Clone, Debug)]
pub(crate) struct Challenge {
    pub(crate) client_nonce: String,
    pub(crate) server_nonce: String,
    pub(crate) port: u16,
}

impl Challenge {
    fn text(&self, side: Side) -> String {
        let side = match side {
            Side::Server => "server",
            Side::Client => "client",
        };
        format!("{side}|{}|{}|{}", self.client_nonce, self.server_nonce, self.port)
    }

    /// Returns the proof of a side.
    pub(crate) fn proof(&self, secret: &Secret, side: Side) -> String {
        secret.mac(&self.text(side))
    }

    /// Returns whether a proof is the right one, in constant time.
    pub(crate) fn is_proved(&self, secret: &Secret, side: Side, mac: &str) -> bool {
        secret.proves(&self.text(side), mac)
    }
}

/// Writes 128 random bits as a nonce.
pub(crate) fn nonce(bits: u128) -> String {
    URL_SAFE_NO_PAD.encode(bits.to_be_bytes())
}

/// Returns whether a text is a nonce: 16 bytes in base64url without padding.
pub(crate) fn is_nonce(text: &str) -> bool {
    URL_SAFE_NO_PAD.decode(text).is_ok_and(|bytes| bytes.len() == 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proofs_are_those_of_the_other_implementations() {
        // Computed with Python's `hmac`, as the editor's package and the suites do [SEC-4].
        let secret = Secret::from_bytes(std::array::from_fn(|at| u8::try_from(at).expect("small")));
        let challenge = Challenge {
            client_nonce: "AAAA".to_owned(),
            server_nonce: "BBBB".to_owned(),
            port: 4711,
        };
        let server = "9_s1MQ8FrUEkLqeT0Ufclbwjr-VyQu5Zt8b7l9Rm7tc";
        assert_eq!(challenge.proof(&secret, Side::Server), server);
        assert!(
            !challenge.is_proved(&secret, Side::Client, server),
            "one side's is not the other's"
        );
        assert!(challenge.is_proved(
            &secret,
            Side::Client,
            &challenge.proof(&secret, Side::Client)
        ));
    }

    #[test]
    fn a_nonce_is_sixteen_bytes() {
        assert!(is_nonce(&nonce(7)));
        for bad in ["", "AAAA", &nonce(7)[1..], &format!("{}==", nonce(7)), "a|b"] {
            assert!(!is_nonce(bad), "{bad}");
        }
    }
}
