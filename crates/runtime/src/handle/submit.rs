//! From a request to a task.

use std::fmt::{Display, Write as _};
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::error::{Error, Kind};
use raincheck_core::idempotency;
use raincheck_core::ids::{LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::store::{Claim, Submit, Submitted, Write};
use raincheck_core::task::{Resources, Task};
use raincheck_core::tool::ToolSpec;

use super::{Accepted, Handle, Request, Submission};
use crate::engine::Shared;
use crate::executor::StartReport;
use crate::toolset::{Call, Route, TaskPlan};

impl Handle {
    /// Accepts a request, and begins with it at once when its lane has a free place.
    ///
    /// # Errors
    /// `unknown_tool`, `invalid_params` naming the field, `invalid_request` for inputs that cannot be
    /// compared under a key, `idempotency_conflict`, `queue_full`, `storage_unavailable`, or what
    /// the tool set answers. Nothing was executed.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll loses nothing: the task is accepted, or not, as if
    /// the caller had waited.
    pub async fn submit(&self, request: Request) -> Result<Submission, Error> {
        self.shared.ready().await?;
        let Some(tool) = self.shared.tools.find(request.tool.as_str()) else {
            let message = format!("no tool is named `{}`", request.tool);
            return Err(Error::new(Kind::UnknownTool, message));
        };
        let call = Call {
            tool: tool.spec.name.clone(),
            inputs: request.inputs.clone(),
            scope: request.scope.clone(),
        };
        let placement = match tool.set.route(&call).await? {
            Route::Answer(outcome) => return Ok(Submission::Answer(outcome)),
            Route::Task(placement) => placement,
        };
        let mut submit = prepare(&self.shared, &tool.spec, request, *placement)?;
        if tool.start_report == StartReport::AtFirstWait {
            // Handed over is accepted, however long it takes to its first wait; the lease is kept.
            submit.task.limits.accept = Duration::MAX;
        }
        let watch = submit.is_inline.then(|| self.watch(submit.task.id));
        if let Some(watch) = watch.as_ref().filter(|_| submit.task.key.is_none()) {
            watch.want_early();
        }
        let shared = Arc::clone(&self.shared);
        let mut submission = self.shared.detached(accept(shared, submit)).await?;
        if let Submission::Task(accepted) = &mut submission {
            accepted.watch = watch.filter(|_| !accepted.existing);
        }
        Ok(submission)
    }
}

/// Hands a task to the store and its first attempt, if it was leased one, to a driver.
async fn accept(shared: Arc<Shared>, submit: Submit) -> Result<Submission, Error> {
    let (id, lane) = (submit.task.id, submit.task.lane.clone());
    let claim = Claim { lanes: vec![lane.clone()], n: 1 };
    let now = shared.clock.now();
    let posted = shared.store.submit(now, vec![submit], Some(claim)).await?;
    let Write { value: (mut submitted, claimed), receipt } = posted;
    if let Err(error) = receipt.committed().await {
        // It may have leased another task, which stands in line again.
        shared.look_again();
        return Err(error.into());
    }
    let leased =
        claimed.iter().find(|leased| leased.record.id() == id).map(|own| own.record.clone());
    for leased in claimed {
        Shared::drive(&shared, leased);
    }
    match submitted.pop() {
        Some(Submitted::Inserted { record, position, delay }) => {
            shared.observer.submitted();
            let is_in_line = leased.is_none();
            Ok(Submission::Task(Accepted {
                record: leased.unwrap_or(record),
                position: is_in_line.then_some(position),
                delay: delay.filter(|_| is_in_line),
                existing: false,
                watch: None,
            }))
        }
        Some(Submitted::Existing(record)) => {
            let position = shared.position(&record).await?;
            Ok(Submission::Task(Accepted {
                record,
                position,
                delay: None,
                existing: true,
                watch: None,
            }))
        }
        Some(Submitted::Conflict(first)) => Err(conflict(first)),
        Some(Submitted::Full { depth, retry_after }) => {
            let message = format!("lane `{lane}` is full: {depth} tasks stand in it");
            Err(Error::new(Kind::QueueFull, message).with_retry_after(retry_after))
        }
        Some(Submitted::NoLane) => Err(no_lane(&shared, &lane)),
        None => Err(Error::new(Kind::StorageUnavailable, "the store gave no answer to a submit")),
    }
}

/// Checks the caller's wishes and makes the part of the task that never changes.
fn prepare(
    shared: &Shared,
    spec: &ToolSpec,
    request: Request,
    placement: TaskPlan,
) -> Result<Submit, Error> {
    let TaskPlan { lane, waiting, mut limits, retry } = placement;
    let lane = request.lane.unwrap_or(lane);
    let config = shared.lane(&lane).ok_or_else(|| no_lane(shared, &lane))?;
    if !(-100..=100).contains(&request.priority) {
        return Err(out_of_range("priority", request.priority, "must be between -100 and 100"));
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
    let now = shared.clock.now();
    let task = Task {
        id: shared.ids.task(now),
        scope: request.scope,
        tool: spec.name.clone(),
        lane,
        priority: request.priority,
        tags: request.tags,
        key: request.key,
        inputs_hash,
        limits,
        resources: request.resources,
        supports_cancel: spec.supports_cancel,
        is_idempotent: spec.is_idempotent,
        retry,
        submitted_at: now,
    };
    Ok(Submit { task, inputs: request.inputs, waiting, is_inline: request.is_inline })
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

fn no_lane(shared: &Shared, lane: &LaneId) -> Error {
    let mut message = format!("`resources.resource_class` names no lane: `{lane}`; there are ");
    for (place, known) in shared.lane_names().iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(message, "{}`{known}`", if place == 0 { "" } else { ", " });
    }
    Error::new(Kind::InvalidParams, message)
}

fn conflict(first: TaskId) -> Error {
    let message = format!("the idempotency key belongs to `{first}`, which has other inputs");
    Error::new(Kind::IdempotencyConflict, message)
}
