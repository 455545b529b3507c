//! Numbers and texts as bytes, for the index file.

use std::sync::Arc;

use uuid::Uuid;

/// Appends values.
#[derive(Debug, Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn id(&mut self, id: Uuid) {
        self.0.extend_from_slice(id.as_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(super) fn maybe<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.byte(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// Takes values from the front; `None` when the rest is no such value.
#[derive(Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        self.0.split_off_first().copied()
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub(super) fn id(&mut self) -> Option<Uuid> {
        let (id, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(Uuid::from_bytes(*id))
    }

    pub(super) fn text(&mut self) -> Option<Arc<str>> {
        let len = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        std::str::from_utf8(text).ok().map(Arc::from)
    }
}

/// The rest is no such value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Malformed;

/// Takes a value that [`Writer::maybe`] wrote.
///
/// # Errors
/// When the rest is none.
pub(super) fn maybe<'a, T>(
    from: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Option<T>,
) -> Result<Option<T>, Malformed> {
    match from.byte() {
        Some(0) => Ok(None),
        Some(1) => read(from).map(Some).ok_or(Malformed),
        _ => Err(Malformed),
    }
}
