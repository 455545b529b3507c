//! `raincheck tasks cancel`.

use std::sync::Arc;
use std::time::Duration;

use raincheck::core::decide::Change;
use raincheck::core::ids::TaskId;
use raincheck::core::store::{NoSink, TaskStore as _, Update, UpdateResult};
use raincheck::core::task::TaskRecord;
use raincheck::core::text::{clip, escape_lines};
use raincheck_app::{Failure, cli};
use raincheck_store_sqlite::{Options, SqliteStore};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::owner::Owner;
use super::place::{Place, unreadable};
use super::words;

/// How long attempts that may still run have to be heard of by the next server.
const REATTACH: Duration = Duration::from_secs(45);

/// The longest reason that is kept, in bytes.
const MAX_REASON: usize = 1000;

/// What became of the request, as `cancel_task` answers it.
#[derive(Debug, Serialize)]
struct Cancelled {
    task_id: TaskId,
    state: String,
    acknowledged: bool,
}

pub(super) async fn run(
    place: &Place,
    id: TaskId,
    reason: Option<Arc<str>>,
    is_json: bool,
) -> Result<(), Failure> {
    // Nobody is asked for what is not there, or has ended.
    let view = place.view(id)?;
    let (cancelled, has_server) = match Owner::reach(place).await {
        _ if view.record.state.is_terminal() => (ended(&view.record), true),
        Some(mut owner) => (ask(&mut owner, id, reason.as_deref()).await?, true),
        None => (record(place, id, reason).await?, false),
    };
    if is_json {
        return words::json(&cancelled);
    }
    let task = &view.record.task;
    let stubborn = (!task.supports_cancel).then(|| words::safe(task.tool.as_str()));
    cli::print(&said(&cancelled, stubborn.as_deref(), has_server))
}

/// Says what became of the request; `stubborn` is the name of a tool that cannot be cancelled.
fn said(cancelled: &Cancelled, stubborn: Option<&str>, has_server: bool) -> String {
    let Cancelled { task_id: id, state, acknowledged } = cancelled;
    let state = words::safe(state);
    match (acknowledged, state.as_str(), stubborn) {
        (false, state, _) => format!("{id} had ended before: {state}\n"),
        (true, "cancelled", _) => format!("{id} is cancelled\n"),
        (true, _, Some(tool)) => format!(
            "{id} runs on: its tool `{tool}` cannot be cancelled; that it was asked is on record\n"
        ),
        (true, _, None) if has_server => {
            format!("{id} is asked to end; see how it ends: raincheck tasks logs --follow {id}\n")
        }
        (true, _, None) => format!(
            "{id} is asked to end, but no server runs: the next one that starts ends its program\n"
        ),
    }
}

fn ended(record: &TaskRecord) -> Cancelled {
    Cancelled { task_id: record.id(), state: record.state.as_str().to_owned(), acknowledged: false }
}

/// Asks the server that owns the store.
async fn ask(owner: &mut Owner, id: TaskId, reason: Option<&str>) -> Result<Cancelled, Failure> {
    /// The part of the answer that matters.
    #[derive(Deserialize)]
    struct Answer {
        state: String,
        acknowledged: bool,
    }

    let arguments = json!({"task_id": id, "reason": reason});
    let Answer { state, acknowledged } = owner.call("cancel_task", arguments).await?;
    Ok(Cancelled { task_id: id, state, acknowledged })
}

/// Owns the store for a moment and records the request: a task in line ends at once, one whose
/// program runs on without a server is ended by the next server [DUR-4].
async fn record(place: &Place, id: TaskId, reason: Option<Arc<str>>) -> Result<Cancelled, Failure> {
    let store = SqliteStore::new(Options::full(&place.path));
    let opened = store.open(place.now, place.lanes.clone(), REATTACH, Arc::new(NoSink)).await;
    opened.map_err(|error| {
        let next = "end the task from that server's client, with its tool cancel_task";
        Failure::failed(format!("no server can be called, and {}", error.message), next)
    })?;
    let reason = reason.map(|words| escape_lines(clip(&words, MAX_REASON)).into());
    let update = Update {
        id,
        scope: Some(place.scope.clone()),
        fence: None,
        change: Change::RequestCancel { reason },
        report: None,
        releases: false,
        ended_at: None,
    };
    let posted = store.update(place.now, vec![update], None).await;
    let posted = posted.map_err(|error| unreadable(&error))?;
    posted.receipt.committed().await.map_err(|error| unreadable(&error))?;
    match posted.value.0.into_iter().next() {
        Some(UpdateResult::Moved(record) | UpdateResult::Same(record)) => {
            Ok(Cancelled { acknowledged: true, ..ended(&record) })
        }
        Some(UpdateResult::Late(record) | UpdateResult::Refused(record, _)) => Ok(ended(&record)),
        Some(UpdateResult::Absent) | None => Err(place.unknown(id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_cannot_be_cancelled_is_not_said_to_end() {
        let cancelled = |state: &str, acknowledged| Cancelled {
            task_id: TaskId::from_parts(1, [1; 10]),
            state: state.to_owned(),
            acknowledged,
        };
        let asked = cancelled("cancel_requested", true);
        for has_server in [true, false] {
            let told = said(&asked, Some("bake"), has_server);
            assert!(told.contains("runs on: its tool `bake` cannot be cancelled"), "{told}");
            assert!(said(&asked, None, has_server).contains("is asked to end"));
        }
        // One that never began is cancelled, whatever its tool can do.
        assert!(
            said(&cancelled("cancelled", true), Some("bake"), true).ends_with("is cancelled\n")
        );
        assert!(said(&cancelled("failed", false), Some("bake"), true).contains("ended before"));
    }
}
