//! What a peer gave back: its result, and how that came about.
//!
//! A bridge keeps one [`Reply`] as the JSON part of a result; the surface of the bridge takes it apart
//! again. Both sides read the same struct, and neither knows the other.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::content::{Json, NotJson};

/// What a peer gave back. Texts are kept byte for byte.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Reply<'a> {
    /// The result; absent when there is no value, which is not the same as `null`.
    #[serde(
        borrow,
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub result: Option<&'a RawValue>,
    /// What of the peer did the work.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Cow<'a, str>>,
    /// Which of the peer's parts it was done in, by the peer's own number. Results of earlier versions
    /// have it as `tab_id`.
    #[serde(default, alias = "tab_id", skip_serializing_if = "Option::is_none")]
    pub target: Option<i64>,
    /// Where the content of the result comes from.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Cow<'a, str>>,
    /// What that part calls itself: content, like the result.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Cow<'a, str>>,
    /// Whether the peer chose that part itself, as the caller had none yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_found: bool,
    /// A part that came about by it, which the caller's next work does not go to.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<Opened<'a>>,
    /// Whether a part of the result was left out, because it was too large.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A part of the peer that came about by a piece of work.
#[derive(Debug, Serialize, Deserialize)]
pub struct Opened<'a> {
    /// Its number.
    pub target: i64,
    /// Where its content comes from, as far as that is known yet.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Cow<'a, str>>,
}

impl Reply<'_> {
    /// Writes it as the part of a result.
    ///
    /// # Errors
    /// Never for a reply that was read; [`NotJson`] otherwise.
    pub fn to_json(&self) -> Result<Json, NotJson> {
        Json::of(self)
    }
}

/// Reads a member that may be `null` and is there all the same.
fn present<'de: 'a, 'a, D>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_and_null_are_told_apart_and_numbers_stay_as_written() {
        for text in [r#"{}"#, r#"{"result":null}"#, r#"{"result":[1.0,1e2],"engine":"debugger"}"#] {
            let reply: Reply<'_> = serde_json::from_str(text).expect("a reply");
            assert_eq!(reply.to_json().expect("JSON").get(), text);
        }
    }

    #[test]
    fn a_result_that_an_earlier_version_kept_still_says_where_it_was_done() {
        let reply: Reply<'_> = serde_json::from_str(r#"{"result":1,"tab_id":7}"#).expect("a reply");
        assert_eq!(reply.target, Some(7));
    }
}
