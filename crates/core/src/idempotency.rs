//! When two submits are the same submit [IDEM-1].
//!
//! Inputs are equal when they are equal JSON: members in any order, strings by their characters and
//! numbers by their value, to the last digit: `1E5`, `1e5`, `100000` and `100000.0` are one number, and no
//! two integers are one because a binary fraction cannot tell them apart.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::content::{Json, MAX_DEPTH, NotJson};

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
            match Number::read(text) {
                Some(number) => number.feed(hasher),
                None => hasher.update(text.as_bytes()),
            }
            hasher.update(b";");
        }
    }
    Ok(())
}

/// A number as digits and a power of ten: neither the first digit nor the last is a zero. Zero, whatever
/// its sign, has no digits.
struct Number<'t> {
    is_negative: bool,
    whole: &'t str,
    fraction: &'t str,
    exponent: i128,
}

impl<'t> Number<'t> {
    /// Reads a number of JSON; `None` for another word, and for a power of ten beyond 38 digits, which
    /// stays as it was written.
    fn read(text: &'t str) -> Option<Self> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if !text.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i128>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        // A whole part of nothing but zeros lets the fraction begin later, a fraction of them lets the
        // whole part end earlier.
        let first = if whole.is_empty() { fraction.trim_start_matches('0') } else { fraction };
        let exponent = exponent.checked_sub(i128::try_from(fraction.len()).ok()?)?;
        if first.is_empty() {
            let kept = whole.trim_end_matches('0');
            let exponent = exponent.checked_add(i128::try_from(whole.len() - kept.len()).ok()?)?;
            let exponent = if kept.is_empty() { 0 } else { exponent };
            let is_negative = is_negative && !kept.is_empty();
            return Some(Self { is_negative, whole: kept, fraction: "", exponent });
        }
        Some(Self { is_negative, whole, fraction: first, exponent })
    }

    /// Feeds a whole number without zeros at its end as it is written.
    fn feed(&self, hasher: &mut Sha256) {
        if self.is_negative {
            hasher.update(b"-");
        }
        hasher.update(self.whole.as_bytes());
        hasher.update(self.fraction.as_bytes());
        if self.whole.is_empty() && self.fraction.is_empty() {
            hasher.update(b"0");
        }
        if self.exponent != 0 {
            hasher.update(b"e");
            hasher.update(self.exponent.to_string().as_bytes());
        }
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
    fn numbers_count_by_their_value_to_the_last_digit() {
        // [IDEM-1]
        let same = [
            &["1E5", "1e5", "1e+5", "100000", "100000.0", "0.1e6", "1000e2", "10.0e04"][..],
            &["1", "1.0", "1.000", "10e-1", "0.01E2"],
            &["0", "-0", "0.0", "-0.000e7", "0E999"],
            &["-1.5", "-15e-1", "-0.15e1", "-1.50"],
            &["0.001", "1e-3", "0.0010", "1000e-6"],
            &["10.01", "1001e-2"],
        ];
        let mut all = std::collections::BTreeSet::new();
        for group in same {
            let hashes: std::collections::BTreeSet<_> =
                group.iter().map(|text| hash(&format!("[{text}]")).expect("JSON")).collect();
            assert_eq!(hashes.len(), 1, "{group:?}");
            all.extend(hashes);
        }
        let apart = [
            "9007199254740993",
            "9007199254740992",
            "0.1",
            "0.10000000000000000001",
            "1e400",
            "1e401",
            "-1",
            "15",
            "1e99999999999999999999999999999999999999999",
            "101",
            "11",
            "true",
        ];
        all.extend(apart.iter().map(|text| hash(&format!("[{text}]")).expect("JSON")));
        assert_eq!(all.len(), same.len() + apart.len());
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
