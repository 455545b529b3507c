//! Lists of tasks, newest first, from the indexes of the file.
//!
//! Each filter names a few ranges of an index in which the rows lie in the order of the list; the ranges
//! are merged. Nothing but the page itself is read where a filter is by state, by tool, by both, by
//! label or by time; several others at once are checked row by row.

use std::collections::VecDeque;

use rusqlite::{Connection, OptionalExtension as _, ToSql, params};

use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::store::{Cursor, Filter, Page};
use raincheck_core::task::TaskRecord;
use raincheck_core::time::Timestamp;

use crate::fault::Fault;
use crate::rows;

pub(crate) const LIVE: &str = "SELECT seq FROM tasks \
    WHERE scope = ? AND ended_at IS NULL AND seq < ? AND seq >= ? ORDER BY seq DESC LIMIT ?";
/// The tools of which something has ended: each is looked for behind the one before.
pub(crate) const TOOLS: &str = "WITH RECURSIVE found (tool) AS ( \
    SELECT min(tool) FROM tasks WHERE scope = ?1 AND ended_at IS NOT NULL UNION ALL \
    SELECT (SELECT min(tool) FROM tasks \
    WHERE scope = ?1 AND ended_at IS NOT NULL AND tool > found.tool) \
    FROM found WHERE tool IS NOT NULL) SELECT tool FROM found WHERE tool IS NOT NULL";
pub(crate) const BY_TOOL: &str = "SELECT seq FROM tasks \
    WHERE scope = ? AND ended_at IS NOT NULL AND seq < ? AND seq >= ? AND state = ? AND tool = ? \
    ORDER BY seq DESC LIMIT ?";
pub(crate) const BY_TAG: &str = "SELECT seq FROM task_tags \
    WHERE scope = ? AND seq < ? AND seq >= ? AND tag = ? ORDER BY seq DESC LIMIT ?";
pub(crate) const SUBMITTED_AFTER: &str =
    "SELECT min(block) << 10 FROM submit_times WHERE newest > ?";

/// How many places of a range are read at first, and at most at once.
const FIRST_READ: u32 = 8;
const MOST_READ: u32 = 512;

/// One range of an index.
struct Range {
    sql: &'static str,
    /// What the range is bound to beside the owner and the ends.
    words: Vec<String>,
    /// Places that were read, the newest first.
    read: VecDeque<i64>,
    /// Where the next ones begin, unless there are none.
    before: Option<i64>,
    /// How many are read next.
    n_next: u32,
}

/// Lists the tasks of a scope as [`TaskStore::list`](raincheck_core::store::TaskStore::list) does.
pub(crate) fn list(
    connection: &Connection,
    scope: &Scope,
    filter: &Filter,
    before: Option<Cursor>,
    limit: u32,
) -> Result<Page<TaskRecord>, Fault> {
    // One view of the file for all ranges and rows.
    let view = connection.unchecked_transaction()?;
    let mut page = Page { items: Vec::new(), has_more: false };
    let Some(from) = first_of(&view, filter.submitted_after)? else { return Ok(page) };
    let before = before.map_or(i64::MAX, |cursor| cursor.0.cast_signed());
    let ranges = ranges(&view, scope, filter, before)?;
    let mut merge = Merge { view: &view, scope, from, ranges, last: None };
    let mut row = view.prepare_cached(&rows::BY_SEQ)?;
    while let Some(seq) = merge.next()? {
        let found = row.query_row([seq], |row| Ok(rows::read(row))).optional()?;
        let Some(record) = found.map(rows::known).transpose()?.flatten() else { continue };
        if !filter.admits(&record) {
            continue;
        }
        if page.items.len() >= limit as usize {
            page.has_more = true;
            break;
        }
        page.items.push(record);
    }
    Ok(page)
}

/// The first place in the order of acceptance that may have been submitted later than an instant.
fn first_of(view: &Connection, after: Option<Timestamp>) -> Result<Option<i64>, Fault> {
    let Some(after) = after else { return Ok(Some(0)) };
    let mut statement = view.prepare_cached(SUBMITTED_AFTER)?;
    Ok(statement.query_row([after.as_millis()], |row| row.get(0))?)
}

/// The ranges in which everything lies that a filter may show.
fn ranges(
    view: &Connection,
    scope: &Scope,
    filter: &Filter,
    before: i64,
) -> Result<Vec<Range>, Fault> {
    let range = |sql, words| {
        let read = VecDeque::new();
        Range { sql, words, read, before: Some(before), n_next: FIRST_READ }
    };
    let is_wanted = |state: &State| match filter.states.as_slice() {
        [] => *state != State::Expired,
        states => states.contains(state),
    };
    let wanted: Vec<_> = State::ALL.iter().copied().filter(is_wanted).collect();
    // Only what is not expired has its labels in the index.
    if !filter.tags_any.is_empty() && !wanted.contains(&State::Expired) {
        let mut tags: Vec<_> = filter.tags_any.iter().map(|tag| tag.to_string()).collect();
        tags.sort_unstable();
        tags.dedup();
        return Ok(tags.into_iter().map(|tag| range(BY_TAG, vec![tag])).collect());
    }
    let ended: Vec<_> = wanted.iter().filter(|state| state.is_terminal()).collect();
    let tools = match &filter.tool {
        _ if ended.is_empty() => Vec::new(),
        Some(tool) => vec![tool.to_string()],
        None => {
            let mut statement = view.prepare_cached(TOOLS)?;
            let found = statement.query_map([scope.as_str()], |row| row.get(0))?;
            found.collect::<Result<Vec<String>, _>>()?
        }
    };
    let mut ranges = Vec::with_capacity(tools.len() * ended.len() + 1);
    for tool in tools {
        let words = |state: &State| vec![state.as_str().to_owned(), tool.clone()];
        ranges.extend(ended.iter().map(|state| range(BY_TOOL, words(state))));
    }
    if wanted.iter().any(|state| !state.is_terminal()) {
        ranges.push(range(LIVE, Vec::new()));
    }
    Ok(ranges)
}

impl Range {
    /// Returns its newest place, after more of them were read if need be.
    fn first(&mut self, view: &Connection, scope: &Scope, from: i64) -> Result<Option<i64>, Fault> {
        if self.read.is_empty()
            && let Some(before) = self.before
        {
            let mut statement = view.prepare_cached(self.sql)?;
            let mut values: Vec<&dyn ToSql> = Vec::with_capacity(6);
            let scope = scope.as_str();
            values.extend(params![scope, before, from]);
            values.extend(self.words.iter().map(|word| -> &dyn ToSql { word }));
            values.push(&self.n_next);
            let mut rows = statement.query(values.as_slice())?;
            while let Some(row) = rows.next()? {
                self.read.push_back(row.get(0)?);
            }
            let is_whole = self.read.len() < self.n_next as usize;
            self.before = self.read.back().copied().filter(|_| !is_whole);
            self.n_next = (self.n_next * 4).min(MOST_READ);
        }
        Ok(self.read.front().copied())
    }
}

/// Several ranges read as one, the newest place first, each place once.
struct Merge<'l> {
    view: &'l Connection,
    scope: &'l Scope,
    from: i64,
    ranges: Vec<Range>,
    last: Option<i64>,
}

impl Merge<'_> {
    fn next(&mut self) -> Result<Option<i64>, Fault> {
        loop {
            let mut newest: Option<(i64, &mut Range)> = None;
            for range in &mut self.ranges {
                let first = range.first(self.view, self.scope, self.from)?;
                if let Some(seq) = first
                    && newest.as_ref().is_none_or(|(most, _)| seq > *most)
                {
                    newest = Some((seq, range));
                }
            }
            let Some((seq, range)) = newest else { return Ok(None) };
            range.read.pop_front();
            if self.last != Some(seq) {
                self.last = Some(seq);
                return Ok(Some(seq));
            }
        }
    }
}
