//! Looking at a body through its index.

use std::{borrow::Cow, io};

use super::{
    index::{Index, Kind, Node, to_usize},
    pointer::{Pointer, position, unescape},
    source::Source,
    text::decode,
    walk::{Child, Children, Walker, damaged},
};

/// A body and its index, to be looked at without being parsed.
///
/// # Examples
///
/// ```
/// use raincheck_cache::{Pointer, View, scan};
///
/// let body = br#"{"items":[{"name":"a"},{"name":"b"}]}"#.as_slice();
/// let index = scan(body)?;
/// let view = View::new(&body, &index);
/// let name = view.resolve(&Pointer::parse("/items/1/name")?)?;
/// assert_eq!(view.raw(name)?, br#""b""#.as_slice());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct View<'a> {
    source: &'a dyn Source,
    index: &'a Index,
}

/// Why a pointer leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    /// No value is there.
    #[error("nothing at `{path}`; the nearest is `{nearest}`")]
    Absent {
        /// The pointer asked for.
        path: Pointer,
        /// The longest beginning of it that exists, or a sibling whose name differs by little.
        nearest: Pointer,
    },
    /// The body could not be read.
    #[error("the body could not be read")]
    Io(#[from] io::Error),
}

impl std::fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("root", &self.index.root).finish_non_exhaustive()
    }
}

impl<'a> View<'a> {
    /// Returns a view of `source`, of which `index` was made.
    #[must_use]
    pub const fn new(source: &'a dyn Source, index: &'a Index) -> Self {
        Self { source, index }
    }

    /// Returns where the bytes are.
    #[must_use]
    pub const fn source(&self) -> &'a dyn Source {
        self.source
    }

    /// Returns the index.
    #[must_use]
    pub const fn index(&self) -> &'a Index {
        self.index
    }

    /// Returns the whole of the body.
    #[must_use]
    pub const fn root(&self) -> Node {
        self.index.root
    }

    /// Returns the bytes of a value as they stand in the body.
    ///
    /// # Errors
    ///
    /// When the body cannot be read.
    pub fn raw(&self, node: Node) -> io::Result<Cow<'a, [u8]>> {
        self.bytes(node.start, node.end)
    }

    pub(crate) fn bytes(&self, start: usize, end: usize) -> io::Result<Cow<'a, [u8]>> {
        if let Some(whole) = self.source.bytes() {
            return whole.get(start..end).map(Cow::Borrowed).ok_or_else(damaged);
        }
        let mut out = Vec::with_capacity(end.saturating_sub(start));
        self.source.read(start..end, &mut out)?;
        Ok(Cow::Owned(out))
    }

    /// Returns what a string says, or the text of any other value as it is written.
    ///
    /// # Errors
    ///
    /// When the body cannot be read.
    pub fn text(&self, node: Node) -> io::Result<Cow<'a, str>> {
        let is_string = node.kind == Kind::String;
        let quote = usize::from(is_string);
        let raw = self.bytes(node.start + quote, node.end.saturating_sub(quote))?;
        Ok(match raw {
            Cow::Borrowed(raw) if is_string => decode(raw),
            Cow::Owned(raw) if is_string => Cow::Owned(decode(&raw).into_owned()),
            Cow::Borrowed(raw) => String::from_utf8_lossy(raw),
            Cow::Owned(raw) => Cow::Owned(String::from_utf8_lossy(&raw).into_owned()),
        })
    }

    /// Returns the children of a value, from the first; a value that is no container has none.
    ///
    /// # Errors
    ///
    /// When the body cannot be read.
    pub fn children(&self, node: Node) -> io::Result<Children<'a>> {
        self.children_from(node, 0)
    }

    /// Returns the children of a value from the one numbered `ordinal` on.
    ///
    /// Reads less than a few KiB to get there, however many come before it.
    ///
    /// # Errors
    ///
    /// When the body cannot be read.
    pub fn children_from(&self, node: Node, ordinal: usize) -> io::Result<Children<'a>> {
        Children::new(self.walker(), node, ordinal)
    }

    pub(crate) fn walker(&self) -> Walker<'a> {
        Walker::new(self.source, self.index)
    }

    /// Returns the number of children of a value, of the lines of a text, else 0.
    ///
    /// # Errors
    ///
    /// When the body cannot be read.
    pub fn len(&self, node: Node) -> io::Result<usize> {
        if node.kind == Kind::Text {
            return Ok(self.index.n_lines);
        }
        if !node.kind.is_container() {
            return Ok(0);
        }
        if let Some(record) = self.index.record_at(node.start) {
            return Ok(to_usize(record.count));
        }
        let mut children = self.children(node)?;
        let mut n_children = 0;
        while children.next_child()?.is_some() {
            n_children += 1;
        }
        Ok(n_children)
    }

    /// Returns the item or member numbered `ordinal`.
    ///
    /// # Errors
    ///
    /// When the body cannot be read.
    pub fn nth(&self, node: Node, ordinal: usize) -> io::Result<Option<Child>> {
        self.children_from(node, ordinal)?.next_child()
    }

    /// Returns the member of this name.
    ///
    /// # Errors
    ///
    /// When the body cannot be read.
    pub fn member(&self, node: Node, name: &str) -> io::Result<Option<Child>> {
        if node.kind != Kind::Object {
            return Ok(None);
        }
        let mut children = self.children(node)?;
        while let Some(child) = children.next_child()? {
            if let Some(there) = child.name
                && self.is_name(there, name)?
            {
                return Ok(Some(child));
            }
        }
        Ok(None)
    }

    fn is_name(&self, there: Node, name: &str) -> io::Result<bool> {
        // An escape is never shorter than what it stands for.
        if there.bytes() < name.len() + 2 {
            return Ok(false);
        }
        let raw = self.bytes(there.start + 1, there.end - 1)?;
        Ok(*raw == *name.as_bytes() || raw.contains(&b'\\') && decode(&raw) == name)
    }

    /// Follows a pointer.
    ///
    /// # Errors
    ///
    /// Names the nearest value that exists when there is none at `path`.
    pub fn resolve(&self, path: &Pointer) -> Result<Node, NotFound> {
        let mut node = self.root();
        let mut nearest = Pointer::default();
        for step in path.steps() {
            let child = match node.kind {
                Kind::Object => self.member(node, &unescape(step))?,
                Kind::Array => match position(step) {
                    Some(ordinal) => self.nth(node, ordinal)?,
                    None => None,
                },
                Kind::Null | Kind::Bool | Kind::Number | Kind::String | Kind::Text => None,
            };
            let Some(child) = child else {
                if let Some(name) = self.similar(node, &unescape(step))? {
                    nearest.push_name(&name);
                }
                return Err(NotFound::Absent { path: path.clone(), nearest });
            };
            node = child.value;
            match child.name {
                Some(_) => nearest.push_name(&unescape(step)),
                None => nearest.push_position(child.ordinal),
            }
        }
        Ok(node)
    }

    /// Returns the member name that `name` may have been meant to be.
    fn similar(&self, node: Node, name: &str) -> io::Result<Option<String>> {
        const N_LOOKED_AT: usize = 200;
        let plain = |text: &str| -> String {
            text.chars().filter(|it| it.is_alphanumeric()).flat_map(char::to_lowercase).collect()
        };
        let wanted = plain(name);
        let mut children = self.children(node)?;
        let mut near = None;
        for _ in 0..N_LOOKED_AT {
            let Some(child) = children.next_child()? else { break };
            let Some(there) = child.name.filter(|there| there.bytes() < 100) else { continue };
            let there = self.text(there)?;
            let other = plain(&there);
            if other == wanted {
                return Ok(Some(there.into_owned()));
            }
            let is_part = wanted.len() > 2
                && other.len() > 2
                && (other.starts_with(&wanted) || wanted.starts_with(&other));
            if near.is_none() && is_part {
                near = Some(there.into_owned());
            }
        }
        Ok(near)
    }

    /// Returns the pointer of the value that covers `offset` as closely as possible, and that value.
    ///
    /// # Errors
    ///
    /// When the body cannot be read.
    pub fn locate(&self, offset: usize) -> io::Result<(Pointer, Node)> {
        let mut path = Pointer::default();
        let mut node = self.root();
        while node.kind.is_container() {
            let Some(child) = self.child_over(node, offset)? else { break };
            match child.name {
                Some(name) => path.push_name(&self.text(name)?),
                None => path.push_position(child.ordinal),
            }
            node = child.value;
        }
        Ok((path, node))
    }

    /// Returns where a line of a text begins; `line` counts from 0.
    pub(crate) fn line_start(&self, line: usize) -> io::Result<usize> {
        let marks = self.index.marks_of(self.root());
        let n_before = marks.partition_point(|mark| to_usize(mark.ordinal) <= line);
        let mark = n_before.checked_sub(1).and_then(|last| marks.get(last));
        let (mut at, mut number) =
            mark.map_or((0, 0), |mark| (to_usize(mark.offset), to_usize(mark.ordinal)));
        let mut walker = self.walker();
        while number < line {
            let rest = walker.window.from(at)?;
            if rest.is_empty() {
                break;
            }
            let next = memchr::memchr(b'\n', rest);
            at += next.map_or(rest.len(), |position| position + 1);
            number += usize::from(next.is_some());
        }
        Ok(at)
    }

    /// Returns the child in whose span, name included, `offset` is.
    pub(crate) fn child_over(&self, node: Node, offset: usize) -> io::Result<Option<Child>> {
        let marks = self.index.marks_of(node);
        let n_before = marks.partition_point(|mark| to_usize(mark.offset) <= offset);
        let ordinal = n_before
            .checked_sub(1)
            .and_then(|last| marks.get(last))
            .map_or(0, |mark| to_usize(mark.ordinal));
        let mut children = self.children_from(node, ordinal)?;
        while let Some(child) = children.next_child()? {
            if offset < child.start() {
                break;
            }
            if offset < child.value.end {
                return Ok(Some(child));
            }
        }
        Ok(None)
    }
}
