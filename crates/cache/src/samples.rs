//! Documents for tests.

use std::{io, ops::Range};

use proptest::prelude::*;
use serde_json::Value;

use crate::Source;

/// A source that is not in memory as a whole, as compressed blocks are.
pub(crate) struct Blocks(pub(crate) Vec<u8>);

impl Source for Blocks {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn read(&self, range: Range<usize>, out: &mut Vec<u8>) -> io::Result<()> {
        Source::read(self.0.as_slice(), range, out)
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-z]{0,8}",
        2 => "[ -~]{0,40}",
        2 => "(日本|é|e\u{301}|👨‍👩‍👧‍👦|🇩🇪|\\\\|\"|\n|\r\n|\t|\u{1}|/|~){0,30}",
        1 => "[a-z \n]{900,4000}",
        1 => "(👨‍👩‍👧‍👦|e\u{301}|가|ab){200,700}",
    ]
}

/// Counts the bytes that are read of a body.
pub(crate) struct Counted {
    pub(crate) body: Vec<u8>,
    pub(crate) n_read: std::sync::atomic::AtomicUsize,
}

impl Counted {
    pub(crate) fn new(body: Vec<u8>) -> Self {
        Self { body, n_read: 0.into() }
    }

    /// Returns how many bytes were read since this was asked last.
    pub(crate) fn take(&self) -> usize {
        self.n_read.swap(0, std::sync::atomic::Ordering::Relaxed)
    }
}

impl Source for Counted {
    fn len(&self) -> usize {
        self.body.len()
    }

    fn read(&self, range: Range<usize>, out: &mut Vec<u8>) -> io::Result<()> {
        self.n_read.fetch_add(range.len(), std::sync::atomic::Ordering::Relaxed);
        Source::read(self.body.as_slice(), range, out)
    }
}

/// Any value, some with long strings and many items.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|n| Value::from(f64::from(n) / 8.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 400, 24, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..24).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..12)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Writes a value the way `style` says: compact, pretty, or with escapes for all that is not ASCII.
pub(crate) fn write(value: &Value, style: u8) -> Vec<u8> {
    let compact = serde_json::to_string(value).unwrap();
    match style % 3 {
        0 => compact.into_bytes(),
        1 => serde_json::to_vec_pretty(value).unwrap(),
        _ => {
            let mut out = String::new();
            for character in compact.chars() {
                if character.is_ascii() {
                    out.push(character);
                } else {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
            }
            out.into_bytes()
        }
    }
}
