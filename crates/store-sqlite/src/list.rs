//! Lists of tasks, newest first, from the indexes of the file.
//!
//! Each filter names a few ranges of an index in which the rows lie in the order of the list; the ranges
//! are merged. Nothing but the page itself is read where a filter is by state, by tool, by both, by
//! label or by time; several others at once are checked row by row.

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Rows, ToSql, params};

use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::store::{Cursor, Filter, Page};
use raincheck_core::task::TaskRecord;
use raincheck_core::time::Timestamp;

use crate::fault::Fault;
use crate::rows;

pub(crate) const LIVE: &str = "SELECT seq FROM tasks \
    WHERE scope = ? AND ended_at IS NULL AND seq < ? AND seq >= ? ORDER BY seq DESC";
pub(crate) const BY_STATE: &str = "SELECT seq FROM tasks \
    WHERE scope = ? AND ended_at IS NOT NULL AND seq < ? AND seq >= ? AND state = ? \
    ORDER BY seq DESC";
pub(crate) const BY_TOOL: &str = "SELECT seq FROM tasks \
    WHERE scope = ? AND ended_at IS NOT NULL AND seq < ? AND seq >= ? AND state = ? AND tool = ? \
    ORDER BY seq DESC";
pub(crate) const BY_TAG: &str = "SELECT seq FROM task_tags \
    WHERE scope = ? AND seq < ? AND seq >= ? AND tag = ? ORDER BY seq DESC";
pub(crate) const SUBMITTED_AFTER: &str =
    "SELECT min(block) << 10 FROM submit_times WHERE newest > ?";

/// One range of an index.
struct Range<'f> {
    sql: &'static str,
    /// What the range is bound to beside the owner and the ends.
    words: Vec<&'f str>,
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
    let ranges = ranges(filter);
    let mut statements = Vec::with_capacity(ranges.len());
    for range in &ranges {
        statements.push(view.prepare_cached(range.sql)?);
    }
    let mut merge = Merge::begin(&ranges, &mut statements, scope, before, from)?;
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
fn ranges(filter: &Filter) -> Vec<Range<'_>> {
    let is_wanted = |state: &State| match filter.states.as_slice() {
        [] => *state != State::Expired,
        states => states.contains(state),
    };
    let wanted: Vec<_> = State::ALL.iter().copied().filter(is_wanted).collect();
    // Only what is not expired has its labels in the index.
    if !filter.tags_any.is_empty() && !wanted.contains(&State::Expired) {
        let mut tags: Vec<_> = filter.tags_any.iter().map(|tag| &**tag).collect();
        tags.sort_unstable();
        tags.dedup();
        return tags.into_iter().map(|tag| Range { sql: BY_TAG, words: vec![tag] }).collect();
    }
    let ended = wanted.iter().filter(|state| state.is_terminal()).map(|state| state.as_str());
    let mut ranges: Vec<_> = match &filter.tool {
        Some(tool) => ended.map(|state| Range { sql: BY_TOOL, words: vec![state, tool] }).collect(),
        None => ended.map(|state| Range { sql: BY_STATE, words: vec![state] }).collect(),
    };
    if wanted.iter().any(|state| !state.is_terminal()) {
        ranges.push(Range { sql: LIVE, words: Vec::new() });
    }
    ranges
}

/// Several ranges read as one, the newest place first, each place once.
struct Merge<'s> {
    ranges: Vec<(Rows<'s>, Option<i64>)>,
    last: Option<i64>,
}

impl<'s> Merge<'s> {
    fn begin(
        ranges: &[Range<'_>],
        statements: &'s mut [CachedStatement<'_>],
        scope: &Scope,
        before: i64,
        from: i64,
    ) -> Result<Self, Fault> {
        let mut begun = Vec::with_capacity(ranges.len());
        for (range, statement) in ranges.iter().zip(statements) {
            let mut values: Vec<&dyn ToSql> = Vec::with_capacity(5);
            let scope = scope.as_str();
            values.extend(params![scope, before, from]);
            values.extend(range.words.iter().map(|word| -> &dyn ToSql { word }));
            let mut rows = statement.query(values.as_slice())?;
            let first = next_of(&mut rows)?;
            begun.push((rows, first));
        }
        Ok(Self { ranges: begun, last: None })
    }

    fn next(&mut self) -> Result<Option<i64>, Fault> {
        loop {
            let newest = self.ranges.iter_mut().max_by_key(|(_, next)| *next);
            let Some((rows, next)) = newest else { return Ok(None) };
            let Some(seq) = *next else { return Ok(None) };
            *next = next_of(rows)?;
            if self.last != Some(seq) {
                self.last = Some(seq);
                return Ok(Some(seq));
            }
        }
    }
}

fn next_of(rows: &mut Rows<'_>) -> Result<Option<i64>, Fault> {
    Ok(rows.next()?.map(|row| row.get(0)).transpose()?)
}
