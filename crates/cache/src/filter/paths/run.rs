//! A plan on its way through a body.

use std::borrow::Cow;
use std::io;

use super::Plan;
use super::item::{Item, compact, decoded};
use crate::filter::Outputs;
use crate::filter::deadline::Deadline;
use crate::filter::limits::{LimitKind, Limits};
use crate::filter::value::write;
use crate::json::{Kind, Node, View};

/// Why a plan ended without its outputs.
#[derive(Debug)]
pub(super) enum GaveUp {
    /// The filter fails here, or does what no plan can.
    ForEngine,
    Limit(LimitKind),
    Body(io::Error),
}

impl From<io::Error> for GaveUp {
    fn from(error: io::Error) -> Self {
        Self::Body(error)
    }
}

/// How many values are looked at between two looks at the clock.
const STRIDE: u32 = 256;

pub(super) struct Run<'r> {
    view: &'r View<'r>,
    limits: &'r Limits,
    deadline: &'r Deadline,
    steps: u32,
}

/// Null is the same whether it stands in the body or not.
const fn found(node: Node) -> Item {
    match node.kind {
        Kind::Null => Item::Null,
        _ => Item::Node(node),
    }
}

type Emit<'e> = &'e mut dyn FnMut(&mut Run<'_>, Item) -> Result<(), GaveUp>;

impl<'r> Run<'r> {
    pub(super) const fn new(
        view: &'r View<'r>,
        limits: &'r Limits,
        deadline: &'r Deadline,
    ) -> Self {
        Self { view, limits, deadline, steps: 0 }
    }

    pub(super) fn outputs(&mut self, plan: &Plan) -> Result<Outputs, GaveUp> {
        let mut outputs = Outputs::default();
        self.step(plan, found(self.view.root()), &mut |run, item| {
            if outputs.count >= run.limits.outputs {
                return Err(LimitKind::Outputs.into());
            }
            if outputs.count > 0 {
                outputs.bytes.push(b',');
            }
            outputs.count += 1;
            run.write(&item, &mut outputs.bytes)
        })?;
        Ok(outputs)
    }

    /// Returns the one output of a plan that has one.
    pub(super) fn single(&mut self, plan: &Plan, item: &Item) -> Result<Item, GaveUp> {
        let mut found = None;
        self.step(plan, item.clone(), &mut |_, item| {
            found = Some(item);
            Ok(())
        })?;
        found.ok_or(GaveUp::ForEngine)
    }

    pub(super) fn raw(&self, node: Node) -> Result<Cow<'r, [u8]>, GaveUp> {
        Ok(self.view.raw(node)?)
    }

    fn write(&self, item: &Item, out: &mut Vec<u8>) -> Result<(), GaveUp> {
        match item {
            // White space goes, and an escape only gets shorter; a single byte may become six.
            Item::Node(node) if node.bytes() / 6 + out.len() > self.limits.output_bytes => {
                return Err(LimitKind::Output.into());
            }
            Item::Node(node) => compact(&self.raw(*node)?, out),
            Item::Null => out.extend_from_slice(b"null"),
            Item::Count(count) => out.extend_from_slice(count.to_string().as_bytes()),
            Item::Made(json, _) => out.extend_from_slice(json),
        }
        if out.len() > self.limits.output_bytes.saturating_add(self.limits.outputs) {
            return Err(LimitKind::Output.into());
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), GaveUp> {
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(STRIDE) && self.deadline.is_over() {
            return Err(LimitKind::Time.into());
        }
        Ok(())
    }

    fn step(&mut self, plan: &Plan, item: Item, emit: Emit<'_>) -> Result<(), GaveUp> {
        self.tick()?;
        match plan {
            Plan::Whole => emit(self, item),
            Plan::Then(first, next) => {
                self.step(first, item, &mut |run, item| run.step(next, item, emit))
            }
            Plan::Both(left, right) => {
                self.step(left, item.clone(), emit)?;
                self.step(right, item, emit)
            }
            Plan::Member(name, is_optional) => match item {
                Item::Null => emit(self, Item::Null),
                Item::Node(node) if node.kind == Kind::Object => {
                    let child = self.view.member(node, name)?;
                    emit(self, child.map_or(Item::Null, |child| found(child.value)))
                }
                item => Self::mismatch(&item, *is_optional),
            },
            Plan::Item(at, is_optional) => match item {
                Item::Null => emit(self, Item::Null),
                Item::Node(node) if node.kind == Kind::Array => {
                    let at = self.position(node, *at)?;
                    let child = match at {
                        Some(at) => self.view.nth(node, at)?,
                        None => None,
                    };
                    emit(self, child.map_or(Item::Null, |child| found(child.value)))
                }
                item => Self::mismatch(&item, *is_optional),
            },
            Plan::Slice(from, to, is_optional) => {
                self.slice(item, (*from, *to), *is_optional, emit)
            }
            Plan::Each(is_optional) => match item {
                Item::Node(node) if node.kind.is_container() => {
                    for child in self.view.children(node)? {
                        self.tick()?;
                        emit(self, found(child?.value))?;
                    }
                    Ok(())
                }
                Item::Null if *is_optional => Ok(()),
                item => Self::mismatch(&item, *is_optional),
            },
            Plan::Array(inner) => {
                let made = self.array(inner, item)?;
                emit(self, made)
            }
            Plan::Object(members) => {
                let made = self.object(members, &item)?;
                emit(self, made)
            }
            Plan::Select(condition) => {
                if condition.holds(self, &item)? {
                    emit(self, item)?;
                }
                Ok(())
            }
            Plan::Length => {
                let length = self.length(&item)?;
                emit(self, Item::Count(length))
            }
            Plan::Keys => {
                let keys = self.keys(&item)?;
                emit(self, keys)
            }
        }
    }

    /// A step that the item has no place for: nothing if that is well, else a failure for the engine.
    fn mismatch(item: &Item, is_optional: bool) -> Result<(), GaveUp> {
        match item {
            // What was made can be looked into, but not here.
            Item::Made(..) => Err(GaveUp::ForEngine),
            _ if is_optional => Ok(()),
            _ => Err(GaveUp::ForEngine),
        }
    }

    fn position(&self, node: Node, at: i64) -> Result<Option<usize>, GaveUp> {
        if let Ok(at) = usize::try_from(at) {
            return Ok(Some(at));
        }
        let back = usize::try_from(at.unsigned_abs()).map_err(|_| GaveUp::ForEngine)?;
        Ok(self.view.len(node)?.checked_sub(back))
    }

    fn slice(
        &mut self,
        item: Item,
        range: (Option<i64>, Option<i64>),
        is_optional: bool,
        emit: Emit<'_>,
    ) -> Result<(), GaveUp> {
        let node = match item {
            Item::Null => return emit(self, Item::Null),
            Item::Node(node) if node.kind == Kind::Array => node,
            Item::Node(node) if node.kind == Kind::String => return Err(GaveUp::ForEngine),
            item => return Self::mismatch(&item, is_optional),
        };
        let len = self.view.len(node)?;
        let bound = |bound: Option<i64>, default: usize| match bound {
            None => default,
            Some(at) => usize::try_from(at).map_or_else(
                |_| len.saturating_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX)),
                |at| at.min(len),
            ),
        };
        let (from, to) = (bound(range.0, 0), bound(range.1, len));
        let mut json = vec![b'['];
        let mut count = 0;
        for child in self.view.children_from(node, from)?.take(to.saturating_sub(from)) {
            self.tick()?;
            if count > 0 {
                json.push(b',');
            }
            count += 1;
            self.write(&Item::Node(child?.value), &mut json)?;
        }
        json.push(b']');
        emit(self, Item::Made(json, Some(count)))
    }

    fn array(&mut self, inner: &Plan, item: Item) -> Result<Item, GaveUp> {
        let mut json = vec![b'['];
        let mut count = 0;
        self.step(inner, item, &mut |run, item| {
            if count > 0 {
                json.push(b',');
            }
            count += 1;
            run.write(&item, &mut json)
        })?;
        json.push(b']');
        Ok(Item::Made(json, Some(count)))
    }

    fn object(&mut self, members: &[(String, Plan)], item: &Item) -> Result<Item, GaveUp> {
        let mut json = vec![b'{'];
        for (at, (name, value)) in members.iter().enumerate() {
            if at > 0 {
                json.push(b',');
            }
            write::string(name.as_bytes(), &mut json);
            json.push(b':');
            let value = self.single(value, item)?;
            self.write(&value, &mut json)?;
        }
        json.push(b'}');
        Ok(Item::Made(json, None))
    }

    fn length(&self, item: &Item) -> Result<usize, GaveUp> {
        match item {
            Item::Null => Ok(0),
            Item::Count(count) => Ok(*count),
            Item::Made(_, Some(count)) => Ok(*count),
            Item::Made(_, None) => Err(GaveUp::ForEngine),
            Item::Node(node) => match node.kind {
                Kind::Null => Ok(0),
                Kind::Array | Kind::Object => Ok(self.view.len(*node)?),
                Kind::String => {
                    let raw = self.raw(*node)?;
                    let text = decoded(raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default());
                    Ok(std::str::from_utf8(&text).map_err(|_| GaveUp::ForEngine)?.chars().count())
                }
                _ => Err(GaveUp::ForEngine),
            },
        }
    }

    fn keys(&mut self, item: &Item) -> Result<Item, GaveUp> {
        let Item::Node(node) = item else { return Err(GaveUp::ForEngine) };
        let mut json = vec![b'['];
        let mut write = |at: usize, key: &dyn Fn(&mut Vec<u8>)| {
            if at > 0 {
                json.push(b',');
            }
            key(&mut json);
        };
        let count = match node.kind {
            Kind::Array => {
                let len = self.view.len(*node)?;
                for at in 0..len {
                    self.tick()?;
                    write(at, &|json| json.extend_from_slice(at.to_string().as_bytes()));
                }
                len
            }
            Kind::Object => {
                let mut names = Vec::new();
                for child in self.view.children(*node)? {
                    self.tick()?;
                    let Some(name) = child?.name else { return Err(GaveUp::ForEngine) };
                    let raw = self.raw(name)?;
                    names.push(
                        decoded(raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default())
                            .into_owned(),
                    );
                }
                names.sort_unstable();
                for (at, name) in names.iter().enumerate() {
                    write(at, &|json| write::string(name, json));
                }
                names.len()
            }
            _ => return Err(GaveUp::ForEngine),
        };
        json.push(b']');
        Ok(Item::Made(json, Some(count)))
    }
}
