//! A key under which a server knows its own words again [CALL-8].

use std::fmt::{self, Write as _};
use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// A key of 256 bits for message authentication codes. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct MacKey([u8; 32]);

impl MacKey {
    /// Takes 32 bytes that cannot be guessed as the key.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes, for a store that keeps them.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns a name for what the key belongs to: others have other names, and nobody learns the key
    /// from it.
    #[must_use]
    pub fn name(&self) -> Arc<str> {
        let mut name = String::with_capacity(32);
        for byte in self.mac("name", []).iter().take(16) {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        name.into()
    }

    /// Returns the HMAC-SHA256 of a row of parts, each with its length before it: no two rows have the
    /// same bytes. `purpose` keeps the codes of different uses apart.
    #[must_use]
    pub fn mac<'a>(&self, purpose: &'a str, parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
        #[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any key will do");
        for part in std::iter::once(purpose.as_bytes()).chain(parts) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(key: u8, purpose: &str, parts: &[&str]) -> String {
        let key = MacKey::from_bytes([key; 32]);
        let mac = key.mac(purpose, parts.iter().map(|part| part.as_bytes()));
        mac.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_code_is_that_of_another_implementation() {
        // From Python's `hmac` over the parts with their lengths before them.
        assert_eq!(mac(7, "answer", &["one", ""]), KNOWN);
    }

    #[test]
    fn each_part_its_place_the_purpose_and_the_key_count() {
        let all = [
            mac(7, "answer", &["ab", "c"]),
            mac(7, "answer", &["a", "bc"]),
            mac(7, "answer", &["abc"]),
            mac(7, "answer", &["abc", ""]),
            mac(7, "other", &["abc"]),
            mac(8, "answer", &["abc"]),
        ];
        let n_different = all.iter().collect::<std::collections::BTreeSet<_>>().len();
        assert_eq!(n_different, all.len());
    }

    const KNOWN: &str = "3553469f3f4f6976c27fb30e0551e023e34ee50f2089b3c69b9841fca87a7805";

    #[test]
    fn debug_does_not_show_it() {
        assert_eq!(format!("{:?}", MacKey::from_bytes([1; 32])), "MacKey");
    }
}
