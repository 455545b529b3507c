//! `+ - * / %`.

use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

use bytes::Bytes;
use jaq_core::ValR;
use jaq_json::{Map, Num, Rc, Val};

use super::{Value, check_growth, fail, number};

/// Calculates with integers while they fit, else with doubles. Integers of arbitrary size are compared
/// and printed, never calculated with: their cost has no bound.
fn calculate(
    left: &Num,
    right: &Num,
    exact: fn(isize, isize) -> Option<isize>,
    float: fn(f64, f64) -> f64,
) -> Value {
    if let (Num::Int(left), Num::Int(right)) = (left, right)
        && let Some(result) = exact(*left, *right)
    {
        return Value::from(result);
    }
    Value::from(float(number::as_f64(left), number::as_f64(right)))
}

fn cannot<T>(left: &Value, right: &Value, what: &str) -> Result<T, super::Error> {
    fail(format_args!("{} and {} cannot be {what}", left.shown(), right.shown()))
}

impl Add for Value {
    type Output = ValR<Self>;

    fn add(self, right: Self) -> Self::Output {
        match (self.0, right.0) {
            (Val::Null, other) | (other, Val::Null) => Ok(Self(other)),
            (Val::Num(left), Val::Num(right)) => {
                Ok(calculate(&left, &right, isize::checked_add, Add::add))
            }
            (Val::TStr(left), Val::TStr(right)) => Ok(concatenated(*left, &right)),
            (Val::Arr(mut left), Val::Arr(right)) => {
                check_growth(
                    left.len()
                        .checked_add(right.len())
                        .and_then(|len| len.checked_mul(size_of::<Val>())),
                );
                Rc::make_mut(&mut left).extend(right.iter().cloned());
                Ok(Self(Val::Arr(left)))
            }
            (Val::Obj(mut left), Val::Obj(right)) => {
                let map = Rc::make_mut(&mut left);
                map.extend(right.iter().map(|(key, value)| (key.clone(), value.clone())));
                Ok(Self(Val::Obj(left)))
            }
            (left, right) => cannot(&Self(left), &Self(right), "added"),
        }
    }
}

/// Appends in place where nobody else holds the bytes, so that a string can be built piece by piece.
fn concatenated(left: Bytes, right: &[u8]) -> Value {
    let len = check_growth(left.len().checked_add(right.len()));
    let mut buffer = left.try_into_mut().unwrap_or_else(|shared| {
        let mut buffer = bytes::BytesMut::with_capacity(len);
        buffer.extend_from_slice(&shared);
        buffer
    });
    buffer.extend_from_slice(right);
    Value::string(buffer.freeze())
}

impl Sub for Value {
    type Output = ValR<Self>;

    fn sub(self, right: Self) -> Self::Output {
        match (self.0, right.0) {
            (Val::Num(left), Val::Num(right)) => {
                Ok(calculate(&left, &right, isize::checked_sub, Sub::sub))
            }
            (Val::Arr(mut left), Val::Arr(right)) => {
                let mut removed: Vec<&Val> = right.iter().collect();
                removed.sort_unstable();
                Rc::make_mut(&mut left).retain(|item| removed.binary_search(&item).is_err());
                Ok(Self(Val::Arr(left)))
            }
            (left, right) => cannot(&Self(left), &Self(right), "subtracted"),
        }
    }
}

impl Mul for Value {
    type Output = ValR<Self>;

    fn mul(self, right: Self) -> Self::Output {
        match (self.0, right.0) {
            (Val::Num(left), Val::Num(right)) => {
                Ok(calculate(&left, &right, isize::checked_mul, Mul::mul))
            }
            (Val::TStr(text), Val::Num(times)) | (Val::Num(times), Val::TStr(text)) => {
                Ok(repeated(&text, number::as_f64(&times)))
            }
            (Val::Obj(left), Val::Obj(right)) => Ok(Self(Val::Obj(merged(left, &right)))),
            (left, right) => cannot(&Self(left), &Self(right), "multiplied"),
        }
    }
}

fn repeated(text: &[u8], times: f64) -> Value {
    if times.is_nan() || times < 0.0 {
        return Value(Val::Null);
    }
    let times =
        usize::try_from(number::clamp(if times < 1.0 { times.ceil() } else { times })).unwrap_or(0);
    check_growth(text.len().checked_mul(times));
    Value::string(text.repeat(times))
}

/// Merges objects, and the objects in them. As deep as the shallower of the two.
fn merged(mut left: Rc<Map>, right: &Rc<Map>) -> Rc<Map> {
    let map = Rc::make_mut(&mut left);
    for (key, value) in right.iter() {
        match (map.get_mut(key), value) {
            (Some(Val::Obj(inner)), Val::Obj(value)) => {
                *inner = merged(std::mem::take(inner), value);
            }
            (Some(slot), value) => *slot = value.clone(),
            (None, value) => {
                map.insert(key.clone(), value.clone());
            }
        }
    }
    left
}

impl Div for Value {
    type Output = ValR<Self>;

    fn div(self, right: Self) -> Self::Output {
        match (&self.0, &right.0) {
            (Val::Num(left), Val::Num(divisor)) => {
                let divisor = number::as_f64(divisor);
                if divisor == 0.0 {
                    return cannot(&self, &right, "divided because the divisor is zero");
                }
                Ok(Self::from(number::as_f64(left) / divisor))
            }
            (Val::TStr(text), Val::TStr(separator)) => Ok(split(text, separator)),
            _ => cannot(&self, &right, "divided"),
        }
    }
}

/// Splits a string at a separator; at each character if the separator is empty.
pub(in crate::filter) fn split(text: &Bytes, separator: &[u8]) -> Value {
    let Ok(whole) = std::str::from_utf8(text) else { return Value(Val::Null) };
    let separator = std::str::from_utf8(separator).unwrap_or_default();
    let piece = |piece: &str| Value::string(text.slice_ref(piece.as_bytes()));
    if whole.is_empty() {
        return Value::array([]);
    }
    if separator.is_empty() {
        let bounds = whole.char_indices().map(|(at, c)| at..at + c.len_utf8());
        return Value::array(bounds.filter_map(|range| whole.get(range)).map(piece));
    }
    Value::array(whole.split(separator).map(piece))
}

impl Rem for Value {
    type Output = ValR<Self>;

    fn rem(self, right: Self) -> Self::Output {
        let (Some(dividend), Some(divisor)) = (self.as_number(), right.as_number()) else {
            return cannot(&self, &right, "divided");
        };
        if dividend.is_nan() || divisor.is_nan() {
            return Ok(Self::from(f64::NAN));
        }
        let divisor = number::clamp(divisor);
        if divisor == 0 {
            return cannot(&self, &right, "divided because the divisor is zero");
        }
        let dividend = number::clamp(dividend);
        Ok(Self::from(dividend.checked_rem(divisor).unwrap_or(0)))
    }
}

impl Neg for Value {
    type Output = ValR<Self>;

    fn neg(self) -> Self::Output {
        match &self.0 {
            Val::Num(Num::Int(int)) if *int != 0 => Ok(int
                .checked_neg()
                .map_or_else(|| Self::from(-number::as_f64(&Num::Int(*int))), Self::from)),
            Val::Num(number @ (Num::BigInt(_) | Num::Dec(_))) => {
                let text = number.to_string();
                let negated =
                    text.strip_prefix('-').map_or_else(|| format!("-{text}"), ToOwned::to_owned);
                Ok(Self(Val::Num(number::literal(&negated))))
            }
            Val::Num(number) => Ok(Self::from(-number::as_f64(number))),
            _ => fail(format_args!("{} cannot be negated", self.shown())),
        }
    }
}
