//! From a request to a task.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::idempotency;
use raincheck_core::ids::{LaneId, TaskId, ToolName};
use raincheck_core::lane;
use raincheck_core::ledger::TOMBSTONE;
use raincheck_core::retry;
use raincheck_core::scope::Scope;
use raincheck_core::store::{self, Claim, Filter, Page, Submit, Submitted, Write};
use raincheck_core::task::{Limits, Resources, Task, TaskRecord};
use raincheck_core::text::counted;
use raincheck_core::time::Timestamp;
use raincheck_core::tool::ToolSpec;

use super::{Accepted, AskedBefore, Handle, Request, Submission};
use crate::engine::Engine;
use crate::executor::StartReport;
use crate::kernel::{Kernel, Need, shutting_down};
use crate::toolset::{Call, Route, TaskPlan};

/// How many of the newest tasks are looked at for one whose commit failed.
const NEWEST: u32 = 100;

impl Handle {
    /// Accepts a request, and begins with it at once when its lane has a free place.
    ///
    /// # Errors
    /// `unknown_tool`, `invalid_params` naming the field, `invalid_request` for inputs that cannot be
    /// compared under a key, `idempotency_conflict`, `queue_full`, `storage_unavailable`, or what
    /// the tool set answers. Nothing was executed, unless the error says `unknown`: the store failed
    /// and could not be read afterwards [LEASE-9].
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll loses nothing: the task is accepted, or not, as if
    /// the caller had waited.
    pub async fn submit(&self, request: Request) -> Result<Submission, Error> {
        self.submit_holding(request, ()).await
    }

    /// Submits a request, and drops `turn` as soon as the store has it in its order, or will not get it:
    /// for a caller whose requests are to be accepted one after the other, and committed together.
    ///
    /// # Errors
    /// As of [`submit`](Self::submit).
    ///
    /// # Cancel safety
    /// As of [`submit`](Self::submit).
    pub async fn submit_holding<T: Send + 'static>(
        &self,
        request: Request,
        turn: T,
    ) -> Result<Submission, Error> {
        let kernel = &self.engine.kernel;
        kernel.admit(Need::Work).await?;
        let Some(tool) = self.engine.tools.find_known(request.tool.as_str()).await? else {
            let message = format!("no tool is named `{}`", request.tool);
            return Err(Error::new(Kind::UnknownTool, message));
        };
        let call = Call {
            tool: tool.spec.name.clone(),
            inputs: request.inputs.clone(),
            scope: request.scope.clone(),
            connection: request.connection.clone(),
            id: kernel.ids.task(kernel.clock.now()),
        };
        let plan = match tool.set.route(&call).await? {
            Route::Answer(outcome) => return Ok(Submission::Answer(outcome)),
            Route::Task(plan) => plan,
        };
        // What the set holds of a call that becomes no task is for nobody.
        let set = Arc::clone(&tool.set);
        let before = request.before.clone();
        let mut submit = match prepare(kernel, &tool.spec, request, *plan, call.id) {
            Ok(submit) => submit,
            Err(error) => {
                set.forget(&[call.id]).await;
                return Err(error);
            }
        };
        submit.is_known = before.is_some_and(|before| !is_provable(self, &submit.task, &before));
        if tool.start_report == StartReport::AtFirstWait {
            // Handed over is accepted, however long it takes to its first wait; the lease is kept.
            submit.task.limits.accept = Duration::MAX;
        }
        let watch = submit.is_inline.then(|| self.watch(submit.task.id));
        if let Some(watch) = watch.as_ref().filter(|_| submit.task.key.is_none()) {
            watch.want_early();
        }
        let engine = Arc::clone(&self.engine);
        let accepting = async move {
            let submission = accept(engine, submit, turn).await;
            if !may_be_task(&submission, call.id) {
                set.forget(&[call.id]).await;
            }
            submission
        };
        let mut submission = kernel.drivers.detached(accepting).await?;
        if let Submission::Task(accepted) = &mut submission {
            accepted.watch = watch.filter(|_| !accepted.existing);
        }
        Ok(submission)
    }
}

/// Tells whether a submit may have made a task of the id that was meant for it.
fn may_be_task(submission: &Result<Submission, Error>, id: TaskId) -> bool {
    match submission {
        Ok(Submission::Task(accepted)) => accepted.record.id() == id,
        Ok(Submission::Answer(_)) => false,
        Err(error) => error.guarantee() == Some(Guarantee::Unknown),
    }
}

/// Hands a task to the store and its first attempt, if it was leased one, to a driver.
async fn accept<T: Send>(
    engine: Arc<Engine>,
    submit: Submit,
    turn: T,
) -> Result<Submission, Error> {
    let kernel = &engine.kernel;
    if kernel.phases.is_closing() {
        // Nothing was handed over.
        return Err(shutting_down());
    }
    let (id, lane, scope) = (submit.task.id, submit.task.lane.clone(), submit.task.scope.clone());
    let claim = Claim { lanes: vec![lane.clone()], n: 1 };
    let now = kernel.clock.now();
    let posted = kernel.store.submit(now, vec![submit], Some(claim)).await?;
    drop(turn);
    let Write { value: (mut submitted, claimed), receipt } = posted;
    if let Err(error) = receipt.committed().await {
        // It may have leased another task, which stands in line again.
        kernel.look_again();
        return uncommitted(kernel, &scope, id, now, error).await;
    }
    let mut leased = None;
    for one in claimed {
        let own = (one.record.id() == id).then(|| one.record.clone());
        if engine.drive(one).await {
            leased = leased.or(own);
        }
    }
    match submitted.pop() {
        Some(Submitted::Inserted { record, position, delay }) => {
            kernel.observer.submitted();
            let is_in_line = leased.is_none();
            Ok(accepted(
                leased.unwrap_or(record),
                is_in_line.then_some(position),
                delay.filter(|_| is_in_line),
                false,
            ))
        }
        Some(Submitted::Existing(record)) => {
            // It is there, whether or not the store can say where in line.
            let position = kernel.position(&record).await.unwrap_or_default();
            Ok(accepted(record, position, None, true))
        }
        Some(Submitted::Conflict(first)) => Err(conflict(first)),
        Some(Submitted::Full { depth, retry_after }) => {
            let message = format!("lane `{lane}` is full: {} in it", counted(depth, "task"));
            Err(Error::new(Kind::QueueFull, message).with_retry_after(retry_after))
        }
        Some(Submitted::NoLane) => Err(no_lane(kernel, &lane)),
        Some(Submitted::Unknown) => Err(not_here()),
        None => {
            let error =
                Error::new(Kind::StorageUnavailable, "the store gave no answer to a submit");
            Err(error.with_guarantee(Guarantee::Unknown))
        }
    }
}

const fn accepted(
    record: TaskRecord,
    position: Option<u32>,
    delay: Option<Duration>,
    existing: bool,
) -> Submission {
    Submission::Task(Accepted { record, position, delay, existing, watch: None })
}

/// What is known of a task whose commit failed: a store that can be read shows what it kept, and what
/// is not there will not run [LEASE-9].
async fn uncommitted(
    kernel: &Kernel,
    scope: &Scope,
    id: TaskId,
    now: Timestamp,
    error: store::Error,
) -> Result<Submission, Error> {
    let unknown = || Error::from(error.clone()).with_guarantee(Guarantee::Unknown);
    let newest = kernel.store.list(scope, &Filter::default(), None, NEWEST).await;
    let Page { items, has_more } = newest.map_err(|_| unknown())?;
    let is_whole = !has_more || items.last().is_some_and(|last| last.task.submitted_at < now);
    match items.into_iter().find(|record| record.id() == id) {
        Some(record) => Ok(accepted(record, None, None, false)),
        None if is_whole => Err(error.into()),
        None => Err(unknown()),
    }
}

/// Checks the caller's wishes and makes the part of the task that never changes.
fn prepare(
    kernel: &Kernel,
    spec: &ToolSpec,
    request: Request,
    plan: TaskPlan,
    id: TaskId,
) -> Result<Submit, Error> {
    let TaskPlan { lane, waiting, mut limits, retry, inputs: kept } = plan;
    let lane = request.lane.unwrap_or(lane);
    let config = kernel.lane(&lane).ok_or_else(|| no_lane(kernel, &lane))?;
    let priority = request.priority.unwrap_or(spec.priority);
    if !(-100..=100).contains(&priority) {
        return Err(out_of_range("priority", priority, "must be between -100 and 100"));
    }
    check_resources(&lane, &config, &request.resources)?;
    limits.run_timeout =
        run_timeout(spec, &lane, &config, request.max_runtime, limits.run_timeout)?;
    if let Some(ttl) = request.ttl {
        limits.retention = ttl;
    }
    if let Some(ready) = request.ready {
        limits.ready = ready;
    }
    let inputs_hash = match &request.key {
        Some(_) => idempotency::hash_inputs(&request.inputs).map_err(|error| {
            Error::new(Kind::InvalidRequest, format!("the inputs cannot be compared: {error}"))
        })?,
        None => 0,
    };
    let now = kernel.clock.now();
    let task = Task {
        id,
        scope: request.scope,
        tool: spec.name.clone(),
        lane,
        priority,
        tags: request.tags,
        key: request.key,
        inputs_hash,
        limits,
        resources: request.resources,
        supports_cancel: spec.supports_cancel,
        is_idempotent: spec.is_idempotent,
        retry,
        trace: request.trace,
        submitted_at: now,
    };
    let Request { inputs, is_inline, .. } = request;
    Ok(Submit { task, inputs: kept.unwrap_or(inputs), waiting, is_inline, is_known: false })
}

/// Tells whether a request that was asked of another server before was not accepted there if its task
/// is not found here: the store is the same, and still has the row of every task that it may have become.
fn is_provable(engine: &Handle, task: &Task, before: &AskedBefore) -> bool {
    let of_request = task.key.as_deref().is_some_and(idempotency::is_of_request);
    let kept = if of_request { TOMBSTONE } else { task.limits.retention };
    let is_same = engine.store_name().as_ref() == Some(&before.store);
    is_same && engine.now().since(before.at) < kept
}

/// Refuses a request of which nobody knows whether it was accepted before [LEASE-9].
fn not_here() -> Error {
    let message =
        "the server that had this call ended before it answered, and what it knew is gone";
    Error::new(Kind::WorkerLost, message).with_guarantee(Guarantee::Unknown)
}

/// Finds the task of a request by its key.
pub(super) async fn find_request(
    kernel: &Kernel,
    scope: &Scope,
    tool: ToolName,
    key: Arc<str>,
) -> Result<Option<Accepted>, Error> {
    kernel.admit(Need::Read).await?;
    let now = kernel.clock.now();
    let task = Task {
        id: kernel.ids.task(now),
        scope: scope.clone(),
        tool,
        lane: LaneId::from(""),
        priority: 0,
        tags: Vec::new(),
        key: Some(key),
        inputs_hash: 0,
        limits: Limits::default(),
        resources: Resources::default(),
        supports_cancel: false,
        is_idempotent: false,
        retry: retry::Policy::default(),
        trace: None,
        submitted_at: now,
    };
    let inputs = Json::empty_object();
    let wanted = Submit { task, inputs, waiting: None, is_inline: false, is_known: true };
    let Write { value: (found, _), receipt } = kernel.store.submit(now, vec![wanted], None).await?;
    receipt.committed().await?;
    Ok(match found.into_iter().next() {
        Some(Submitted::Existing(record)) => {
            Some(Accepted { record, position: None, delay: None, existing: true, watch: None })
        }
        Some(
            Submitted::Unknown
            | Submitted::Inserted { .. }
            | Submitted::Conflict(_)
            | Submitted::Full { .. }
            | Submitted::NoLane,
        )
        | None => None,
    })
}

/// Checks the run limit that a caller wishes; the tool's own is kept within the lane's [TIME-3].
fn run_timeout(
    spec: &ToolSpec,
    lane: &LaneId,
    config: &lane::Config,
    wish: Option<Duration>,
    own: Option<Duration>,
) -> Result<Option<Duration>, Error> {
    const FIELD: &str = "resources.max_runtime_s";
    let Some(wish) = wish else {
        return Ok(match (own, config.max_runtime) {
            (Some(own), Some(most)) => Some(own.min(most)),
            (own, most) => own.or(most),
        });
    };
    let shown = wish.as_secs_f64();
    if wish.is_zero() {
        return Err(out_of_range(FIELD, shown, "must be above 0"));
    }
    if let Some(most) = spec.max_run.filter(|most| wish > *most) {
        let rule = format!("tool `{}` allows at most {} s", spec.name, most.as_secs_f64());
        return Err(out_of_range(FIELD, shown, &rule));
    }
    if let Some(most) = config.max_runtime.filter(|most| wish > *most) {
        let rule = format!("lane `{lane}` allows at most {} s", most.as_secs_f64());
        return Err(out_of_range(FIELD, shown, &rule));
    }
    Ok(Some(wish))
}

fn check_resources(lane: &LaneId, config: &lane::Config, wish: &Resources) -> Result<(), Error> {
    let cpu = |milli: u32| f64::from(milli) / 1000.0;
    within(lane, "resources.cpu", wish.cpu_milli.map(cpu), config.cpu_milli.map(cpu))?;
    within(lane, "resources.memory_mb", wish.memory_mb, config.memory_mb)?;
    within(lane, "resources.scratch_mb", wish.scratch_mb, config.scratch_mb)
}

fn within<T: PartialOrd + Display + Copy>(
    lane: &LaneId,
    field: &str,
    wish: Option<T>,
    most: Option<T>,
) -> Result<(), Error> {
    match (wish, most) {
        (Some(wish), Some(most)) if wish > most => {
            Err(out_of_range(field, wish, &format!("lane `{lane}` allows at most {most}")))
        }
        _ => Ok(()),
    }
}

fn out_of_range(field: &str, value: impl Display, rule: &str) -> Error {
    Error::new(Kind::InvalidParams, format!("`{field}` is {value}: {rule}"))
}

fn no_lane(kernel: &Kernel, lane: &LaneId) -> Error {
    let mut message = format!("`resources.resource_class` names no lane: `{lane}`; there are ");
    for (place, known) in kernel.lane_names().iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(message, "{}`{known}`", if place == 0 { "" } else { ", " });
    }
    Error::new(Kind::InvalidParams, message)
}

fn conflict(first: TaskId) -> Error {
    let message = format!("the idempotency key belongs to `{first}`, which has other inputs");
    let error = Error::new(Kind::IdempotencyConflict, message);
    // Surfaces whose callers know tasks by other spellings read it there.
    match Json::of(&BTreeMap::from([("task_id", first.to_string())])) {
        Ok(details) => error.with_details(details),
        Err(_) => error,
    }
}
