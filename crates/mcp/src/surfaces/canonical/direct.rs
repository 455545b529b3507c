//! A tool of the engine, called by its name.

use serde::Serialize;

use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{Spelling, TaskId};
use raincheck_core::task::{Outcome, TaskRecord};
use raincheck_runtime::{Request, View};

use super::{TOOL, handle, words};
use crate::answer::{Answer, Failure, Refused, shown};
use crate::call::{Told, cancelled, run};
use crate::caller::Caller;
use crate::surface::{Call, Desk};
use crate::wire::read_strictly;

/// Runs the tool within the budget of the call [CALL-1].
pub(super) async fn call(desk: &Desk, call: Call, who: &mut Caller) -> Result<Told, Error> {
    let Call { tool, arguments } = call;
    let Some(spec) = desk.engine().spec(&tool) else {
        return Err(Error::new(Kind::UnknownTool, format!("no tool is named `{tool}`")));
    };
    let value = read_strictly(&arguments, "the arguments")?;
    desk.check(&spec, &value)?;
    drop(value);
    let wait = who.wait(spec.wait);
    let request = Request::new(spec.name.clone(), arguments, who.scope().clone());
    run(desk.engine(), request, wait, spec.on_disconnect, who).await
}

/// Answers with the result of an ended task, or with the id of a live one.
pub(super) fn write(desk: &Desk, told: Told, who: &Caller) -> Answer {
    match told {
        Told::Result(contents) => Answer::result(&contents),
        Told::Memory(outcome) => ended(desk, None, &outcome),
        Told::Live(view) => {
            desk.fence(|mark| handle::answer(&view, who, desk.engine().now(), mark))
        }
        Told::Ended(view) => of_view(desk, &view),
        Told::Said(answer) => answer,
    }
}

/// Answers a call that came to nothing; what others said about it stands inside of the mark.
pub(super) fn refuse(desk: &Desk, refused: &Refused) -> Answer {
    if refused.error.quoted.is_none() {
        return Answer::refused(refused);
    }
    let error = shown(&refused.error);
    desk.fence(|mark| {
        Answer::failure(Failure::of_tool(&error, mark, TOOL).told(refused.guarantee()))
    })
}

fn of_view(desk: &Desk, view: &View) -> Answer {
    let outcome = view.payload.as_ref().and_then(|payload| payload.outcome.as_ref());
    match outcome {
        Some(outcome) => {
            ended(desk, Some(&view.record), outcome).of_task(&view.record, Spelling::Task)
        }
        None => {
            Answer::error(&Error::new(Kind::Expired, "the task ended and is already forgotten"))
        }
    }
}

/// Answers with how a task ended; there is no record where a tool answered without a task.
fn ended(desk: &Desk, record: Option<&TaskRecord>, outcome: &Outcome) -> Answer {
    /// A call that ended without a result.
    #[derive(Serialize)]
    struct Failed<'a> {
        status: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        task_id: Option<TaskId>,
        error: Failure<'a>,
    }

    let (word, shown) = match outcome {
        Outcome::Succeeded(contents) => return Answer::result(contents),
        Outcome::Failed(error) => ("failed", shown(error)),
        Outcome::Cancelled => ("cancelled", cancelled(record)),
    };
    let status = record.map_or(word, |record| words::word(record.state));
    desk.fence(|mark| {
        let error = Failure::of_task(&shown, mark, TOOL);
        Answer::json(&Failed { status, task_id: record.map(TaskRecord::id), error }).into_failure()
    })
}
