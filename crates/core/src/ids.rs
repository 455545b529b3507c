//! Identities: one 128-bit task identity with four spellings, and the fence of an attempt [ID-1].

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// The identity of a task: 128 bits laid out as a `UUIDv7`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(u128);

/// A way to write a [`TaskId`]; every surface parses all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// `tsk_` and 26 Crockford characters.
    Task,
    /// The hyphenated UUID (`log_id`).
    Uuid,
    /// `job-` and 26 Crockford characters, for the Unity surface.
    Job,
    /// `corr-<unix ms>-<20 hex digits>`.
    Correlation,
}

/// A text that is no spelling of any task identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a task id")]
pub struct NotATaskId;

const LOW_80: u128 = (1 << 80) - 1;
const VERSION_MASK: u128 = 0xF << 76;
const VERSION_7: u128 = 0x7 << 76;
const VARIANT_MASK: u128 = 0b11 << 62;
const VARIANT_RFC: u128 = 0b10 << 62;

impl TaskId {
    /// Lays out an identity from Unix milliseconds (low 48 bits used) and 80 random bits, of which 74 are kept.
    #[must_use]
    pub const fn from_parts(unix_ms: u64, random: [u8; 10]) -> Self {
        let mut low: u128 = 0;
        let mut i = 0;
        while i < random.len() {
            #[expect(clippy::indexing_slicing, reason = "i is below the array's length")]
            {
                low = (low << 8) | random[i] as u128;
            }
            i += 1;
        }
        let high = (unix_ms as u128 & 0xFFFF_FFFF_FFFF) << 80;
        let bits = (high | low) & !VERSION_MASK & !VARIANT_MASK;
        Self(bits | VERSION_7 | VARIANT_RFC)
    }

    /// Takes 128 bits as they are; `None` when they are not laid out as a `UUIDv7`.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Option<Self> {
        if bits & VERSION_MASK == VERSION_7 && bits & VARIANT_MASK == VARIANT_RFC {
            Some(Self(bits))
        } else {
            None
        }
    }

    /// Returns the 128 bits.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// Writes the identity in the given spelling.
    #[must_use]
    pub fn spell(self, spelling: Spelling) -> String {
        match spelling {
            Spelling::Task => format!("tsk_{}", ulid::Ulid(self.0)),
            Spelling::Uuid => uuid::Uuid::from_u128(self.0).hyphenated().to_string(),
            Spelling::Job => format!("job-{}", ulid::Ulid(self.0)),
            Spelling::Correlation => format!("corr-{}-{:020x}", self.0 >> 80, self.0 & LOW_80),
        }
    }

    fn from_crockford(text: &str) -> Option<u128> {
        let canonical = text.len() == 26 && text.starts_with(|c: char| ('0'..='7').contains(&c));
        let plain = text.bytes().all(|b| b"0123456789ABCDEFGHJKMNPQRSTVWXYZ".contains(&b));
        if !(canonical && plain) {
            return None;
        }
        ulid::Ulid::from_string(text).ok().map(|ulid| ulid.0)
    }

    fn from_correlation(text: &str) -> Option<u128> {
        let (ms, tail) = text.split_once('-')?;
        let digits = !ms.is_empty() && ms.len() <= 15 && ms.bytes().all(|b| b.is_ascii_digit());
        let hex = tail.len() == 20 && tail.bytes().all(|b| b.is_ascii_hexdigit());
        if !(digits && hex) || (ms.len() > 1 && ms.starts_with('0')) {
            return None;
        }
        let ms: u64 = ms.parse().ok().filter(|ms| *ms < (1 << 48))?;
        Some(u128::from(ms) << 80 | u128::from_str_radix(tail, 16).ok()?)
    }

    fn from_hyphenated(text: &str) -> Option<u128> {
        let shape = text.len() == 36 && text.is_ascii();
        shape.then(|| uuid::Uuid::try_parse(text).ok().map(|uuid| uuid.as_u128())).flatten()
    }
}

impl FromStr for TaskId {
    type Err = NotATaskId;

    fn from_str(text: &str) -> Result<Self, NotATaskId> {
        let bits =
            if let Some(rest) = text.strip_prefix("tsk_").or_else(|| text.strip_prefix("job-")) {
                Self::from_crockford(rest)
            } else if let Some(rest) = text.strip_prefix("corr-") {
                Self::from_correlation(rest)
            } else {
                Self::from_hyphenated(text)
            };
        bits.and_then(Self::from_bits).ok_or(NotATaskId)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spell(Spelling::Task))
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for TaskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The number of an attempt across the life of a store: `epoch << 32 | n`. It only grows [LEASE-1].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(transparent)]
pub struct Fence(u64);

impl Fence {
    /// The fence of a task that was never leased.
    pub const NONE: Self = Self(0);

    /// Makes the `n`-th fence of an epoch.
    #[must_use]
    pub const fn new(epoch: u32, n: u32) -> Self {
        Self((epoch as u64) << 32 | n as u64)
    }

    /// Takes a fence that a peer or a file carried.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// Returns the number as it goes on a wire.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as the name.
            #[must_use]
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// Returns the text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
    };
}

name!(
    /// The name of a lane: a resource class of programs, or one peer of a bridge.
    LaneId
);
name!(
    /// The name of a tool as callers write it.
    ToolName
);
name!(
    /// The name of one place of a lane's concurrency, as `status` shows it.
    WorkerId
);
name!(
    /// The opaque name of an artifact.
    ArtifactId
);

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Spelling; 4] =
        [Spelling::Task, Spelling::Uuid, Spelling::Job, Spelling::Correlation];

    #[test]
    fn an_identity_is_laid_out_as_a_uuid_v7() {
        let id = TaskId::from_parts(1_764_288_000_000, [0xFF; 10]);
        assert_eq!(id.spell(Spelling::Uuid).as_bytes()[14], b'7');
        assert_eq!(id.bits() >> 80, 1_764_288_000_000);
        assert!(TaskId::from_bits(0).is_none());
    }

    #[test]
    fn identities_sort_by_their_millisecond() {
        assert!(TaskId::from_parts(1, [0xFF; 10]) < TaskId::from_parts(2, [0; 10]));
    }

    #[test]
    fn anything_else_is_no_identity() {
        let id = TaskId::from_parts(1_764_288_000_000, [7; 10]);
        let long = format!("{id}0");
        let wide = "tsk_".to_owned() + &"\u{ff10}".repeat(26);
        let cases = ["", "tsk_", "x", &long, &wide, "tsk_88888888888888888888888888"];
        for text in cases {
            assert_eq!(text.parse::<TaskId>(), Err(NotATaskId), "{text:?}");
        }
        let lower = id.to_string().to_lowercase();
        assert_eq!(lower.parse::<TaskId>(), Err(NotATaskId), "letters are upper case only");
    }

    proptest::proptest! {
        #[test]
        fn every_spelling_names_the_same_bits(ms in 0_u64..(1 << 48), random: [u8; 10]) {
            let id = TaskId::from_parts(ms, random);
            for spelling in ALL {
                proptest::prop_assert_eq!(id.spell(spelling).parse(), Ok(id));
            }
        }

        #[test]
        fn parsing_never_panics(text in "\\PC{0,60}") {
            let _ = text.parse::<TaskId>();
        }
    }
}
