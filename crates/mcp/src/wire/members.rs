//! The members of an object, as the texts that they are.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use raincheck_core::content::Json;

/// The members of an object in their order, each as it was written: what is done to one of them leaves the
/// others as they are.
#[derive(Debug)]
pub(crate) struct Members<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Members<'a> {
    /// Reads an object; `None` for what is none.
    pub(crate) fn read(json: &'a Json) -> Option<Self> {
        serde_json::from_str(json.get()).ok()
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|(key, _)| {
            serde_json::from_str::<Cow<'_, str>>(key).is_ok_and(|key| key == name)
        })
    }

    /// Returns the text of a member.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.position(name).and_then(|place| self.0.get(place)).map(|(_, value)| *value)
    }

    /// Takes a member out; with a name that is written twice, both.
    pub(crate) fn remove(&mut self, name: &str) {
        while let Some(place) = self.position(name) {
            self.0.remove(place);
        }
    }

    /// Writes the object with more members behind its own.
    pub(crate) fn with(&self, more: &[(&str, &Json)]) -> Json {
        let own = self.0.iter().map(|(key, value)| (Cow::Borrowed(*key), *value));
        let more = more.iter().filter_map(|(name, value)| {
            Some((Cow::Owned(serde_json::to_string(name).ok()?), value.get()))
        });
        let mut text = String::from("{");
        for (key, value) in own.chain(more) {
            if text.len() > 1 {
                text.push(',');
            }
            text.extend([&*key, ":", value]);
        }
        text.push('}');
        // Each piece is JSON.
        Json::parse(text).unwrap_or_else(|_| Json::empty_object())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Raw;

        impl<'de> Visitor<'de> for Raw {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    members.push((key.get(), value.get()));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_their_bytes() {
        // [GATE-10] [RESULT-1]
        let text = r#"{ "z" : 1e2, "\u0061" :{"b": 1.0},"n":123456789012345678901234567890,"z":2}"#;
        let json = Json::parse(text).expect("JSON");
        let mut members = Members::read(&json).expect("an object");
        assert_eq!(members.get("a"), Some(r#"{"b": 1.0}"#));
        members.remove("z");
        let more = Json::parse("7").expect("JSON");
        assert_eq!(
            members.with(&[("m\"", &more)]).get(),
            r#"{"\u0061":{"b": 1.0},"n":123456789012345678901234567890,"m\"":7}"#
        );
        assert!(Members::read(&Json::parse("[1]").expect("JSON")).is_none());
        let empty = Json::empty_object();
        assert_eq!(Members::read(&empty).expect("an object").with(&[]).get(), "{}");
    }
}
