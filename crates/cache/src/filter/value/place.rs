//! What a path points at: reading it, updating it, deleting it.

use std::cmp::Ordering;
use std::ops::Range;

use jaq_core::path::Opt;
use jaq_core::{Exn, ValR, ValX};
use jaq_json::{Map, Rc, Val};

use super::{Error, Value, fail, number, owned};

/// How far beyond its end an array may be set.
const REACH: usize = 10_000_000;

/// Returns what an index points at; `None` where there is nothing.
pub(in crate::filter) fn get(value: &Value, index: &Value) -> Result<Option<Value>, Error> {
    match (&value.0, &index.0) {
        (Val::Null, Val::Null | Val::Num(_) | Val::TStr(_) | Val::Obj(_)) => Ok(None),
        (Val::Obj(object), Val::TStr(_)) => Ok(object.get(&index.0).cloned().map(Value)),
        (Val::Arr(array), Val::Num(_)) => {
            Ok(position(array.len(), index).and_then(|at| array.get(at).cloned().map(Value)))
        }
        (Val::Arr(array), Val::Arr(part)) => Ok(Some(occurrences(array, part))),
        (Val::Arr(_) | Val::TStr(_), Val::Obj(range)) => {
            let bound = |name: &str| range.get(&Val::from(name.to_owned())).cloned().map(Value);
            slice(value, bound("start").as_ref()..bound("end").as_ref()).map(Some)
        }
        _ => cannot_index(value, index),
    }
}

fn cannot_index<T>(value: &Value, index: &Value) -> Result<T, Error> {
    match &index.0 {
        Val::TStr(_) => fail(format_args!("Cannot index {} with {index}", value.kind())),
        _ => fail(format_args!("Cannot index {} with {}", value.kind(), index.kind())),
    }
}

/// Where an index points in an array; negative ones count from the end.
fn position(len: usize, index: &Value) -> Option<usize> {
    let at = number::clamp(index.as_number().filter(|at| !at.is_nan())?.floor());
    if at < 0 { len.checked_sub(at.unsigned_abs()) } else { usize::try_from(at).ok() }
}

/// Where a sequence of elements begins in an array.
pub(in crate::filter) fn occurrences(array: &[Val], part: &[Val]) -> Value {
    if part.is_empty() {
        return Value(Val::Null);
    }
    let at = array.windows(part.len()).enumerate().filter(|(_, window)| *window == part);
    Value::array(at.map(|(at, _)| Value::from(at)))
}

/// Returns `value[from:to]`.
pub(in crate::filter) fn slice(value: &Value, range: Range<Option<&Value>>) -> ValR<Value> {
    match &value.0 {
        Val::Null => Ok(Value(Val::Null)),
        Val::Arr(array) => {
            let range = bounds(array.len(), range)?;
            Ok(Value(Val::Arr(Rc::new(array.get(range).unwrap_or_default().to_vec()))))
        }
        Val::TStr(bytes) => {
            let text = value.as_text().unwrap_or_default();
            let range = if text.is_ascii() {
                bounds(text.len(), range)?
            } else {
                let range = bounds(text.chars().count(), range)?;
                let byte = |at| text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
                byte(range.start)..byte(range.end)
            };
            Ok(Value::string(bytes.slice(range)))
        }
        _ => fail(format_args!("Cannot index {} with object", value.kind())),
    }
}

fn bounds(len: usize, range: Range<Option<&Value>>) -> Result<Range<usize>, Error> {
    let bound = |bound: Option<&Value>, default: usize, round: fn(f64) -> f64| match bound
        .map(|bound| (&bound.0, bound.as_number()))
    {
        None | Some((Val::Null, _)) => Ok(default),
        Some((_, Some(at))) if at.is_nan() => Ok(default),
        Some((_, Some(at))) => {
            let at = number::clamp(round(at));
            let from_end = || len.saturating_sub(at.unsigned_abs());
            Ok(usize::try_from(at).map_or_else(|_| from_end(), |at| at.min(len)))
        }
        Some((_, None)) => fail("Start and end indices of an array slice must be numbers"),
    };
    let start = bound(range.start, 0, f64::floor)?;
    let end = bound(range.end, len, f64::ceil)?;
    Ok(start..end.max(start))
}

/// Replaces what an index points at; `None` deletes it. Null becomes what the index needs.
pub(super) fn update<'a>(
    value: Value,
    index: &Value,
    opt: Opt,
    change: impl FnOnce(Value) -> Result<Option<Value>, Exn<'a, Value>>,
) -> ValX<'a, Value> {
    match (value.0, &index.0) {
        (Val::Null, Val::TStr(_)) => update_member(Rc::new(Map::default()), index, change),
        (Val::Obj(object), Val::TStr(_)) => update_member(object, index, change),
        (Val::Null, Val::Num(_)) => update_item(Rc::new(Vec::new()), index, opt, change),
        (Val::Arr(array), Val::Num(_)) => update_item(array, index, opt, change),
        (other, _) => {
            let value = Value(other);
            match cannot_index::<()>(&value, index) {
                Err(error) => opt.fail(value, |_| Exn::from(error)),
                Ok(()) => Ok(value),
            }
        }
    }
}

fn update_member<'a>(
    mut object: Rc<Map>,
    index: &Value,
    change: impl FnOnce(Value) -> Result<Option<Value>, Exn<'a, Value>>,
) -> ValX<'a, Value> {
    let map = Rc::make_mut(&mut object);
    if let Some(slot) = map.get_mut(&index.0) {
        match change(Value(std::mem::take(slot)))? {
            Some(changed) => *slot = changed.0,
            None => {
                map.shift_remove(&index.0);
            }
        }
    } else if let Some(changed) = change(Value(Val::Null))? {
        map.insert(index.0.clone(), changed.0);
    }
    Ok(Value(Val::Obj(object)))
}

fn update_item<'a>(
    mut array: Rc<Vec<Val>>,
    index: &Value,
    opt: Opt,
    change: impl FnOnce(Value) -> Result<Option<Value>, Exn<'a, Value>>,
) -> ValX<'a, Value> {
    let at = match position(array.len(), index) {
        Some(at) if at < array.len().saturating_add(REACH) => at,
        at => {
            let message = if at.is_some() {
                "Array index too large"
            } else {
                "Out of bounds negative array index"
            };
            return opt.fail(Value(Val::Arr(array)), |_| Exn::from(Error::str(message)));
        }
    };
    let items = Rc::make_mut(&mut array);
    if let Some(slot) = items.get_mut(at) {
        match change(Value(std::mem::take(slot)))? {
            Some(changed) => *slot = changed.0,
            None => {
                items.remove(at);
            }
        }
    } else if let Some(changed) = change(Value(Val::Null))? {
        items.resize(at, Val::Null);
        items.push(changed.0);
    }
    Ok(Value(Val::Arr(array)))
}

/// Replaces `value[from:to]`; `None` deletes it.
pub(super) fn update_slice<'a>(
    value: Value,
    range: Range<Option<&Value>>,
    opt: Opt,
    change: impl FnOnce(Value) -> Result<Option<Value>, Exn<'a, Value>>,
) -> ValX<'a, Value> {
    let array = match value.0 {
        Val::Null => Rc::new(Vec::new()),
        Val::Arr(array) => array,
        other => {
            let value = Value(other);
            let message = format!("Cannot update field at object index of {}", value.kind());
            return opt.fail(value, |_| Exn::from(Error::str(message)));
        }
    };
    let range = match bounds(array.len(), range) {
        Ok(range) => range,
        Err(error) => return opt.fail(Value(Val::Arr(array)), |_| Exn::from(error)),
    };
    let part = Value(Val::Arr(Rc::new(array.get(range.clone()).unwrap_or_default().to_vec())));
    let changed = match change(part)?.map(|changed| changed.0) {
        Some(Val::Arr(changed)) => owned(changed),
        None => Vec::new(),
        Some(_) => {
            return Err(Exn::from(Error::str(
                "A slice of an array can only be assigned another array",
            )));
        }
    };
    let mut items = owned(array);
    items.splice(range, changed);
    Ok(Value(Val::Arr(Rc::new(items))))
}

/// Deletes several paths, each an array of keys, the later ones first.
pub(in crate::filter) fn delete_paths(value: Value, paths: &Value) -> ValR<Value> {
    let Val::Arr(paths) = &paths.0 else { return fail("Paths must be specified as an array") };
    let mut sorted = Vec::with_capacity(paths.len());
    for path in paths.iter() {
        match path {
            Val::Arr(path) => sorted.push(path),
            _ => return fail("Path must be specified as an array"),
        }
    }
    sorted.sort_by(|left, right| path_order(right, left));
    sorted.dedup();
    sorted.into_iter().try_fold(value, |value, path| delete(value, path))
}

/// The order of two paths in a document.
fn path_order(left: &[Val], right: &[Val]) -> Ordering {
    left.cmp(right)
}

fn delete(value: Value, path: &[Val]) -> ValR<Value> {
    let Some((first, rest)) = path.split_first() else { return Ok(Value(Val::Null)) };
    let index = Value(first.clone());
    if matches!(value.0, Val::Null) {
        return Ok(value);
    }
    if rest.is_empty() {
        return delete_child(value, &index);
    }
    // What is not there needs no deleting.
    match get(&value, &index)? {
        None | Some(Value(Val::Null)) => Ok(value),
        Some(_) => {
            let change = |child: Value| delete(child, rest).map(Some).map_err(Exn::from);
            let changed = match &index.0 {
                Val::Obj(range) => {
                    let bound =
                        |name: &str| range.get(&Val::from(name.to_owned())).cloned().map(Value);
                    update_slice(
                        value,
                        bound("start").as_ref()..bound("end").as_ref(),
                        Opt::Essential,
                        change,
                    )
                }
                _ => update(value, &index, Opt::Essential, change),
            };
            changed.map_err(unwrapped)
        }
    }
}

fn unwrapped(exception: Exn<'_, Value>) -> Error {
    exception.get_err().unwrap_or_else(|_| Error::str("the path cannot be changed"))
}

fn delete_child(value: Value, index: &Value) -> ValR<Value> {
    match (&value.0, &index.0) {
        (Val::Obj(_), Val::TStr(_)) | (Val::Arr(_), Val::Num(_)) => {
            if get(&value, index)?.is_none() {
                return Ok(value);
            }
            update(value, index, Opt::Essential, |_| Ok(None)).map_err(unwrapped)
        }
        (Val::Arr(_), Val::Obj(range)) => {
            let bound = |name: &str| range.get(&Val::from(name.to_owned())).cloned().map(Value);
            update_slice(
                value,
                bound("start").as_ref()..bound("end").as_ref(),
                Opt::Essential,
                |_| Ok(None),
            )
            .map_err(unwrapped)
        }
        (Val::Obj(_), _) => {
            fail(format_args!("Cannot delete field at object index of {}", index.kind()))
        }
        (Val::Arr(_), _) => {
            fail(format_args!("Cannot delete field at array index of {}", index.kind()))
        }
        _ => fail(format_args!("Cannot delete field of {}", value.kind())),
    }
}
