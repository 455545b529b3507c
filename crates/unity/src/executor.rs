//! Runs calls: waits for their editor, hands each over, and waits for what it says.

mod follow;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::TaskId;
use raincheck_core::lifecycle::State;
use raincheck_core::task::Outcome;
use raincheck_runtime::{Attempt, Executor, StartReport, TaskContext};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use crate::backend::{Ask, Order};
use crate::bridge::Unity;
use crate::desk::choices::Asker;
use crate::desk::editor::Editor;
use crate::desk::run::{Begin, JoinKey, Report, Run};
use crate::desk::stage::Stage;
use crate::lanes;
use crate::order::{self, Wanted};
use crate::specs::millis;
use crate::spelling::Key;
use crate::tools::unknown_command;
use crate::wire::RequestId;

use follow::Following;

/// How long a call that was leased waits for an editor that has just stopped taking calls, before it is
/// given back.
const PATIENCE: Duration = Duration::from_secs(4);

/// The pause before a call is handed over that could not be.
const PAUSE: Duration = Duration::from_millis(10);

/// The pause between two looks whether older calls are still to go first.
const LOOK: Duration = Duration::from_millis(25);

#[async_trait]
impl Executor for Unity {
    async fn execute(&self, attempt: Attempt, context: TaskContext) -> Outcome {
        let wanted = match wanted(&attempt) {
            Ok(wanted) => wanted,
            Err(error) => return Outcome::Failed(error),
        };
        let handing = Handing { bridge: self, attempt: &attempt, wanted, context: &context };
        match handing.hand_over().await {
            Ok((request, seen)) => Following::new(self, context, request, seen).run().await,
            Err(Refused::Outcome(outcome)) => *outcome,
            Err(Refused::GiveBack(why)) => give_back(&context, why).await,
        }
    }

    /// Takes up a call of an earlier server: its editor says whether it has it when it comes back
    /// [LEASE-5, LEASE-6].
    async fn reattach(&self, attempt: Attempt, context: TaskContext) -> Option<Outcome> {
        let wanted = match wanted(&attempt) {
            Ok(wanted) => wanted,
            Err(error) => return Some(Outcome::Failed(error)),
        };
        let task = &attempt.record.task;
        let has_begun =
            attempt.record.started_at.is_some() || attempt.record.state == State::Running;
        let request = request_of(&context);
        let begin = Begin {
            fence: context.fence().raw(),
            tool: wanted.tool.as_str().into(),
            lane: task.lane.clone(),
            editor: None,
            stage: if has_begun { Stage::Accepted } else { Stage::Sent },
            member: request,
            can_cancel: wanted.entry.can_cancel,
            since: self.now(),
            join: None,
            turn: None,
        };
        let (run, seen) = Run::new(begin);
        // Its editor may have come back first.
        self.desk().take_up(request, run);
        Some(Following::new(self, context, request, seen).run().await)
    }

    async fn on_outcome_committed(&self, id: TaskId, number: u32) {
        let acks = self.desk().committed(RequestId { task: id, attempt: number });
        for (key, ack) in acks {
            self.desk().ask(&key, ack);
        }
    }

    fn start_report(&self) -> StartReport {
        StartReport::ByExecutor
    }
}

fn wanted(attempt: &Attempt) -> Result<Wanted, Error> {
    Wanted::of(order::entry(attempt.record.task.tool.as_str())?, &attempt.inputs)
}

pub(crate) fn request_of(context: &TaskContext) -> RequestId {
    RequestId { task: context.id(), attempt: context.attempt_number() }
}

/// Says why an editor was not ready, when that is surely all that happened.
pub(crate) fn not_ready(reason: &str, words: &str) -> Error {
    let details = Json::of(&json!({ "reason": reason })).ok();
    Error { details, ..Error::new(Kind::PeerNotReady, words) }
}

/// Puts a call back in line that was surely not written.
pub(crate) async fn give_back(context: &TaskContext, why: Error) -> Outcome {
    match context.protocol().not_delivered().await {
        Ok(()) => Outcome::Cancelled,
        // It has ended, or the store fails: what is known is that it did not begin.
        Err(_) => Outcome::Failed(why),
    }
}

/// Why a call was not handed over.
enum Refused {
    Outcome(Box<Outcome>),
    /// It can wait in its lane.
    GiveBack(Error),
}

impl From<Outcome> for Refused {
    fn from(outcome: Outcome) -> Self {
        Self::Outcome(Box::new(outcome))
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Outcome::Failed(error).into()
    }
}

/// A call before it is an editor's.
struct Handing<'a> {
    bridge: &'a Unity,
    attempt: &'a Attempt,
    wanted: Wanted,
    context: &'a TaskContext,
}

type Handed = (RequestId, watch::Receiver<Report>);

impl Handing<'_> {
    async fn hand_over(&self) -> Result<Handed, Refused> {
        let stop = self.context.cancellation_token();
        // It left its queue, and waits in another line [STATE-5].
        let due = self.bridge.now() + self.attempt.record.task.limits.queue_timeout;
        loop {
            let key = self.until_ready().await?;
            self.let_older_go_first(due).await?;
            let join = self.wanted.join_key(&key);
            if let Some(handed) = self.join(join.as_ref()) {
                return Ok(handed);
            }
            let turn = match self.turn_of(&key) {
                Some(turn) => tokio::select! {
                    turn = turn.acquire_owned() => turn.ok(),
                    () = stop.cancelled() => return Err(Outcome::Cancelled.into()),
                    () = self.bridge.clock().sleep_until(due) => return Err(no_turn().into()),
                },
                None => None,
            };
            // What it waited for may have been the same call.
            if let Some(handed) = self.post(&key, join, turn)? {
                return Ok(handed);
            }
            // Its editor went away, or has more before it than it is asked at once.
            self.bridge.clock().sleep_until(self.bridge.now() + PAUSE).await;
        }
    }

    /// Waits for calls that were made earlier, while no editor was known: they have a lane of their own, and
    /// are for the same editor if it is the only one [QUEUE-1].
    async fn let_older_go_first(&self, due: Instant) -> Result<(), Refused> {
        let task = &self.attempt.record.task;
        if self.is_in_lane_beside() || task.lane.as_str() == lanes::DEFAULT {
            return Ok(());
        }
        let stop = self.context.cancellation_token();
        while self.bridge.has_older_unplaced(task.id).await {
            if self.bridge.now() >= due {
                return Err(no_turn().into());
            }
            tokio::select! {
                () = stop.cancelled() => return Err(Outcome::Cancelled.into()),
                () = self.bridge.clock().sleep_until(self.bridge.now() + LOOK) => {}
            }
        }
        Ok(())
    }

    /// Whether the call is in a lane beside those of editors, which no absence of one of them holds.
    fn is_in_lane_beside(&self) -> bool {
        [lanes::CONTROL, lanes::JOINED].contains(&self.attempt.record.task.lane.as_str())
    }

    /// Waits until the editor of the call takes calls, and returns it: a moment for a call that can wait in
    /// its lane, and all the time that a call has for any other [QUEUE-5].
    async fn until_ready(&self) -> Result<Key, Refused> {
        let stop = self.context.cancellation_token();
        let is_beside = self.is_in_lane_beside();
        let patience = if is_beside { self.attempt.record.task.limits.ready } else { PATIENCE };
        let patience = self.bridge.now() + patience;
        let mut changes = self.bridge.changes();
        loop {
            changes.borrow_and_update();
            let why = match self.look()? {
                Ok(key) => return Ok(key),
                Err(why) => why,
            };
            tokio::select! {
                // The sender is a part of the bridge.
                _ = changes.changed() => {}
                () = stop.cancelled() => return Err(Outcome::Cancelled.into()),
                () = self.bridge.clock().sleep_until(patience) => {
                    let error = not_ready(why, "the editor does not take calls now");
                    if is_beside {
                        return Err(Error { is_last: true, ..error }.into());
                    }
                    let is_held = self.bridge.desk().hold_of(&self.attempt.record.task.lane).is_some();
                    return Err(if is_held { Refused::GiveBack(error) } else { error.into() });
                }
            }
        }
    }

    /// Finds the editor that the call goes to, or why it cannot go now.
    fn look(&self) -> Result<Result<Key, &'static str>, Error> {
        let task = &self.attempt.record.task;
        let desk = self.bridge.desk();
        let beside = self.is_in_lane_beside();
        let own = desk.editors.iter().find(|(_, editor)| !beside && editor.lane == task.lane);
        let key = match own {
            Some((key, _)) => Some(Arc::clone(key)),
            None if beside || task.lane.as_str() == lanes::DEFAULT => {
                let connection = desk.choices.connection_of(task.id);
                desk.target(Asker { scope: &task.scope, connection })?
            }
            None => None,
        };
        let Some((key, editor)) = key.and_then(|key| Some((key.clone(), desk.editors.get(&key)?)))
        else {
            return Ok(Err("disconnected"));
        };
        if self.wanted.is_call
            && editor.reports_calls
            && !editor.commands.contains_key(&self.wanted.tool)
        {
            return Err(unknown_command(&self.wanted.tool));
        }
        let hold = if self.is_beside(editor) { editor.away() } else { editor.hold() };
        Ok(match hold {
            None => Ok(key),
            Some(hold) => Err(match hold.as_str() {
                "compiling" => "compiling",
                "reloading" => "reloading",
                "busy" => "busy",
                _ => "disconnected",
            }),
        })
    }

    /// Whether the editor takes the call beside its main thread. One that takes one call at a time does not.
    fn is_beside(&self, editor: &Editor) -> bool {
        let is_control = self.attempt.record.task.lane.as_str() == lanes::CONTROL
            || self.wanted.entry.is_control;
        is_control && editor.reports_calls
    }

    fn turn_of(&self, key: &Key) -> Option<Arc<tokio::sync::Semaphore>> {
        let desk = self.bridge.desk();
        desk.editors.get(key).filter(|it| !self.is_beside(it)).map(|it| Arc::clone(&it.turn))
    }

    /// Joins a call that runs and asks for the same.
    fn join(&self, join: Option<&JoinKey>) -> Option<Handed> {
        if self.attempt.record.task.lane.as_str() != lanes::JOINED {
            return None;
        }
        let mut desk = self.bridge.desk();
        let request = desk.joinable(join?)?;
        let seen = desk.join(request, request_of(self.context))?;
        Some((request, seen))
    }

    /// Lays the call on the desk and asks the connection to write it; `None` when the editor went away
    /// meanwhile.
    fn post(
        &self,
        key: &Key,
        join: Option<JoinKey>,
        turn: Option<OwnedSemaphorePermit>,
    ) -> Result<Option<Handed>, Refused> {
        if self.context.stop_reason().is_some() {
            return Err(Outcome::Cancelled.into());
        }
        if let Some(handed) = self.join(join.as_ref()) {
            return Ok(Some(handed));
        }
        let (request, task) = (request_of(self.context), &self.attempt.record.task);
        let mut desk = self.bridge.desk();
        let Some(editor) = desk.editors.get(key) else { return Ok(None) };
        let hold = if self.is_beside(editor) { editor.away() } else { editor.hold() };
        let Some(link) = editor.link.as_ref().filter(|_| hold.is_none()) else { return Ok(None) };
        let command = editor.commands.get(&self.wanted.tool);
        let limit = task.limits.run_timeout.unwrap_or(self.bridge.settings().max_job_timeout);
        let order = Order {
            request,
            fence: self.context.fence().raw(),
            key: task.key.clone(),
            tool: self.wanted.tool.clone(),
            params: self.wanted.params.clone(),
            timeout_ms: millis(limit),
            submitted_at: task.submitted_at,
            is_job: command.is_some_and(|it| it.is_job),
        };
        let known = command.and_then(|it| it.can_cancel);
        let begin = Begin {
            fence: order.fence,
            tool: order.tool.as_str().into(),
            lane: task.lane.clone(),
            editor: Some(Arc::clone(key)),
            stage: Stage::Posted,
            member: request,
            can_cancel: task.supports_cancel && known.unwrap_or(editor.reports_calls),
            since: self.bridge.now(),
            join: join.map(|join| (join, task.submitted_at)),
            turn,
        };
        if link.asks.try_send(Ask::Execute(Box::new(order))).is_err() {
            return Ok(None);
        }
        let (run, seen) = Run::new(begin);
        desk.runs.insert(request, run);
        Ok(Some((request, seen)))
    }
}

/// The words of a call that did not get an editor's main thread: surely it was not written.
fn no_turn() -> Error {
    let words = "another call had the editor's main thread until its time in the queue was over";
    Error::new(Kind::QueueTimeout, words)
}

/// The words of a call whose editor is lost.
pub(crate) fn lost(words: impl Into<Arc<str>>) -> Error {
    Error::new(Kind::PeerLost, words)
        .with_hint("look at the project in the editor before you call it again")
}
