//! What is paged: the value at a path, or the array that most of the body is.

use std::io;

use std::sync::OnceLock;

use super::{Alternative, PageError, Pagination};
use crate::json::{Child, Derived, Kind, Node, NotFound, Pointer, View};

/// Arrays that a choice remembers: the one that is paged, and alternatives.
const N_ARRAYS: usize = 4;
/// Longest pointer of an alternative that is worth its place.
const LONGEST_ALTERNATIVE: usize = 80;
/// Below this, what an object holds cannot be the array that most of a large body is.
const LEAST: usize = 1024;

/// How a value is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// An array, by items.
    Items,
    /// An object, by members.
    Members,
    /// A string, at line ends or between characters.
    String,
    /// A plain text, the same way.
    Text,
    /// Any JSON as text: for what no other way can divide.
    Raw,
    /// Not at all.
    Whole,
}

/// One object on the way from the root to the array that is paged, and the member that leads on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    pub(super) object: Node,
    pub(super) member: Child,
}

/// What is paged.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) path: Pointer,
    pub(super) node: Node,
    pub(super) mode: Mode,
    /// The objects around it that its pages show.
    pub(super) levels: Vec<Level>,
    is_auto: bool,
}

impl Target {
    pub(super) fn new(view: &View<'_>, path: Pointer, node: Node) -> Self {
        debug_assert!(node.end <= view.index().body_bytes(), "a node of another body");
        let mode = match node.kind {
            Kind::Array => Mode::Items,
            Kind::Object => Mode::Members,
            Kind::String => Mode::String,
            Kind::Text => Mode::Text,
            Kind::Null | Kind::Bool | Kind::Number => Mode::Whole,
        };
        Self { path, node, mode, levels: Vec::new(), is_auto: false }
    }

    /// Returns the value at `path`.
    pub(super) fn at(view: &View<'_>, path: &Pointer) -> Result<Self, NotFound> {
        Ok(Self::new(view, path.clone(), view.resolve(path)?))
    }

    /// Returns the root, by its own children.
    pub(super) fn whole(view: &View<'_>) -> Self {
        Self { is_auto: true, ..Self::new(view, Pointer::default(), view.root()) }
    }

    /// Returns what to page when no path was asked for.
    pub(super) fn auto(view: &View<'_>) -> Result<Self, PageError> {
        let whole = Self::whole(view);
        if whole.mode != Mode::Members {
            return Ok(whole);
        }
        let chosen = view.index().derived::<Chosen>();
        let choice = chosen.choice(view)?;
        let Some(best) = choice.best() else { return Ok(whole) };
        let levels = best.levels.clone();
        let (path, node) = (best.path.clone(), best.node);
        Ok(Self { path, node, mode: Mode::Items, levels, is_auto: true })
    }

    pub(super) const fn start(&self) -> usize {
        self.node.start
    }

    pub(super) const fn is_auto(&self) -> bool {
        self.is_auto
    }

    pub(super) const fn is_framed(&self) -> bool {
        !self.levels.is_empty()
    }

    /// Returns the part of the body that is divided in the modes that divide bytes.
    pub(super) const fn content(&self) -> (usize, usize) {
        match self.mode {
            Mode::String => (self.node.start + 1, self.node.end - 1),
            Mode::Items | Mode::Members | Mode::Text | Mode::Raw | Mode::Whole => {
                (self.node.start, self.node.end)
            }
        }
    }

    /// Returns what every page of this says the same.
    pub(super) fn pagination(&self, view: &View<'_>) -> Result<Pagination, PageError> {
        let (start, end) = self.content();
        let (kind, total_items) = match self.mode {
            Mode::Items => ("array", view.len(self.node)?),
            Mode::Members => ("object", view.len(self.node)?),
            Mode::String => ("string", end - start),
            Mode::Raw => ("raw", end - start),
            Mode::Text => ("text", view.len(self.node)?),
            Mode::Whole => ("value", 1),
        };
        let mut alternatives = Vec::new();
        if self.is_auto && view.root().kind == Kind::Object {
            let chosen = view.index().derived::<Chosen>();
            let choice = chosen.choice(view)?;
            let others = choice.arrays.iter().filter(|found| found.node != self.node);
            alternatives.extend(others.filter_map(Found::alternative).take(N_ARRAYS - 1));
        }
        let field = if self.is_framed() { self.path.last() } else { None };
        Ok(Pagination {
            path: self.path.as_str().to_owned(),
            field,
            kind,
            page: 1,
            total_pages: 1,
            start_index: 0,
            end_index: 0,
            total_items,
            page_bytes: 0,
            total_bytes: self.node.bytes(),
            refs: 0,
            cuts_character: false,
            has_next: false,
            has_previous: false,
            next_cursor: None,
            alternatives,
        })
    }
}

/// An array that only objects are around.
#[derive(Clone, Debug)]
pub(super) struct Found {
    path: Pointer,
    node: Node,
    n_items: usize,
    levels: Vec<Level>,
}

impl Found {
    fn alternative(&self) -> Option<Alternative> {
        let path = self.path.as_str();
        (path.len() <= LONGEST_ALTERNATIVE && self.node.bytes() >= LEAST).then(|| Alternative {
            path: path.to_owned(),
            items: self.n_items,
            bytes: self.node.bytes(),
        })
    }
}

/// The array that most of a body is, looked for once.
#[derive(Debug, Default)]
struct Chosen(OnceLock<Choice>);

impl Chosen {
    fn choice(&self, view: &View<'_>) -> Result<&Choice, PageError> {
        if let Some(choice) = self.0.get() {
            return Ok(choice);
        }
        let choice = Choice::make(view)?;
        Ok(self.0.get_or_init(|| choice))
    }
}

impl Derived for Chosen {
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// The largest arrays of a body. An array inside another is smaller than it, so that only arrays
/// which nothing but objects are around need be looked at.
#[derive(Debug)]
pub(crate) struct Choice {
    /// The largest first.
    arrays: Vec<Found>,
    root_bytes: usize,
}

impl Choice {
    pub(super) fn make(view: &View<'_>) -> io::Result<Self> {
        let mut choice = Self { arrays: Vec::new(), root_bytes: view.root().bytes() };
        let least = LEAST.min(view.root().bytes() / 4);
        let mut open = vec![(view.root(), Pointer::default(), Vec::new())];
        while let Some((object, path, levels)) = open.pop() {
            if choice.is_full_of_larger(object.bytes()) {
                continue;
            }
            let mut children = view.children(object)?;
            while let Some(member) = children.next_child()? {
                let node = member.value;
                let is_array = node.kind == Kind::Array;
                let is_object = node.kind == Kind::Object && node.bytes() >= least;
                if !(is_array || is_object) || choice.is_full_of_larger(node.bytes()) {
                    continue;
                }
                let mut path = path.clone();
                if let Some(name) = member.name {
                    path.push_name(&view.text(name)?);
                }
                let mut levels = levels.clone();
                levels.push(Level { object, member });
                if is_object {
                    open.push((node, path, levels));
                } else {
                    choice.add(Found { path, node, n_items: view.len(node)?, levels });
                }
            }
        }
        Ok(choice)
    }

    fn is_full_of_larger(&self, bytes: usize) -> bool {
        self.arrays.get(N_ARRAYS - 1).is_some_and(|least| least.node.bytes() >= bytes)
    }

    fn add(&mut self, found: Found) {
        let bytes = found.node.bytes();
        let before = |other: &Found| {
            let others = other.node.bytes();
            others > bytes || others == bytes && other.node.start < found.node.start
        };
        let position = self.arrays.partition_point(before);
        self.arrays.insert(position, found);
        self.arrays.truncate(N_ARRAYS);
    }

    /// Returns the array to page: the largest, if it is a good part of the body. A table of many
    /// objects is better paged by its members than by the largest of many small arrays.
    fn best(&self) -> Option<&Found> {
        self.arrays.first().filter(|best| best.node.bytes() >= self.root_bytes / 4)
    }
}
