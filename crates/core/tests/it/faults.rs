//! Faults planted into a ledger; the comparison must catch every one of them.

use raincheck_core::decide::Change;
use raincheck_core::ids::{Fence, TaskId};
use raincheck_core::lane;
use raincheck_core::ledger::{Applied, Command, Effect, Ledger, Reply};
use raincheck_core::time::Timestamp;

use crate::ledger::explore;
use crate::machine::{Disk, Machine};

/// How many cases a fault may survive.
const CASES: u32 = 300;

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident: $test:ident, $apply:expr;)+) => {
        $(
            $(#[$doc])*
            struct $name(Ledger);

            impl Machine for $name {
                fn new(ledger: Ledger) -> Self {
                    Self(ledger)
                }

                fn ledger(&self) -> &Ledger {
                    &self.0
                }

                fn apply(&mut self, now: Timestamp, command: Command) -> Applied {
                    let apply: fn(&mut Ledger, Timestamp, Command) -> Applied = $apply;
                    apply(&mut self.0, now, command)
                }
            }

            #[test]
            fn $test() {
                let difference = explore::<$name>(CASES);
                assert!(difference.is_err(), "nobody noticed {}", stringify!($name));
            }
        )+
    };
}

fn edit_posts(command: Command, edit: fn(&mut raincheck_core::store::Update)) -> Command {
    match command {
        Command::Update(mut posts) => {
            posts.iter_mut().for_each(edit);
            Command::Update(posts)
        }
        other => other,
    }
}

const fn nothing() -> Applied {
    Applied { reply: Reply::Done, effects: Vec::new() }
}

faults! {
    /// Does the work but loses the last record on the way to the disk.
    DropsAck: a_lost_record_is_noticed, |ledger, now, command| {
        let mut applied = ledger.apply(now, command);
        applied.effects.pop();
        applied
    };
    /// Takes the word of any attempt for the current one's.
    IgnoresFence: an_ignored_fence_is_noticed, |ledger, now, command| {
        ledger.apply(now, edit_posts(command, |update| update.fence = None))
    };
    /// Hands effects over in another order than it made them.
    ReordersRecords: reordered_records_are_noticed, |ledger, now, command| {
        let mut applied = ledger.apply(now, command);
        applied.effects.reverse();
        applied
    };
    /// Writes every record twice.
    DuplicatesRecords: doubled_records_are_noticed, |ledger, now, command| {
        let mut applied = ledger.apply(now, command);
        applied.effects = applied.effects.iter().flat_map(|r| [r.clone(), r.clone()]).collect();
        applied
    };
    /// Forgets idempotency keys.
    ForgetsKeys: forgotten_keys_are_noticed, |ledger, now, command| match command {
        Command::Submit(mut batch) => {
            batch.iter_mut().for_each(|(task, _)| task.key = None);
            ledger.apply(now, Command::Submit(batch))
        }
        other => ledger.apply(now, other),
    };
    /// Treats every task as equally important.
    IgnoresPriority: ignored_priorities_are_noticed, |ledger, now, command| match command {
        Command::Submit(mut batch) => {
            batch.iter_mut().for_each(|(task, _)| task.priority = 0);
            ledger.apply(now, Command::Submit(batch))
        }
        other => ledger.apply(now, other),
    };
    /// Runs one more at once than the lane allows.
    OverfillsLane: an_overfull_lane_is_noticed, |ledger, now, command| {
        if matches!(command, Command::Claim(_)) {
            for view in ledger.lanes() {
                let config = lane::Config::new(3, view.config.queue_limit);
                ledger.apply(now, Command::SetLane(view.lane, config));
            }
        }
        ledger.apply(now, command)
    };
    /// Frees a slot at the end of the task instead of the end of its executor.
    FreesSlotWithState: a_slot_freed_too_early_is_noticed, |ledger, now, command| {
        ledger.apply(now, edit_posts(command, |update| update.releases = true))
    };
    /// Never frees a slot.
    KeepsSlot: a_slot_that_is_never_freed_is_noticed, |ledger, now, command| match command {
        Command::Release(_) => nothing(),
        other => ledger.apply(now, edit_posts(other, |update| update.releases = false)),
    };
    /// Answers a cancel and does nothing.
    LosesCancel: a_lost_cancel_is_noticed, |ledger, now, command| {
        ledger.apply(now, edit_posts(command, |update| {
            if matches!(update.change, Change::RequestCancel { .. }) {
                update.id = TaskId::from_parts(0, [9; 10]);
            }
        }))
    };
    /// Never looks at the clock.
    StopsClock: deadlines_that_never_fire_are_noticed, |ledger, now, command| match command {
        Command::Fire { .. } => Applied { reply: Reply::Moved(0), effects: Vec::new() },
        other => ledger.apply(now, other),
    };
    /// Takes no heartbeat.
    DropsHeartbeats: dropped_heartbeats_are_noticed, |ledger, now, command| match command {
        Command::Heartbeat(mut beats) => {
            beats.iter_mut().for_each(|beat| beat.fence = Fence::NONE);
            ledger.apply(now, Command::Heartbeat(beats))
        }
        other => ledger.apply(now, other),
    };
    /// Lets a held lane go on.
    IgnoresHold: an_ignored_hold_is_noticed, |ledger, now, command| match command {
        Command::Hold(lane, _) => ledger.apply(now, Command::Hold(lane, None)),
        other => ledger.apply(now, other),
    };
}

/// Issues fences again after a restart.
struct ReissuesFence(Ledger);

impl Machine for ReissuesFence {
    fn new(ledger: Ledger) -> Self {
        Self(ledger)
    }

    fn ledger(&self) -> &Ledger {
        &self.0
    }

    fn apply(&mut self, now: Timestamp, command: Command) -> Applied {
        self.0.apply(now, command)
    }

    fn restarted(disk: &Disk) -> Self {
        Self(Ledger::restore(disk.snapshot()))
    }
}

#[test]
fn a_fence_that_is_issued_again_is_noticed() {
    // [LEASE-1]
    assert!(explore::<ReissuesFence>(CASES).is_err(), "nobody noticed ReissuesFence");
}

/// Keeps no record of a cancel.
struct ForgetsCancel(Ledger);

impl Machine for ForgetsCancel {
    fn new(ledger: Ledger) -> Self {
        Self(ledger)
    }

    fn ledger(&self) -> &Ledger {
        &self.0
    }

    fn apply(&mut self, now: Timestamp, command: Command) -> Applied {
        let mut applied = self.0.apply(now, command);
        let is_cancel = |effect: &Effect| matches!(effect, Effect::Moved { record, .. } if record.cancel.is_some());
        applied.effects.retain(|record| !is_cancel(record));
        applied
    }
}

#[test]
fn an_acknowledged_cancel_that_is_not_kept_is_noticed() {
    // [DUR-2]
    assert!(explore::<ForgetsCancel>(CASES).is_err(), "nobody noticed ForgetsCancel");
}
