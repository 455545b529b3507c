//! Walking over every value of a body in one pass.

use std::{borrow::Cow, io};

use super::{
    index::{Kind, Node},
    pointer::Pointer,
    view::View,
    walk::{Walker, damaged},
};

/// What a walk meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A container opens.
    Open(Kind),
    /// A member's name; its value comes next.
    Name(Node),
    /// A value that is no container.
    Scalar(Node),
    /// The container closes; this is the whole of it.
    Close(Node),
}

/// A container that is open.
#[derive(Clone, Copy, Debug)]
struct Level {
    kind: Kind,
    start: usize,
    /// Of the child at hand.
    ordinal: usize,
    name: Option<Node>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Value,
    /// A child, or the end of the container.
    FirstChild,
    Child,
    AfterValue,
    End,
}

/// A walk over a value and everything in it.
pub(crate) struct Events<'a> {
    view: View<'a>,
    walker: Walker<'a>,
    levels: Vec<Level>,
    at: usize,
    next: Next,
}

impl<'a> Events<'a> {
    pub(crate) fn new(view: View<'a>) -> Self {
        let at = view.root().start;
        Self { view, walker: view.walker(), levels: Vec::new(), at, next: Next::Value }
    }

    pub(crate) fn next_event(&mut self) -> io::Result<Option<Event>> {
        loop {
            if self.next == Next::End {
                return Ok(None);
            }
            let (at, byte) = self.walker.skip_blank(self.at)?;
            self.at = at;
            match self.next {
                Next::FirstChild if matches!(byte, b']' | b'}') => return self.close().map(Some),
                Next::FirstChild | Next::Child => {
                    if let Some(event) = self.child()? {
                        return Ok(Some(event));
                    }
                }
                Next::Value => return self.value(byte).map(Some),
                Next::AfterValue if byte == b',' => {
                    self.at += 1;
                    self.next = Next::Child;
                    if let Some(level) = self.levels.last_mut() {
                        level.ordinal += 1;
                    }
                }
                Next::AfterValue => return self.close().map(Some),
                Next::End => return Ok(None),
            }
        }
    }

    fn child(&mut self) -> io::Result<Option<Event>> {
        self.next = Next::Value;
        let Some(level) = self.levels.last_mut() else { return Err(damaged()) };
        if level.kind == Kind::Array {
            return Ok(None);
        }
        let end = self.walker.string_end(self.at)?;
        let name = Node { kind: Kind::String, start: self.at, end };
        level.name = Some(name);
        self.at = self.walker.skip_blank(end)?.0 + 1;
        Ok(Some(Event::Name(name)))
    }

    fn value(&mut self, byte: u8) -> io::Result<Event> {
        let kind = match byte {
            b'[' => Kind::Array,
            b'{' => Kind::Object,
            _ => {
                let node = self.walker.value(self.at)?;
                self.ended(node.end);
                return Ok(Event::Scalar(node));
            }
        };
        self.levels.push(Level { kind, start: self.at, ordinal: 0, name: None });
        self.at += 1;
        self.next = Next::FirstChild;
        Ok(Event::Open(kind))
    }

    fn close(&mut self) -> io::Result<Event> {
        let Level { kind, start, .. } = self.levels.pop().ok_or_else(damaged)?;
        let end = self.at + 1;
        self.ended(end);
        Ok(Event::Close(Node { kind, start, end }))
    }

    const fn ended(&mut self, end: usize) {
        self.at = end;
        self.next = if self.levels.is_empty() { Next::End } else { Next::AfterValue };
    }

    /// Returns the text of a name or scalar that was just met.
    pub(crate) fn text(&self, node: Node) -> io::Result<Cow<'a, str>> {
        self.view.text(node)
    }

    /// Returns the pointer of the value at hand.
    pub(crate) fn path(&self) -> io::Result<Pointer> {
        let mut path = Pointer::default();
        for level in &self.levels {
            match level.name {
                Some(name) => path.push_name(&self.view.text(name)?),
                None => path.push_position(level.ordinal),
            }
        }
        Ok(path)
    }

    /// Returns the position of the value at hand in the innermost array around it.
    pub(crate) fn item(&self) -> Option<usize> {
        let array = self.levels.iter().rev().find(|level| level.kind == Kind::Array)?;
        Some(array.ordinal)
    }
}
