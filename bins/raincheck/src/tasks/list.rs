//! `raincheck tasks list`.

use std::io::IsTerminal as _;

use raincheck::core::lifecycle::State;
use raincheck::core::store::Filter;
use raincheck::core::task::TaskRecord;
use raincheck::mcp::Listing;
use raincheck_app::terminal::Palette;
use raincheck_app::{Failure, cli};

use super::Listed;
use super::place::{Place, unreadable};
use super::words::{self, Cell, Table};

pub(super) fn run(place: &Place, listed: &Listed) -> Result<(), Failure> {
    let filter = Filter {
        states: states(&listed.states)?,
        tool: listed.tool.as_deref().map(Into::into),
        tags_any: listed.tags.iter().map(|tag| tag.as_str().into()).collect(),
        submitted_after: None,
    };
    let page = place
        .reader
        .list(&place.scope, &filter, None, listed.limit)
        .map_err(|error| unreadable(&error))?;
    if listed.json {
        return words::json(&Listing::of(&page.items, |record| place.unrecorded_end(record)));
    }
    if page.items.is_empty() {
        return cli::print("no task\n");
    }
    let (palette, has_bars) = (Palette::detect(), std::io::stdout().is_terminal());
    let mut table = Table::new(&["TASK", "STATE", "TOOL", "AGE", "RAN", "DETAIL"]);
    for record in &page.items {
        table.row(cells(place, record, has_bars)?);
    }
    let mut text = table.text(palette);
    if page.has_more {
        text.push_str(&format!("more than {}: see all with --limit N\n", listed.limit));
    }
    cli::print(&text)
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
