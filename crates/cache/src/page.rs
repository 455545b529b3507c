//! Cutting a body into pages.
//!
//! The laws: the answer in which a page stands never exceeds its budget; each page is valid JSON;
//! the pages of an array or object, one after the other, give its bytes back, each `$ref` standing
//! for the pages of the value at that pointer and the `$str` pieces of a string for the string;
//! strings and texts are cut at line ends, else between whole characters.

mod cursor;
mod frame;
mod pack;
mod pagination;
mod refs;
mod split;
mod tables;
mod target;

use std::{io, sync::Arc};

pub(crate) use self::refs::{cost, skeleton};
pub use self::{
    cursor::BadCursor,
    pagination::{Alternative, Pagination},
};
use self::{
    cursor::Cursor,
    pack::{Packer, Position},
    tables::{Key, Table, Tables},
    target::Target,
};
use crate::json::{Node, NotFound, Pointer, View};

/// Size of a page's answer in bytes where the caller names none.
pub const DEFAULT_PAGE_BYTES: usize = 32 * 1024;

/// Which page of what.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest<'a> {
    /// The value to page; without it the array that most of the body is, with what is around it.
    pub path: Option<&'a Pointer>,
    /// Which page.
    pub at: At<'a>,
    /// How large its answer may be.
    pub budget: Budget,
    /// What a cursor is good for: the entry's id, mixed with the number of times its body was
    /// replaced. Another number makes the cursor a bad one.
    pub binding: u128,
}

/// Which page.
#[derive(Clone, Copy, Debug)]
pub enum At<'a> {
    /// By its number, from 1. There is nothing on a page that does not exist.
    Page(u64),
    /// By the `next_cursor` of the page before it.
    Cursor(&'a str),
}

/// How large the answer of a page may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of the whole answer; without it those of the cursor, else [`DEFAULT_PAGE_BYTES`].
    pub bytes: Option<usize>,
    /// Bytes of the answer that are neither `data` nor `_pagination`, as they are sent. The same on
    /// every page of a value: where pages begin depends on it, and so does what a cursor says.
    pub overhead: usize,
    /// Whether the answer stands in a JSON string, as in a text block, where each quote and each
    /// backslash takes a byte more.
    pub is_escaped: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: None, overhead: 256, is_escaped: true }
    }
}

/// A page.
#[derive(Clone, Debug)]
pub struct Page {
    /// What is on it: JSON.
    pub data: Vec<u8>,
    /// Where it is among the pages.
    pub pagination: Pagination,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The cursor is not one of this entry, path and size.
    #[error(transparent)]
    BadCursor(#[from] BadCursor),
    /// There is nothing at the path.
    #[error(transparent)]
    PathNotFound(NotFound),
    /// A page of this size cannot carry its envelope and make progress.
    #[error("a page of {bytes} bytes is too small here; ask for {needed} or more")]
    BudgetTooSmall {
        /// The size asked for.
        bytes: usize,
        /// A size that does.
        needed: usize,
    },
    /// The body could not be read.
    #[error("the body could not be read")]
    Io(#[from] io::Error),
}

impl From<NotFound> for PageError {
    fn from(error: NotFound) -> Self {
        match error {
            NotFound::Io(error) => Self::Io(error),
            NotFound::Absent { .. } => Self::PathNotFound(error),
        }
    }
}

impl View<'_> {
    /// Returns one page.
    ///
    /// The first page of a value in a size reads the whole value once, to know how many pages there
    /// are; after that a page reads little more than what is on it.
    ///
    /// # Errors
    ///
    /// See [`PageError`]. A page beyond the last is not an error: its data is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// use raincheck_cache::{At, Budget, PageRequest, View, scan};
    ///
    /// let items: Vec<_> = (0..9000).map(|n| n.to_string()).collect();
    /// let body = format!(r#"{{"total":9000,"items":[{}]}}"#, items.join(","));
    /// let body = body.as_bytes();
    /// let index = scan(body)?;
    /// let view = View::new(&body, &index);
    /// let request = PageRequest {
    ///     path: None,
    ///     at: At::Page(1),
    ///     budget: Budget { bytes: Some(4096), ..Budget::default() },
    ///     binding: 7,
    /// };
    /// let page = view.page(request)?;
    /// assert!(page.data.starts_with(br#"{"total":9000,"items":[0,1,2,"#));
    /// assert_eq!(page.pagination.field.as_deref(), Some("items"));
    ///
    /// let cursor = page.pagination.next_cursor.unwrap();
    /// let next = view.page(PageRequest { at: At::Cursor(&cursor), ..request })?;
    /// assert_eq!(next.pagination.start_index, page.pagination.end_index);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn page(&self, request: PageRequest<'_>) -> Result<Page, PageError> {
        let cursor = match request.at {
            At::Cursor(text) => Some(Cursor::decode(text, request.binding, self)?),
            At::Page(_) => None,
        };
        let bytes = match (request.budget.bytes, &cursor) {
            (Some(bytes), Some(cursor)) if bytes != cursor.bytes => {
                return Err(BadCursor::OtherSize.into());
            }
            (Some(bytes), _) => bytes,
            (None, Some(cursor)) => cursor.bytes,
            (None, None) => DEFAULT_PAGE_BYTES,
        };
        let target = match (request.path, &cursor) {
            (Some(path), None) => Target::at(self, path)?,
            (Some(path), Some(cursor)) => {
                let target = Target::at(self, path)?;
                if cursor.is_auto && target.start() != Target::auto(self)?.start()
                    || !cursor.is_auto && cursor.start != target.start()
                {
                    return Err(BadCursor::OtherPath.into());
                }
                if cursor.is_auto { Target::auto(self)? } else { target }
            }
            (None, Some(cursor)) if !cursor.is_auto => {
                let (path, node) = self.locate(cursor.start)?;
                if node.start != cursor.start {
                    return Err(BadCursor::Damaged.into());
                }
                Target::new(self, path, node)
            }
            (None, _) => Target::auto(self)?,
        };
        let table = self.table(target, Budget { bytes: Some(bytes), ..request.budget }, bytes)?;
        let number = match (request.at, &cursor) {
            (_, Some(cursor)) => table.number_at(cursor.position).ok_or(BadCursor::Damaged)?,
            (At::Page(number), None) => number,
            (At::Cursor(_), None) => 0,
        };
        self.render(&table, number, bytes, request)
    }

    /// Returns how large the pages are that a cursor goes on with, in bytes.
    ///
    /// # Errors
    ///
    /// When the cursor is not one of this entry.
    pub fn cursor_bytes(&self, cursor: &str, binding: u128) -> Result<usize, BadCursor> {
        Cursor::decode(cursor, binding, self).map(|cursor| cursor.bytes)
    }

    /// Returns the value that is paged when no path is asked for: the array that most of the body
    /// is, else the whole.
    ///
    /// # Errors
    ///
    /// When the body cannot be read.
    pub fn main_value(&self) -> Result<(Pointer, Node), PageError> {
        let target = Target::auto(self)?;
        Ok((target.path, target.node))
    }

    /// Returns the beginnings of all pages, from the tables that the index holds if they are there.
    fn table(&self, target: Target, budget: Budget, bytes: usize) -> Result<Arc<Table>, PageError> {
        let key = Key {
            start: target.start(),
            is_auto: target.is_auto(),
            bytes,
            overhead: budget.overhead,
            is_escaped: budget.is_escaped,
        };
        let tables = self.index().derived::<Tables>();
        if let Some(table) = tables.get(&key) {
            return Ok(table);
        }
        let table = Arc::new(Table::build(self, target, key)?);
        tables.put(Arc::clone(&table));
        Ok(table)
    }

    fn render(
        &self,
        table: &Table,
        number: u64,
        bytes: usize,
        request: PageRequest<'_>,
    ) -> Result<Page, PageError> {
        let total_pages = table.starts.len();
        let found = usize::try_from(number)
            .ok()
            .and_then(|number| number.checked_sub(1))
            .and_then(|page| table.starts.get(page).map(|start| (page, *start)));
        let mut pagination = table.pagination.clone();
        pagination.page = number;
        pagination.total_pages = total_pages;
        pagination.has_previous = number > 1;
        let Some((page, start)) = found else {
            let data = table.empty().to_vec();
            pagination.page_bytes = data.len();
            pagination.start_index = pagination.total_items;
            pagination.end_index = pagination.total_items;
            pagination.alternatives.clear();
            return Ok(Page { data, pagination });
        };
        let is_first = page == 0;
        let packed = match table.kept(page) {
            Some(kept) => kept,
            None => &Packer::new(self, &table.target, &table.room).pack(start, is_first)?,
        };
        let data = packed.data(self, table.frame(is_first))?;
        pagination.page_bytes = data.len();
        pagination.start_index = packed.start_index;
        pagination.end_index = packed.end_index;
        pagination.refs = packed.n_refs + table.frame(is_first).map_or(0, |around| around.n_refs);
        pagination.cuts_character = packed.cuts_character;
        if !is_first {
            pagination.alternatives.clear();
        }
        if let Some(position) = table.starts.get(page + 1) {
            pagination.has_next = true;
            pagination.next_cursor = Some(
                Cursor {
                    start: table.target.start(),
                    is_auto: table.target.is_auto(),
                    bytes,
                    position: *position,
                }
                .encode(request.binding, self),
            );
        }
        Ok(Page { data, pagination })
    }
}

#[cfg(test)]
mod tests;
