//! Filling one page.

use std::io;

use super::{
    frame::{Around, Frame},
    refs::{cost, reference, skeleton},
    split::{LOOKAHEAD, Writing, cut},
    target::{Mode, Target},
};
use crate::json::{Child, Children, Kind, Pointer, View, mark_at, to_usize};

/// Part of the body that the kept pages of one table may take: with four tables 1.6 % of it.
const KEPT_PART: usize = 256;
/// Least part of a page that is for its data, as the divisor: where what every page says again, such as the
/// names on the way to it, takes almost all, there would be hundreds of pages of a few bytes each.
pub(super) const LEAST_SHARE: usize = 16;

/// Where a page begins. Ordered as the pages are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    /// The child; in a text the line.
    pub(super) ordinal: usize,
    /// Where in the body the child begins; where the content that is divided begins.
    pub(super) offset: usize,
    /// How much of a string, a text or raw JSON comes before.
    pub(super) within: usize,
}

/// Bytes that the slice on a page may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    first: usize,
    rest: usize,
    is_escaped: bool,
}

impl Room {
    pub(super) fn new(all: usize, frame: Option<&Frame>, is_escaped: bool) -> Self {
        let less = |around: &Around| all.saturating_sub(around.cost);
        let (first, rest) =
            frame.map_or((all, all), |frame| (less(&frame.first), less(&frame.rest)));
        Self { first, rest, is_escaped }
    }

    const fn of(&self, is_first: bool) -> usize {
        if is_first { self.first } else { self.rest }
    }

    fn full(&self) -> usize {
        self.first.max(self.rest)
    }

    const fn escapes(&self, n_escapes: usize) -> usize {
        if self.is_escaped { n_escapes } else { 0 }
    }
}

/// Why a page cannot be made.
#[derive(Debug)]
pub(super) enum Unfit {
    /// Something that cannot be divided does not fit.
    TooLong,
    Io(io::Error),
}

impl From<io::Error> for Unfit {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Unfit> for super::PageError {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::Io(error) => Self::Io(error),
            // The table was made by the same rules over the same bytes.
            Unfit::TooLong => Self::Io(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// A part of a slice.
#[derive(Debug)]
enum Part {
    /// Bytes of the body.
    Raw(usize, usize),
    Made(Vec<u8>),
}

impl Part {
    const fn held_bytes(&self) -> usize {
        match self {
            Self::Raw(..) => size_of::<Self>(),
            Self::Made(json) => size_of::<Self>() + json.capacity(),
        }
    }
}

/// What is on a page.
#[derive(Debug)]
pub(super) struct Packed {
    parts: Vec<Part>,
    brackets: (&'static [u8], &'static [u8]),
    pub(super) start_index: usize,
    pub(super) end_index: usize,
    pub(super) n_refs: usize,
    pub(super) cuts_character: bool,
    next: Option<Position>,
}

/// The pages of a value.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// Where each begins.
    pub(super) starts: Vec<Position>,
    /// Those that take many small reads to make, as they are, by their position in `starts`.
    pub(super) kept: Vec<(usize, Packed)>,
}

impl Packed {
    /// Returns whether making it reads in more places than writing it out does: references stand in
    /// it for values that begin and end far apart.
    const fn is_scattered(&self) -> bool {
        self.n_refs > 0
    }

    /// Returns the bytes that it takes to have it again.
    pub(super) fn held_bytes(&self) -> usize {
        let parts: usize = self.parts.iter().map(Part::held_bytes).sum();
        size_of::<(usize, Self)>() + parts
    }

    fn shrink(&mut self) {
        self.parts.shrink_to_fit();
        for part in &mut self.parts {
            if let Part::Made(json) = part {
                json.shrink_to_fit();
            }
        }
    }

    /// Returns the JSON of the page.
    pub(super) fn data(&self, view: &View<'_>, around: Option<&Around>) -> io::Result<Vec<u8>> {
        let mut data = Vec::new();
        if let Some(around) = around {
            data.extend_from_slice(&around.before);
        }
        data.extend_from_slice(self.brackets.0);
        for (position, part) in self.parts.iter().enumerate() {
            if position > 0 {
                data.push(b',');
            }
            match part {
                Part::Raw(start, end) => data.extend_from_slice(&view.bytes(*start, *end)?),
                Part::Made(json) => data.extend_from_slice(json),
            }
        }
        data.extend_from_slice(self.brackets.1);
        if let Some(around) = around {
            data.extend_from_slice(&around.after);
        }
        Ok(data)
    }
}

/// Fills pages of one target.
pub(super) struct Packer<'v, 'a> {
    view: &'v View<'a>,
    target: &'v Target,
    room: &'v Room,
}

impl<'v, 'a> Packer<'v, 'a> {
    pub(super) const fn new(view: &'v View<'a>, target: &'v Target, room: &'v Room) -> Self {
        Self { view, target, room }
    }

    /// Makes all pages, and returns where each begins.
    pub(super) fn pages(&mut self) -> Result<Pages, Unfit> {
        let offset = match self.target.mode {
            Mode::Items | Mode::Members => self.target.node.start,
            Mode::String | Mode::Text | Mode::Raw | Mode::Whole => self.target.content().0,
        };
        let mut next = Some(Position { ordinal: 0, offset, within: 0 });
        let mut pages = Pages::default();
        let mut room = self.view.index().body_bytes() / KEPT_PART;
        while let Some(start) = next {
            let number = pages.starts.len();
            debug_assert!(pages.starts.last().is_none_or(|last| *last < start), "pages go forward");
            let mut packed = self.pack(start, number == 0)?;
            next = packed.next;
            pages.starts.push(start);
            if packed.is_scattered() {
                packed.shrink();
                if let Some(left) = room.checked_sub(packed.held_bytes()) {
                    room = left;
                    pages.kept.push((number, packed));
                }
            }
        }
        pages.starts.shrink_to_fit();
        pages.kept.shrink_to_fit();
        Ok(pages)
    }

    pub(super) fn pack(&mut self, start: Position, is_first: bool) -> Result<Packed, Unfit> {
        let room = self.room.of(is_first);
        match self.target.mode {
            Mode::Items | Mode::Members => self.children(start, room.saturating_sub(2)),
            Mode::String => self.string(start, room),
            Mode::Text => self.text(start, room),
            Mode::Raw => self.raw(start, room),
            Mode::Whole => self.whole(room),
        }
    }

    fn whole(&self, room: usize) -> Result<Packed, Unfit> {
        let node = self.target.node;
        if node.bytes() > room {
            return Err(Unfit::TooLong);
        }
        let parts = vec![Part::Raw(node.start, node.end)];
        Ok(Packed { end_index: 1, ..packed(parts, (b"", b"")) })
    }

    /// Cuts a piece of at most `room` bytes from the content of the target at `within`.
    fn piece(
        &self,
        content: (usize, usize),
        within: usize,
        room: usize,
        writing: Writing,
    ) -> Result<(Vec<u8>, usize, bool), Unfit> {
        let start = content.0 + within;
        let end = content.1.min(start + room + LOOKAHEAD);
        let raw = self.view.bytes(start, end)?;
        let quotes = 2 + self.room.escapes(2);
        let room = room.checked_sub(quotes).ok_or(Unfit::TooLong)?;
        let cut = cut(&raw, room, writing, self.room.is_escaped).ok_or(Unfit::TooLong)?;
        let mut json = Vec::with_capacity(cut.bytes + 2);
        writing.write(raw.get(..cut.bytes).unwrap_or(&[]), &mut json);
        Ok((json, within + cut.bytes, cut.is_inside))
    }

    fn string(&self, start: Position, room: usize) -> Result<Packed, Unfit> {
        let content = self.target.content();
        let (json, end, cuts_character) = self.piece(content, start.within, room, Writing::Json)?;
        let is_more = content.0 + end < content.1;
        Ok(Packed {
            start_index: start.within,
            end_index: end,
            cuts_character,
            next: is_more.then_some(Position { within: end, ..start }),
            ..packed(vec![Part::Made(json)], (b"", b""))
        })
    }

    fn text(&self, start: Position, room: usize) -> Result<Packed, Unfit> {
        let content = self.target.content();
        let (json, end, cuts_character) =
            self.piece(content, start.within, room, Writing::Plain)?;
        let raw = self.view.bytes(content.0 + start.within, content.0 + end)?;
        let line = start.ordinal + memchr::memchr_iter(b'\n', &raw).count();
        let is_more = content.0 + end < content.1;
        let ends_a_line = raw.last().is_none_or(|byte| *byte == b'\n');
        Ok(Packed {
            start_index: start.ordinal,
            end_index: line + usize::from(!ends_a_line),
            cuts_character,
            next: is_more.then_some(Position { ordinal: line, within: end, ..start }),
            ..packed(vec![Part::Made(json)], (b"", b""))
        })
    }

    fn raw(&self, start: Position, room: usize) -> Result<Packed, Unfit> {
        let content = self.target.content();
        let total = content.1 - content.0;
        let (json, end, cuts_character) =
            self.piece_within("$raw", content, start.within, room, Writing::Plain)?;
        Ok(Packed {
            start_index: start.within,
            end_index: end,
            cuts_character,
            next: (end < total).then_some(Position { within: end, ..start }),
            ..packed(vec![Part::Made(json)], (b"", b""))
        })
    }

    /// Returns `{"$str": piece, "offset": …, "end": …, "total_bytes": …}`.
    fn piece_within(
        &self,
        word: &str,
        content: (usize, usize),
        within: usize,
        room: usize,
        writing: Writing,
    ) -> Result<(Vec<u8>, usize, bool), Unfit> {
        let total = content.1 - content.0;
        let tail =
            |end: usize| format!(",\"offset\":{within},\"end\":{end},\"total_bytes\":{total}}}");
        let head = format!("{{\"{word}\":");
        let is_escaped = self.room.is_escaped;
        let around = cost(head.as_bytes(), is_escaped) + cost(tail(total).as_bytes(), is_escaped);
        let room = room.checked_sub(around).ok_or(Unfit::TooLong)?;
        let (piece, end, cuts_character) = self.piece(content, within, room, writing)?;
        let mut json = head.into_bytes();
        json.extend_from_slice(&piece);
        json.extend_from_slice(tail(end).as_bytes());
        Ok((json, end, cuts_character))
    }

    fn children(&self, start: Position, room: usize) -> Result<Packed, Unfit> {
        let node = self.target.node;
        let brackets: (&[u8], &[u8]) =
            if node.kind == Kind::Object { (b"{", b"}") } else { (b"[", b"]") };
        let mut children = self.view.children(node)?;
        if start.offset > node.start {
            children.seek(start.ordinal, start.offset);
        }
        if start.within > 0 {
            let child = children.next_child()?.ok_or_else(damaged)?;
            let mut packed = self.string_child(child, start.within, room)?;
            packed.brackets = brackets;
            if packed.next.is_none() {
                packed.next = position(&children);
            }
            return Ok(packed);
        }
        let page =
            Filling { packer: self, room, taken: 0, open: None, parts: Vec::new(), n_refs: 0 };
        let mut packed = page.fill(&mut children, start.ordinal)?;
        packed.brackets = brackets;
        Ok(packed)
    }

    /// Returns a page that holds one piece of a string that is a child.
    fn string_child(&self, child: Child, within: usize, room: usize) -> Result<Packed, Unfit> {
        let mut head = Vec::new();
        if let Some(name) = child.name {
            if name.bytes() > room {
                return Err(Unfit::TooLong);
            }
            head.extend_from_slice(&self.view.raw(name)?);
            head.push(b':');
        }
        let least = self.room.full() / LEAST_SHARE;
        let room = room.checked_sub(cost(&head, self.room.is_escaped));
        let room = room.filter(|room| *room >= least).ok_or(Unfit::TooLong)?;
        let content = (child.value.start + 1, child.value.end - 1);
        let (json, end, cuts_character) =
            self.piece_within("$str", content, within, room, Writing::Json)?;
        head.extend_from_slice(&json);
        let is_more = content.0 + end < content.1;
        let offset = child.start();
        Ok(Packed {
            start_index: child.ordinal,
            end_index: child.ordinal + 1,
            cuts_character,
            next: is_more.then_some(Position { ordinal: child.ordinal, offset, within: end }),
            ..packed(vec![Part::Made(head)], (b"", b""))
        })
    }

    fn path_of(&self, child: Child) -> io::Result<Pointer> {
        let mut path = self.target.path.clone();
        match child.name {
            Some(name) => path.push_name(&self.view.text(name)?),
            None => path.push_position(child.ordinal),
        }
        Ok(path)
    }

    /// Shows a child that is larger than a page.
    fn made(&self, child: Child, room: usize) -> Result<(Vec<u8>, usize), Unfit> {
        let is_escaped = self.room.is_escaped;
        let mut json = Vec::new();
        if let Some(name) = child.name {
            if name.bytes() > room {
                return Err(Unfit::TooLong);
            }
            json.extend_from_slice(&self.view.raw(name)?);
            json.push(b':');
        }
        let of_name = cost(&json, is_escaped);
        let full = self.room.full();
        let limit = (full / 4).max(full.min(400)).saturating_sub(of_name);
        let path = self.path_of(child)?;
        let (mut value, mut n_refs) = skeleton(self.view, &path, child.value, limit, is_escaped)?;
        if of_name + cost(&value, is_escaped) > room {
            (value, n_refs) = (reference(self.view, &path, child.value)?, 1);
        }
        json.extend_from_slice(&value);
        Ok((json, n_refs))
    }
}

/// A page of children while it is being filled.
struct Filling<'p, 'v, 'a> {
    packer: &'p Packer<'v, 'a>,
    room: usize,
    taken: usize,
    /// Children that stand next to each other in the body and go out as they are.
    open: Option<Run>,
    parts: Vec<Part>,
    n_refs: usize,
}

#[derive(Clone, Copy)]
struct Run {
    start: usize,
    end: End,
}

#[derive(Clone, Copy)]
enum End {
    /// Behind a value.
    Value(usize),
    /// Where the next child begins; the comma before it does not belong to the run.
    NextChild(usize),
}

impl Filling<'_, '_, '_> {
    fn fill(mut self, children: &mut Children<'_>, first: usize) -> Result<Packed, Unfit> {
        let mut at = position(children);
        while let Some(here) = at {
            if self.hop(children, here)? {
                at = position(children);
                continue;
            }
            // What is left of the room is less than what a look at each child is worth.
            if self.taken * 8 > self.room * 7 && self.is_at_mark(here) {
                break;
            }
            let child = children.next_child()?.ok_or_else(damaged)?;
            if !self.is_empty() && child.value.kind == Kind::String && self.is_oversize(child)? {
                break;
            }
            if !self.add(child)? {
                if !self.is_empty() || child.value.kind != Kind::String {
                    break;
                }
                let mut packed = self.packer.string_child(child, 0, self.room)?;
                packed.next = packed.next.or_else(|| position(children));
                return Ok(packed);
            }
            at = position(children);
        }
        if self.is_empty() && at.is_some() {
            return Err(Unfit::TooLong);
        }
        self.end_run()?;
        let n_items = self.packer.view.len(self.packer.target.node)?;
        Ok(Packed {
            start_index: first,
            end_index: at.map_or(n_items, |next| next.ordinal),
            n_refs: self.n_refs,
            next: at,
            ..packed(self.parts, (b"", b""))
        })
    }

    const fn is_empty(&self) -> bool {
        self.taken == 0
    }

    fn is_at_mark(&self, here: Position) -> bool {
        mark_at(self.packer.view.index(), self.packer.target.node, here.offset).is_some()
    }

    /// Takes all children up to the next mark at once, if they fit.
    fn hop(&mut self, children: &mut Children<'_>, here: Position) -> io::Result<bool> {
        let index = self.packer.view.index();
        let Some([from, to]) = mark_at(index, self.packer.target.node, here.offset) else {
            return Ok(false);
        };
        let n_bytes = to_usize(to.offset - from.offset);
        let n_escapes = to_usize(to.escapes - from.escapes);
        let gap = self.gap(here.offset)?;
        let cost = gap + n_bytes + self.packer.room.escapes(n_escapes);
        if self.taken + cost > self.room {
            return Ok(false);
        }
        self.extend(here.offset, End::NextChild(to_usize(to.offset)));
        self.taken += cost;
        children.seek(to_usize(to.ordinal), to_usize(to.offset));
        Ok(true)
    }

    fn extend(&mut self, start: usize, end: End) {
        match &mut self.open {
            Some(run) => run.end = end,
            None => self.open = Some(Run { start, end }),
        }
    }

    fn end_run(&mut self) -> io::Result<()> {
        let Some(run) = self.open.take() else { return Ok(()) };
        let end = match run.end {
            End::Value(end) => end,
            End::NextChild(at) => before_comma(self.packer.view, at)?,
        };
        self.parts.push(Part::Raw(run.start, end));
        Ok(())
    }

    /// Returns what a child takes as it is, or `None` if that is more than any page has room for.
    fn cost(&self, start: usize, end: usize) -> io::Result<Option<usize>> {
        let n_bytes = end - start;
        let full = self.packer.room.full();
        if n_bytes > full {
            return Ok(None);
        }
        let cost = cost(&self.packer.view.bytes(start, end)?, self.packer.room.is_escaped);
        Ok((cost + 2 <= full).then_some(cost))
    }

    fn is_oversize(&self, child: Child) -> io::Result<bool> {
        Ok(self.cost(child.start(), child.value.end)?.is_none())
    }

    /// Adds a child as it is or, if it is larger than a page, what stands for it.
    fn add(&mut self, child: Child) -> Result<bool, Unfit> {
        let (start, end) = (child.start(), child.value.end);
        let gap = self.gap(start)?;
        let as_it_is = self.cost(start, end)?;
        if let Some(cost) = as_it_is {
            if self.taken + gap + cost <= self.room {
                self.extend(start, End::Value(end));
                self.taken += gap + cost;
                return Ok(true);
            }
            if !self.is_empty() {
                return Ok(false);
            }
        }
        if child.value.kind == Kind::String {
            return Ok(false);
        }
        let (json, n_refs) = self.packer.made(child, self.room)?;
        let cost = cost(&json, self.packer.room.is_escaped);
        self.end_run()?;
        let comma = usize::from(!self.parts.is_empty());
        if self.taken + comma + cost > self.room {
            return Ok(false);
        }
        self.taken += comma + cost;
        self.parts.push(Part::Made(json));
        self.n_refs += n_refs;
        Ok(true)
    }

    /// Returns what stands before a child that begins at `start`: between two children of a run a
    /// comma and white space, which go out too; between two parts a comma.
    fn gap(&self, start: usize) -> io::Result<usize> {
        let Some(run) = self.open else { return Ok(usize::from(!self.parts.is_empty())) };
        let End::Value(end) = run.end else { return Ok(0) };
        if start - end == 1 {
            return Ok(1);
        }
        Ok(cost(&self.packer.view.bytes(end, start)?, self.packer.room.is_escaped))
    }
}

/// Returns where the next child begins, if there is one.
fn position(children: &Children<'_>) -> Option<Position> {
    let (ordinal, offset) = children.position()?;
    Some(Position { ordinal, offset, within: 0 })
}

/// Returns the end of the value before the comma before `at`.
fn before_comma(view: &View<'_>, at: usize) -> io::Result<usize> {
    let mut end = at;
    let mut n_commas = 0;
    loop {
        let start = end.saturating_sub(64);
        let bytes = view.bytes(start, end)?;
        for byte in bytes.iter().rev() {
            match byte {
                b' ' | b'\n' | b'\r' | b'\t' => {}
                b',' if n_commas == 0 => n_commas = 1,
                _ => return Ok(end),
            }
            end -= 1;
        }
        if start == 0 {
            return Err(damaged());
        }
    }
}

fn damaged() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

const fn packed(parts: Vec<Part>, brackets: (&'static [u8], &'static [u8])) -> Packed {
    Packed {
        parts,
        brackets,
        start_index: 0,
        end_index: 0,
        n_refs: 0,
        cuts_character: false,
        next: None,
    }
}
