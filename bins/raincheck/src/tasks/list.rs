//! `raincheck tasks list`.

use std::cmp::Reverse;
use std::io::IsTerminal as _;
use std::slice;

use raincheck::core::lifecycle::State;
use raincheck::core::store::Filter;
use raincheck::core::task::TaskRecord;
use raincheck::mcp::Listing;
use raincheck_app::terminal::Palette;
use raincheck_app::{Failure, cli};
use serde_json::{Value, json};

use super::Listed;
use super::place::{Place, unreadable};
use super::words::{self, Cell, Table};

pub(super) fn run(places: &[Place], listed: &Listed) -> Result<(), Failure> {
    let filter = Filter {
        states: states(&listed.states)?,
        tool: listed.tool.as_deref().map(Into::into),
        tags_any: listed.tags.iter().map(|tag| tag.as_str().into()).collect(),
        submitted_after: None,
    };
    let (mut rows, mut has_more) = (Vec::new(), false);
    for place in places {
        let page = place
            .reader
            .list(&place.scope, &filter, None, listed.limit)
            .map_err(|error| unreadable(&error))?;
        has_more |= page.has_more;
        rows.extend(page.items.into_iter().map(|record| (place, record)));
    }
    let most = usize::try_from(listed.limit).unwrap_or(usize::MAX);
    // Newest first, as each store lists its own.
    rows.sort_by_key(|(_, record)| Reverse((record.task.submitted_at, record.id())));
    has_more |= rows.len() > most;
    rows.truncate(most);
    // Where there is no choice, nothing is said of it.
    let is_of_several = places.len() > 1;
    if listed.json {
        return words::json(&json(&rows, is_of_several)?);
    }
    if rows.is_empty() {
        return cli::print("no task\n");
    }
    let (palette, has_bars) = (Palette::detect(), std::io::stdout().is_terminal());
    let server = is_of_several.then_some("SERVER");
    let headings = ["TASK", "STATE", "TOOL", "AGE", "RAN"].into_iter().chain(server);
    let mut table = Table::new(&headings.chain(["DETAIL"]).collect::<Vec<_>>());
    for (place, record) in &rows {
        let mut cells = cells(place, record, has_bars)?;
        if is_of_several {
            cells.insert(cells.len() - 1, Cell::plain(words::safe(&place.server)));
        }
        table.row(cells);
    }
    let mut text = table.text(palette);
    if has_more {
        text.push_str(&format!("more than {}: see all with --limit N\n", listed.limit));
    }
    cli::print(&text)
}

/// Shows rows as `list_tasks` does, with the server of each where there are several.
fn json(rows: &[(&Place, TaskRecord)], is_of_several: bool) -> Result<Value, Failure> {
    let shown = rows.iter().map(|(place, record)| {
        let listing = Listing::of(slice::from_ref(record), |record| place.unrecorded_end(record));
        let mut shown = serde_json::to_value(&listing)?;
        let mut task = shown.pointer_mut("/tasks/0").map(Value::take).unwrap_or_default();
        if let Some(task) = task.as_object_mut().filter(|_| is_of_several) {
            task.insert("server".to_owned(), place.server.as_str().into());
        }
        Ok(task)
    });
    let tasks: Result<Vec<Value>, serde_json::Error> = shown.collect();
    let tasks = tasks.map_err(|error| {
        Failure::failed(format!("a task cannot be shown: {error}"), "run: raincheck doctor")
    })?;
    Ok(json!({ "tasks": tasks }))
}

fn cells(place: &Place, record: &TaskRecord, has_bars: bool) -> Result<Vec<Cell>, Failure> {
    let progress = if record.state.is_terminal() {
        None
    } else {
        place.reader.progress(record).map_err(|error| unreadable(&error))?
    };
    let detail = match (&progress, record.failure, &record.waiting) {
        (Some(progress), _, _) => words::progress(progress, has_bars),
        (None, Some(kind), _) => kind.to_string(),
        (None, None, Some(reason)) => reason.as_str().to_owned(),
        (None, None, None) => String::new(),
    };
    let unrecorded = place.unrecorded_end(record);
    let detail = match unrecorded {
        Some(_) => "ended, for the next server to record".to_owned(),
        None => detail,
    };
    let ran = record.started_at.map(|from| {
        let until = record.ended_at.or(unrecorded).unwrap_or(place.now);
        words::span(until.since(from))
    });
    Ok(vec![
        Cell::plain(record.id().to_string()),
        Cell::of_state(record.state),
        Cell::plain(words::safe(record.task.tool.as_str())),
        Cell::plain(words::span(place.now.since(record.task.submitted_at))),
        Cell::plain(ran.unwrap_or_default()),
        Cell::plain(detail),
    ])
}

/// Reads states as `list_tasks` does: `queued` is everything that has not begun.
fn states(told: &[String]) -> Result<Vec<State>, Failure> {
    let mut states = Vec::new();
    for word in told {
        let Some(state) = State::from_word(word) else {
            let known: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
            let message = format!("`{}` is no state", words::safe(word));
            return Err(Failure::usage(message, format!("use one of: {}", known.join(", "))));
        };
        states.push(state);
        if state == State::Queued {
            states.push(State::Waiting);
        }
    }
    Ok(states)
}
