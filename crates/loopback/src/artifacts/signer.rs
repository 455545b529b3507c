//! Links that prove themselves.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use raincheck_core::ids::ArtifactId;
use raincheck_core::time::Timestamp;

use crate::secret::Secret;

/// All but the characters that stand for themselves in every part of a URL.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Writes a text as one segment of a path.
pub(super) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// Signs links to artifacts, and knows its own again [ART-2].
#[derive(Clone, Debug)]
pub struct Signer(Secret);

/// What a link that was verified names.
#[derive(Debug)]
pub(super) struct Link<'a> {
    pub(super) id: ArtifactId,
    pub(super) name: Cow<'a, str>,
}

impl Signer {
    /// Makes a signer. Links are good as long as the secret is the same.
    #[must_use]
    pub const fn new(secret: Secret) -> Self {
        Self(secret)
    }

    /// Writes the link to an artifact: `{base}/artifacts/{id}/{name}?exp={unix ms}&sig={mac}`.
    ///
    /// `base` is the listener's [`Info::url`](crate::Info::url).
    #[must_use]
    pub fn url(&self, base: &str, id: &ArtifactId, name: &str, expires: Timestamp) -> String {
        let id = id.as_str();
        let expiry = expires.as_millis().to_string();
        let mac = self.0.mac(&message(&expiry, id, name));
        format!("{base}/artifacts/{}/{}?exp={expiry}&sig={mac}", encode(id), encode(name))
    }

    /// Reads a link; `None` unless this signer wrote it, exactly so, and it has not expired.
    pub(super) fn verify<'a>(
        &self,
        path: &'a str,
        query: &str,
        now: Timestamp,
    ) -> Option<Link<'a>> {
        let (id, name) = path.strip_prefix("/artifacts/")?.split_once('/')?;
        let id = percent_decode_str(id).decode_utf8().ok()?;
        let name = percent_decode_str(name).decode_utf8().ok()?;
        let (expiry, mac) = query.strip_prefix("exp=")?.split_once("&sig=")?;
        if !self.0.proves(&message(expiry, &id, &name), mac) {
            return None;
        }
        let expires = Timestamp::from_millis(expiry.parse().ok()?);
        (now < expires).then(|| Link { id: ArtifactId::new(id.as_ref()), name })
    }
}

/// Joins the parts so that no two links have the same message: the length says where the id ends.
fn message(expiry: &str, id: &str, name: &str) -> String {
    format!("artifact|{expiry}|{}|{id}|{name}", id.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "http://127.0.0.1:4711";
    const EXPIRES: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn signer() -> Signer {
        Signer::new(Secret::from_bytes([7; 32]))
    }

    fn link(name: &str) -> String {
        signer().url(BASE, &ArtifactId::from("art_1"), name, EXPIRES)
    }

    fn read(url: &str, now: Timestamp) -> Option<(String, String)> {
        let (path, query) = url.strip_prefix(BASE)?.split_once('?')?;
        let link = signer().verify(path, query, now)?;
        Some((link.id.as_str().to_owned(), link.name.into_owned()))
    }

    #[test]
    fn a_link_names_the_artifact_and_the_file_in_one_segment_each() {
        let url = link("sub dir/ü?.bin");
        assert!(
            url.starts_with(
                "http://127.0.0.1:4711/artifacts/art_1/sub%20dir%2F%C3%BC%3F.bin?exp=1800000000000&sig="
            ),
            "[ART-2] {url}"
        );
        let before = Timestamp::from_millis(EXPIRES.as_millis() - 1);
        assert_eq!(read(&url, before), Some(("art_1".to_owned(), "sub dir/ü?.bin".to_owned())));
    }

    #[test]
    fn a_link_ends_at_its_expiry() {
        assert!(read(&link("a.bin"), EXPIRES).is_none(), "[ART-2]");
    }

    #[test]
    fn a_link_with_any_byte_changed_is_none() {
        let url = link("a.bin");
        for at in BASE.len()..url.len() {
            for byte in [b'0', b'a', b'/', b'%', b'&'] {
                let mut bytes = url.clone().into_bytes();
                if bytes[at] == byte {
                    continue;
                }
                bytes[at] = byte;
                let changed = String::from_utf8(bytes).expect("ASCII");
                assert!(read(&changed, Timestamp::MIN).is_none(), "[ART-2] {changed}");
            }
        }
        assert!(read(&url, Timestamp::MIN).is_some());
    }

    #[test]
    fn a_link_with_something_added_or_left_out_is_none() {
        let url = link("a.bin");
        let (path, query) = url.split_once('?').expect("a query");
        let odd = [
            path.to_owned(),
            format!("{path}?"),
            format!("{path}?{}", query.replace("exp=", "exp=0")),
            format!("{path}?{}", query.replace("exp=", "exp=%2B")),
            format!("{url}0"),
            format!("{url}="),
            format!("{url}&x=1"),
            format!("{path}/?{query}"),
            format!("{path}%2f..%2fsecret?{query}"),
            format!("{path}/../../etc/passwd?{query}"),
            url.replace("a.bin", ""),
            url.replace("/a.bin", ""),
        ];
        for url in odd {
            assert!(read(&url, Timestamp::MIN).is_none(), "[ART-2] {url}");
        }
    }

    #[test]
    fn the_border_between_id_and_name_cannot_be_moved() {
        assert_ne!(message("1", "a", "b|c"), message("1", "a|b", "c"));
        assert_ne!(message("1", "1|a", "b"), message("1", "1", "a|b"));
    }
}
