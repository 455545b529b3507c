//! Taking the shapes of a body.

use std::{borrow::Cow, io};

use super::shape::{Id, LONGEST_VALUE, Shapes};
use crate::json::{Event, Events, Kind, Node, View, text};

/// A list that goes on in a member which nothing stands beside is a list from this length on.
const LONGEST_CHAIN: usize = 4;
/// Bytes read of a string that is too long to be told.
const SHOWN: usize = 28;

/// A container that is open.
struct Level {
    kind: Kind,
    shape: Id,
    /// The member at hand.
    name: Vec<u8>,
    n_children: usize,
}

struct Walk<'a> {
    view: View<'a>,
    shapes: Shapes,
    levels: Vec<Level>,
}

/// Returns the shapes of all values of a body.
pub(super) fn shapes(view: View<'_>) -> io::Result<Shapes> {
    let mut walk = Walk { view, shapes: Shapes::new(), levels: Vec::new() };
    let mut events = Events::new(view);
    while let Some(event) = events.next_event()? {
        match event {
            Event::Open(kind) => walk.open(kind),
            Event::Name(node) => {
                let raw = view.bytes(node.start + 1, node.end - 1)?;
                if let Some(level) = walk.levels.last_mut() {
                    level.name.clear();
                    if raw.contains(&b'\\') {
                        level.name.extend_from_slice(text::decode(&raw).as_bytes());
                    } else {
                        level.name.extend_from_slice(&raw);
                    }
                }
            }
            Event::Scalar(node) => walk.scalar(node)?,
            Event::Close(node) => walk.close(node),
        }
    }
    Ok(walk.shapes)
}

impl Walk<'_> {
    /// Returns the shape of the value that begins now.
    fn begin(&mut self) -> Id {
        let Some(level) = self.levels.last_mut() else { return Shapes::ROOT };
        level.n_children += 1;
        if level.kind == Kind::Array {
            self.shapes.item(level.shape)
        } else {
            self.shapes.member(level.shape, &level.name)
        }
    }

    fn open(&mut self, kind: Kind) {
        let mut shape = self.begin();
        if self.fold() {
            // The member now belongs to the shape further up.
            let level = self.levels.last();
            shape = level.map_or(shape, |level| self.shapes.member(level.shape, &level.name));
        }
        self.shapes.with(shape, |shape| shape.count(kind));
        self.levels.push(Level { kind, shape, name: Vec::new(), n_children: 0 });
    }

    /// Merges the object at hand with one further up that the same member leads on from, if the
    /// two are alike: what repeats itself inside itself has one shape at every depth.
    fn fold(&mut self) -> bool {
        let Some((here, above)) = self.levels.split_last() else { return false };
        if here.kind != Kind::Object || self.shapes.is_rest(here.shape) {
            return false;
        }
        let same_name = |level: &&Level| level.kind == Kind::Object && level.name == here.name;
        let Some(other) = above.iter().rev().find(same_name) else { return false };
        let (here_id, other_id) = (here.shape, other.shape);
        if self.shapes.find(here_id) == self.shapes.find(other_id) {
            return false;
        }
        let is_chain = || {
            let n_members = |id: Id| self.shapes.get(id).members.len();
            n_members(here_id) == 1
                && n_members(other_id) == 1
                && above.iter().filter(same_name).count() >= LONGEST_CHAIN
        };
        if !self.shapes.are_alike(here_id, other_id) && !is_chain() {
            return false;
        }
        self.shapes.merge(other_id, here_id);
        true
    }

    fn close(&mut self, node: Node) {
        let Some(level) = self.levels.pop() else { return };
        self.shapes.with(level.shape, |shape| {
            shape.bytes += node.bytes();
            shape.n_children += level.n_children;
        });
    }

    fn scalar(&mut self, node: Node) -> io::Result<()> {
        let id = self.begin();
        let shape = self.shapes.get(id);
        let wants_value = !shape.is_open || shape.values.len() < super::shape::MAX_SAMPLES;
        let is_short = node.bytes() <= LONGEST_VALUE;
        let mut raw = Cow::Borrowed([].as_slice());
        if wants_value || node.kind == Kind::Number && is_short {
            let end = if is_short { node.end } else { node.start + 1 + SHOWN };
            raw = self.view.bytes(node.start, end)?;
        }
        let value = String::from_utf8_lossy(&raw);
        self.shapes.with(id, |shape| {
            shape.count(node.kind);
            shape.bytes += node.bytes();
            if !is_short {
                shape.open_values();
                if wants_value {
                    shape.add_value(&shortened(&value, node.kind));
                }
                return;
            }
            if wants_value {
                shape.add_value(&value);
            }
            if node.kind == Kind::Number {
                shape.add_number(&value);
            }
        });
        Ok(())
    }
}

/// Returns the beginning of a value as a JSON string that ends in `…`.
fn shortened(raw: &str, kind: Kind) -> String {
    let inside = if kind == Kind::String { raw.get(1..).unwrap_or("") } else { raw };
    let mut rest = inside.trim_end_matches('\u{fffd}').as_bytes();
    let mut shown = String::new();
    // The cut may have gone through an escape: its rest is no character.
    while let Some(atom) = text::first_atom(rest).filter(|atom| atom.bytes <= rest.len()) {
        shown.push(atom.character);
        rest = rest.get(atom.bytes..).unwrap_or(&[]);
    }
    shown.push('…');
    let mut json = Vec::new();
    text::encode(&shown, &mut json);
    String::from_utf8(json).unwrap_or_default()
}
