//! The values that filters work on: those of JSON, with jq's rules.
//!
//! The engine's own value type is a superset of JSON with rules of its own; this one wraps it, so that
//! null can be updated, division by zero fails, numbers print as jq prints them, and what a value may
//! grow to is checked before it grows.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use jaq_core::box_iter::{BoxIter, box_once};
use jaq_core::path::Opt;
use jaq_core::{Exn, ValR, ValX};
use jaq_json::{Map, Num, Rc, Val};

use super::limits::Stop;

mod arithmetic;
pub(super) mod number;
pub(super) mod place;
pub(super) mod read;
pub(super) mod write;

/// A JSON value in a filter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Value(pub(super) Val);

/// What a filter fails with.
pub(super) type Error = jaq_core::Error<Value>;

/// How many bytes one string may have, or elements one array.
pub(super) const GROWTH: usize = 256 << 20;

/// Fails with a message.
pub(super) fn fail<T>(message: impl fmt::Display) -> Result<T, Error> {
    Err(Error::str(message))
}

impl Value {
    pub(super) fn string(text: impl Into<Bytes>) -> Self {
        Self(Val::utf8_str(text))
    }

    pub(super) fn array(items: impl IntoIterator<Item = Self>) -> Self {
        Self(Val::Arr(Rc::new(items.into_iter().map(|item| item.0).collect())))
    }

    pub(super) fn object<const N: usize>(entries: [(&'static str, Self); N]) -> Self {
        let mut map = Map::default();
        for (name, value) in entries {
            map.insert(Val::utf8_str(Bytes::from_static(name.as_bytes())), value.0);
        }
        Self(Val::obj(map))
    }

    /// The name of its type.
    pub(super) const fn kind(&self) -> &'static str {
        match self.0 {
            Val::Null => "null",
            Val::Bool(_) => "boolean",
            Val::Num(_) => "number",
            Val::BStr(_) | Val::TStr(_) => "string",
            Val::Arr(_) => "array",
            Val::Obj(_) => "object",
        }
    }

    /// Its type and its first characters, for messages.
    pub(super) fn shown(&self) -> String {
        format!("{} ({})", self.kind(), write::brief(&self.0))
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match &self.0 {
            Val::TStr(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    pub(super) fn as_number(&self) -> Option<f64> {
        match &self.0 {
            Val::Num(number) => Some(number::as_f64(number)),
            _ => None,
        }
    }

    /// Returns the text, or fails with what was wanted.
    pub(super) fn text(&self, wanted: &str) -> Result<&str, Error> {
        self.as_text().map_or_else(|| fail(format_args!("{} {wanted}", self.shown())), Ok)
    }

    fn cannot_iterate<T>(&self) -> Result<T, Error> {
        match self.0 {
            Val::Null => fail("Cannot iterate over null"),
            _ => fail(format_args!("Cannot iterate over {}", self.shown())),
        }
    }
}

/// Iterates over an array that others may hold.
fn items(array: Rc<Vec<Val>>) -> impl Iterator<Item = Value> {
    (0..array.len()).filter_map(move |at| array.get(at).cloned().map(Value))
}

/// Iterates over an object that others may hold.
fn entries(object: Rc<Map>) -> impl Iterator<Item = (Value, Value)> {
    (0..object.len()).filter_map(move |at| {
        object.get_index(at).map(|(key, value)| (Value(key.clone()), Value(value.clone())))
    })
}

/// Splits a string at each place where another stands.
pub(super) fn split_text(value: &Value, separator: &Value) -> Result<Value, Error> {
    match (&value.0, &separator.0) {
        (Val::TStr(text), Val::TStr(separator)) => Ok(arithmetic::split(text, separator)),
        _ => fail("split input and separator must be strings"),
    }
}

/// Takes an array out of its sharing.
pub(super) fn owned<T: Clone>(shared: Rc<T>) -> T {
    Rc::try_unwrap(shared).unwrap_or_else(|shared| (*shared).clone())
}

impl jaq_core::ValT for Value {
    fn from_num(text: &str) -> ValR<Self> {
        Ok(Self(Val::Num(number::literal(text))))
    }

    fn from_map<I: IntoIterator<Item = (Self, Self)>>(entries: I) -> ValR<Self> {
        let mut map = Map::default();
        for (key, value) in entries {
            if !matches!(key.0, Val::TStr(_)) {
                return fail(format_args!("Object keys must be strings, not {}", key.shown()));
            }
            map.insert(key.0, value.0);
        }
        Ok(Self(Val::obj(map)))
    }

    fn key_values(self) -> BoxIter<'static, ValR<(Self, Self), Self>> {
        match self.0 {
            Val::Arr(array) => {
                let with_index = |(at, item)| Ok((Self::from(at), item));
                Box::new(items(array).enumerate().map(with_index))
            }
            Val::Obj(object) => Box::new(entries(object).map(Ok)),
            _ => box_once(self.cannot_iterate()),
        }
    }

    fn values(self) -> Box<dyn Iterator<Item = ValR<Self>>> {
        match self.0 {
            Val::Arr(array) => Box::new(items(array).map(Ok)),
            Val::Obj(object) => Box::new(entries(object).map(|(_, value)| Ok(value))),
            _ => box_once(self.cannot_iterate()),
        }
    }

    fn index(self, index: &Self) -> ValR<Self> {
        place::get(&self, index).map(|found| found.unwrap_or(Self(Val::Null)))
    }

    fn range(self, range: Range<Option<&Self>>) -> ValR<Self> {
        place::slice(&self, range)
    }

    fn map_values<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        opt: Opt,
        update: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        match self.0 {
            Val::Arr(array) => {
                let updated = owned(array).into_iter().filter_map(|item| update(Self(item)).next());
                Ok(Self(Val::Arr(Rc::new(
                    updated.map(|item| Ok(item?.0)).collect::<Result<_, Exn<'a, Self>>>()?,
                ))))
            }
            Val::Obj(object) => {
                let updated = owned(object).into_iter();
                let updated = updated.filter_map(|(key, value)| {
                    update(Self(value)).next().map(|value| Ok((key, value?.0)))
                });
                Ok(Self(Val::obj(updated.collect::<Result<_, Exn<'a, Self>>>()?)))
            }
            _ => opt.fail(self, |value| {
                value
                    .cannot_iterate::<()>()
                    .err()
                    .map_or_else(|| Exn::from(Error::new(value.clone())), Exn::from)
            }),
        }
    }

    fn map_index<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        index: &Self,
        opt: Opt,
        update: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        if let Val::Obj(range) = &index.0 {
            let bound = |name: &'static str| {
                range.get(&Val::utf8_str(Bytes::from_static(name.as_bytes()))).cloned().map(Self)
            };
            let (start, end) = (bound("start"), bound("end"));
            return self.map_range(start.as_ref()..end.as_ref(), opt, update);
        }
        place::update(self, index, opt, |value| update(value).next().transpose())
    }

    fn map_range<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        range: Range<Option<&Self>>,
        opt: Opt,
        update: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        place::update_slice(self, range, opt, |value| update(value).next().transpose())
    }

    fn as_bool(&self) -> bool {
        !matches!(self.0, Val::Null | Val::Bool(false))
    }

    fn into_string(self) -> Self {
        match self.0 {
            Val::TStr(_) => self,
            _ => Self::string(write::grown(&self.0)),
        }
    }
}

impl jaq_std::ValT for Value {
    fn into_seq<S: FromIterator<Self>>(self) -> Result<S, Self> {
        match self.0 {
            Val::Arr(array) => Ok(items(array).collect()),
            _ => Err(self),
        }
    }

    fn is_int(&self) -> bool {
        self.as_isize().is_some() || matches!(self.0, Val::Num(Num::BigInt(_)))
    }

    fn as_isize(&self) -> Option<isize> {
        match &self.0 {
            Val::Num(number) => number::as_isize(number),
            _ => None,
        }
    }

    fn as_f64(&self) -> Option<f64> {
        self.as_number()
    }

    fn is_utf8_str(&self) -> bool {
        matches!(self.0, Val::TStr(_))
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        match &self.0 {
            Val::BStr(bytes) | Val::TStr(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn as_sub_str(&self, part: &[u8]) -> Self {
        match &self.0 {
            Val::BStr(bytes) | Val::TStr(bytes) => Self::string(bytes.slice_ref(part)),
            _ => Self::string(Bytes::copy_from_slice(part)),
        }
    }

    fn from_utf8_bytes(bytes: impl AsRef<[u8]> + Send + 'static) -> Self {
        match std::str::from_utf8(bytes.as_ref()) {
            Ok(_) => Self::string(Bytes::from_owner(bytes)),
            Err(_) => Self::string(String::from_utf8_lossy(bytes.as_ref()).into_owned()),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self(Val::Bool(value))
    }
}

impl From<isize> for Value {
    fn from(value: isize) -> Self {
        Self(Val::from(value))
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self(Val::from(value))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self(Val::Num(number::from_f64(value)))
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self(Val::from(value))
    }
}

impl From<Range<Option<Self>>> for Value {
    fn from(range: Range<Option<Self>>) -> Self {
        let bound = |bound: Option<Self>| bound.unwrap_or(Self(Val::Null));
        Self::object([("start", bound(range.start)), ("end", bound(range.end))])
    }
}

impl FromIterator<Self> for Value {
    fn from_iter<T: IntoIterator<Item = Self>>(items: T) -> Self {
        Self::array(items)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&write::bounded(&self.0, write::MESSAGE))
    }
}

/// Stops the run where a value would grow beyond what one value may be.
pub(super) fn check_growth(len: Option<usize>) -> usize {
    match len {
        Some(len) if len <= GROWTH => len,
        _ => Stop::Memory.now(),
    }
}
