//! What can be done with a ledger as values: for model checkers and comparisons, which need to hold,
//! print and change a step before it is taken.

use std::time::Duration;

use crate::ids::{Fence, LaneId, TaskId};
use crate::lane;
use crate::store::{Claim, Heartbeat, HeartbeatReply, Submitted, Update, UpdateResult};
use crate::task::{Task, TaskRecord, WaitReason};
use crate::time::Timestamp;

use super::{Effect, Ledger};

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Command {
    /// Adds a lane, or changes what it may do.
    SetLane(LaneId, lane::Config),
    /// Accepts tasks; the second part is set when what the task needs is not ready.
    Submit(Vec<(Task, Option<WaitReason>)>),
    /// Leases work.
    Claim(Claim),
    /// Applies events.
    Update(Vec<Update>),
    /// Renews leases.
    Heartbeat(Vec<Heartbeat>),
    /// Frees the slots of attempts whose executor is gone.
    Release(Vec<(TaskId, Fence)>),
    /// Holds a lane, or lets it go on.
    Hold(LaneId, Option<WaitReason>),
    /// Fires deadlines that passed.
    Fire {
        /// How many tasks at the most.
        limit: u32,
    },
    /// Moves the limits that count only time in which the engine can run, by time in which it could
    /// not [LEASE-8].
    Extend(Duration),
    /// Ends the retention of tasks before its time.
    Expire(Vec<TaskId>),
    /// Forgets tombstones whose time is over and whose attempt holds no place any more.
    Sweep {
        /// How many at the most.
        limit: u32,
    },
    /// Forgets tombstones whatever their time, but for those whose attempt still holds its place.
    Forget(Vec<TaskId>),
    /// Takes over after a start: attempts that may still run get until `now + reattach` to be heard.
    Reattach(Duration),
}

/// What a command answers.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Nothing.
    Done,
    /// One for each submitted task.
    Submitted(Vec<Submitted>),
    /// The rows that were leased, or that may be reattached.
    Rows(Vec<TaskRecord>),
    /// One for each post.
    UpdateResults(Vec<UpdateResult>),
    /// One for each beat.
    HeartbeatReplies(Vec<HeartbeatReply>),
    /// How many tasks moved.
    Moved(u32),
    /// The tasks that were forgotten.
    Forgotten(Vec<TaskId>),
}

/// What a command did.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The answer.
    pub reply: Reply,
    /// What to keep, in order.
    pub effects: Vec<Effect>,
}

impl Ledger {
    /// Does what a command says.
    pub fn apply(&mut self, now: Timestamp, command: Command) -> Applied {
        let reply = self.run(now, command);
        Applied { reply, effects: std::mem::take(&mut self.effects) }
    }

    fn run(&mut self, now: Timestamp, command: Command) -> Reply {
        match command {
            Command::SetLane(lane, config) => {
                self.set_lane(lane, config);
                Reply::Done
            }
            Command::Submit(batch) => {
                let submit = |(task, waiting)| self.submit(now, task, waiting);
                Reply::Submitted(batch.into_iter().map(submit).collect())
            }
            Command::Claim(claim) => Reply::Rows(self.claim(now, &claim)),
            Command::Update(batch) => Reply::UpdateResults(
                batch.into_iter().map(|update| self.update(now, update)).collect(),
            ),
            Command::Heartbeat(beats) => Reply::HeartbeatReplies(
                beats.iter().map(|beat| self.heartbeat(now, beat)).collect(),
            ),
            Command::Release(slots) => {
                for (task, fence) in slots {
                    self.release(task, fence);
                }
                Reply::Done
            }
            Command::Hold(lane, hold) => Reply::Moved(self.hold(now, &lane, hold)),
            Command::Fire { limit } => Reply::Moved(self.fire(now, limit)),
            Command::Extend(by) => Reply::Moved(self.extend(by)),
            Command::Expire(ids) => Reply::Moved(self.expire(now, &ids)),
            Command::Sweep { limit } => Reply::Forgotten(self.sweep(now, limit)),
            Command::Forget(ids) => Reply::Forgotten(self.forget(ids)),
            Command::Reattach(grace) => Reply::Rows(self.reattach(now, grace)),
        }
    }
}
