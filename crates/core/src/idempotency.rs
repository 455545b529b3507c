//! When two submits are the same submit [IDEM-1].
//!
//! Inputs are equal when they are equal JSON: members in any order, strings by their characters and
//! numbers as they are written. `1` and `1.0` are not the same, since a tool can tell them apart; how a
//! power of ten is spelled, as in `1E5`, `1e5` and `1e+05`, no tool can.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::content::{Json, MAX_DEPTH, NotJson};

/// What the keys of requests begin with that one server gives another, and that no caller writes by
/// chance: such a key is one request's, and lives as long as the row of its task [ATTACH-6].
pub const REQUEST: char = '\u{1}';

/// Tells whether a key is one of a request, not of a caller.
#[must_use]
pub fn is_of_request(key: &str) -> bool {
    key.starts_with(REQUEST)
}

/// Hashes inputs in their canonical form.
///
/// # Errors
/// `NotJson` when a member name is doubled, a string holds a lone surrogate, or nesting is too deep.
pub fn hash_inputs(inputs: &Json) -> Result<u128, NotJson> {
    let mut hasher = Sha256::new();
    feed(&mut hasher, inputs.raw(), 0)?;
    Ok(first_bits(hasher))
}

/// Hashes words, so that no two lists of words have one hash but by chance of 2 to the power of -128.
pub fn hash_words<'w>(words: impl IntoIterator<Item = &'w str>) -> u128 {
    let mut hasher = Sha256::new();
    words.into_iter().for_each(|word| feed_text(&mut hasher, word));
    first_bits(hasher)
}

fn first_bits(hasher: Sha256) -> u128 {
    hasher.finalize().iter().take(16).fold(0, |bits, byte| bits << 8 | u128::from(*byte))
}

fn feed(hasher: &mut Sha256, value: &RawValue, level: usize) -> Result<(), NotJson> {
    let text = value.get();
    if level > MAX_DEPTH {
        return Err(NotJson::Depth);
    }
    match text.as_bytes().first() {
        Some(b'{') => {
            let members: Members<'_> = read(text)?;
            hasher.update(b"{");
            for (name, member) in members.0 {
                feed_text(hasher, &name);
                feed(hasher, member, level + 1)?;
            }
            hasher.update(b"}");
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = read(text)?;
            hasher.update(b"[");
            for item in items {
                feed(hasher, item, level + 1)?;
            }
            hasher.update(b"]");
        }
        Some(b'"') => feed_text(hasher, &read::<String>(text)?),
        _ => {
            hasher.update(b"#");
            match text.as_bytes().first() {
                Some(b'-' | b'0'..=b'9') => feed_number(hasher, text),
                _ => hasher.update(text.as_bytes()),
            }
            hasher.update(b";");
        }
    }
    Ok(())
}

/// Feeds a number as it is written, with one spelling of its power of ten.
fn feed_number(hasher: &mut Sha256, text: &str) {
    let Some((digits, exponent)) = text.split_once(['e', 'E']) else {
        return hasher.update(text.as_bytes());
    };
    let (sign, power) = match exponent.strip_prefix('-') {
        Some(power) => ("-", power),
        None => ("", exponent.strip_prefix('+').unwrap_or(exponent)),
    };
    let power = power.trim_start_matches('0');
    // No power at all is still written: `1e0` is not `1`.
    let (sign, power) = if power.is_empty() { ("", "0") } else { (sign, power) };
    for part in [digits, "e", sign, power] {
        hasher.update(part.as_bytes());
    }
}

/// Feeds a string with its length in front, so that no two sequences of strings feed the same bytes.
fn feed_text(hasher: &mut Sha256, text: &str) {
    hasher.update(b"\"");
    hasher.update((text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, NotJson> {
    serde_json::from_str(text).map_err(|error| NotJson::Syntax(error.to_string()))
}

/// The members of an object, sorted, each name once.
struct Members<'a>(BTreeMap<String, &'a RawValue>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Sorted;

        impl<'de> Visitor<'de> for Sorted {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((name, value)) = access.next_entry::<String, &'de RawValue>()? {
                    if members.contains_key(&name) {
                        return Err(A::Error::custom(format!("member `{name}` is doubled")));
                    }
                    members.insert(name, value);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Sorted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> Result<u128, NotJson> {
        hash_inputs(&Json::parse(text).expect("JSON"))
    }

    #[test]
    fn the_order_of_members_spaces_and_escapes_do_not_matter() {
        let one = r#"{"a":1,"b":{"c":[1,2],"d":null},"e":"é"}"#;
        let two = r#"{ "e":"\u00e9", "b":{"d":null,"c":[1,2]}, "a":1 }"#;
        assert_eq!(hash(one), hash(two));
    }

    #[test]
    fn numbers_count_as_they_are_written_but_for_the_spelling_of_a_power_of_ten() {
        // [IDEM-1]
        let same = [
            &["1E5", "1e5", "1e+5", "1E+05", "1e005"][..],
            &["1e0", "1E-0", "1e+00"],
            &["2.5e-3", "2.5E-03"],
        ];
        let mut all = std::collections::BTreeSet::new();
        for group in same {
            let hashes: std::collections::BTreeSet<_> =
                group.iter().map(|text| hash(&format!("[{text}]")).expect("JSON")).collect();
            assert_eq!(hashes.len(), 1, "{group:?}");
            all.extend(hashes);
        }
        let apart =
            ["1", "1.0", "100000", "0", "-0", "9007199254740993", "9007199254740992", "1e50"];
        let more = ["0.1", "0.10", "2.5e3", "10e4", "-1e5", "1e400", "true", "false", "null"];
        all.extend(apart.iter().chain(&more).map(|text| hash(&format!("[{text}]")).expect("JSON")));
        assert_eq!(all.len(), same.len() + apart.len() + more.len());
    }

    #[test]
    fn what_is_near_each_other_is_not_the_same() {
        let texts = [r#"["a","b"]"#, r#"["ab",""]"#, r#"[["a"],"b"]"#, r#"["a",["b"]]"#, "[1,2]"];
        let more = ["[12]", r#"["1","2"]"#, r#"{"a":"b"}"#, "[null]", "[]", "{}", r#"[""]"#];
        let hashes: std::collections::BTreeSet<_> =
            texts.iter().chain(&more).map(|text| hash(text).expect("JSON")).collect();
        assert_eq!(hashes.len(), texts.len() + more.len());
    }

    #[test]
    fn a_doubled_member_and_a_lone_surrogate_are_refused() {
        let error = hash(r#"{"a":1,"a":2}"#).expect_err("doubled");
        assert!(error.to_string().contains("`a` is doubled"), "{error}");
        assert!(hash(r#"["\ud800"]"#).is_err());
    }
}
