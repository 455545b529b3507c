//! Where pages begin, for the page sizes in use.

use std::sync::{Arc, Mutex, PoisonError};

use super::{
    PageError, Pagination,
    frame::{Around, Frame},
    pack::{LEAST_SHARE, Packed, Packer, Pages, Position, Room, Unfit},
    target::{Mode, Target},
};
use crate::json::{Derived, View};

/// Tables held at once, for one body: two readers with two sizes each.
const N_TABLES: usize = 4;
/// Least bytes that a page has for its data.
const LEAST_ROOM: usize = 160;

/// What a table is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) start: usize,
    pub(super) is_auto: bool,
    pub(super) bytes: usize,
    pub(super) overhead: usize,
    pub(super) is_escaped: bool,
}

/// Where the pages of one value in one size begin.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) key: Key,
    pub(super) target: Target,
    pub(super) frame: Option<Frame>,
    pub(super) room: Room,
    /// What every page says the same.
    pub(super) pagination: Pagination,
    pub(super) starts: Vec<Position>,
    /// Pages that take many small reads to make, by their position in `starts`.
    kept: Vec<(usize, Packed)>,
}

impl Table {
    pub(super) fn build(view: &View<'_>, target: Target, key: Key) -> Result<Self, PageError> {
        match Self::try_build(view, target, key)? {
            Ok(table) => Ok(table),
            Err(target) => Self::try_build(view, target, key)?.map_err(|_| too_small(key, 0)),
        }
    }

    /// Builds the table, or says which other target to take instead.
    fn try_build(
        view: &View<'_>,
        mut target: Target,
        key: Key,
    ) -> Result<Result<Self, Target>, PageError> {
        let pagination = target.pagination(view)?;
        let taken = key.overhead + pagination.largest(key.is_escaped);
        let least = LEAST_ROOM.max(key.bytes / LEAST_SHARE);
        let all = key.bytes.checked_sub(taken).filter(|room| *room >= least);
        let Some(all) = all else {
            if target.is_framed() {
                return Ok(Err(Target::whole(view)));
            }
            return Err(too_small(key, taken));
        };
        let mut frame = None;
        if target.is_framed() {
            frame = Frame::build(view, &target, all, key.is_escaped)?;
            if frame.is_none() {
                return Ok(Err(Target::whole(view)));
            }
        }
        let room = Room::new(all, frame.as_ref(), key.is_escaped);
        loop {
            match Packer::new(view, &target, &room).pages() {
                Ok(Pages { starts, kept }) => {
                    let pagination = target.pagination(view)?;
                    return Ok(Ok(Self { key, target, frame, room, pagination, starts, kept }));
                }
                Err(Unfit::Io(error)) => return Err(error.into()),
                Err(Unfit::TooLong) if target.mode == Mode::Raw => {
                    return Err(too_small(key, taken));
                }
                Err(Unfit::TooLong) if frame.is_some() => return Ok(Err(Target::whole(view))),
                Err(Unfit::TooLong) => target.mode = Mode::Raw,
            }
        }
    }

    /// Returns the number of the page that begins at `position`, from 1.
    pub(super) fn number_at(&self, position: Position) -> Option<u64> {
        let page = self.starts.binary_search(&position).ok()?;
        u64::try_from(page + 1).ok()
    }

    /// Returns a page as it was made for the table, if it was worth its place.
    pub(super) fn kept(&self, page: usize) -> Option<&Packed> {
        let position = self.kept.binary_search_by_key(&page, |(of, _)| *of).ok()?;
        self.kept.get(position).map(|(_, packed)| packed)
    }

    /// Returns what stands around the slice.
    pub(super) fn frame(&self, is_first: bool) -> Option<&Around> {
        let frame = self.frame.as_ref()?;
        Some(if is_first { &frame.first } else { &frame.rest })
    }

    /// Returns the data of a page that does not exist.
    pub(super) const fn empty(&self) -> &'static [u8] {
        match self.target.mode {
            Mode::Items => b"[]",
            Mode::Members => b"{}",
            Mode::String | Mode::Text | Mode::Raw => b"\"\"",
            Mode::Whole => b"null",
        }
    }

    fn heap_bytes(&self) -> usize {
        self.starts.capacity() * size_of::<Position>()
            + self.kept.iter().map(|(_, packed)| packed.held_bytes()).sum::<usize>()
            + self.frame.as_ref().map_or(0, Frame::heap_bytes)
            + size_of::<Self>()
    }
}

fn too_small(key: Key, taken: usize) -> PageError {
    let needed = (taken + 4 * LEAST_ROOM).max(key.bytes + key.bytes / 2);
    PageError::BudgetTooSmall { bytes: key.bytes, needed }
}

/// Page tables of one body.
#[derive(Debug, Default)]
pub(super) struct Tables {
    held: Mutex<Vec<Arc<Table>>>,
}

impl Tables {
    pub(super) fn get(&self, key: &Key) -> Option<Arc<Table>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let position = held.iter().position(|table| table.key == *key)?;
        // The one used last stands last.
        held.get_mut(position..)?.rotate_left(1);
        held.last().cloned()
    }

    pub(super) fn put(&self, table: Arc<Table>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= N_TABLES {
            held.remove(0);
        }
        held.push(table);
    }
}

impl Derived for Tables {
    fn heap_bytes(&self) -> usize {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().map(|table| table.heap_bytes()).sum()
    }
}
