//! What must hold in every world of the model, and what must be able to happen.
//!
//! Holds, whatever is lost, doubled, late or crashed: an end is final and there is one of it
//! [STATE-2]; live tasks have a deadline [STATE-5]; old attempts change nothing and fences only grow
//! [LEASE-1]; nothing runs twice unless it may [LEASE-3]; what was cancelled in line never runs
//! [CANCEL-1]; the lane has one attempt at a time [QUEUE-6]; a rebuilt ledger is the same ledger.

use stateright::{Checker as _, Model as _, Property};

use raincheck_core::ledger::Ledger;
use raincheck_core::lifecycle::State;

use crate::model::{Message, Weather, World};
use crate::model_tasks::{N_TASKS, PLAIN, REPEATABLE, STUBBORN};

type Is = fn(&Weather, &World) -> bool;

const ALWAYS: &[(&str, Is)] = &[
    ("no rule is broken", |_, world| world.fault.is_none()),
    ("a rebuilt ledger is the same ledger", |_, world| {
        Ledger::restore(world.ledger.clone()).snapshot() == world.ledger
    }),
    ("a task ends once", |_, world| world.n_ends.iter().all(|n| *n <= 1)),
    ("nothing runs twice unless it may", |_, world| {
        world.n_runs(PLAIN) <= 1 && world.n_runs(STUBBORN) <= 1 && world.n_runs(REPEATABLE) <= 2
    }),
    ("what was cancelled in line never runs", |_, world| {
        (0..N_TASKS).all(|task| !world.was_cancelled_in_line[task] || world.n_runs(task) == 0)
    }),
    ("a task that cannot be cancelled ends as it ends", |_, world| {
        let record = world.row(STUBBORN);
        record.state != State::Cancelled || record.attempt == 0
    }),
];

const SOMETIMES: &[(&str, Is)] = &[
    ("all succeed", |_, world| states(world).iter().all(|state| *state == State::Succeeded)),
    ("a running task is cancelled", |_, world| {
        world.row(PLAIN).state == State::Cancelled && world.n_runs(PLAIN) == 1
    }),
    ("a result wins over a cancel", |_, world| {
        world.row(PLAIN).state == State::Succeeded && world.row(PLAIN).cancel.is_some()
    }),
    ("a lost worker fails its task", |_, world| world.row(STUBBORN).state == State::Failed),
    ("a lost worker's task succeeds at the second attempt", |_, world| {
        world.row(REPEATABLE).state == State::Succeeded && world.row(REPEATABLE).attempt == 2
    }),
    ("a late result is kept", |_, world| world.n_late > 0),
    ("a task survives two crashes", |_, world| {
        world.n_crashes == 2 && world.row(PLAIN).state == State::Succeeded
    }),
    ("two attempts of one task run at once, since the first outlived its lease", |_, world| {
        let is_running = |message: &&Message| matches!(message, Message::Finished(..));
        world.n_runs(REPEATABLE) == 2 && world.wire.iter().filter(is_running).count() == 0
    }),
];

pub(crate) fn properties() -> Vec<Property<Weather>> {
    let always = ALWAYS.iter().map(|(name, is)| Property::always(name, *is));
    always.chain(SOMETIMES.iter().map(|(name, is)| Property::sometimes(name, *is))).collect()
}

fn states(world: &World) -> [State; N_TASKS] {
    [PLAIN, STUBBORN, REPEATABLE].map(|task| world.row(task).state)
}

#[test]
fn no_order_of_losses_repeats_cancels_and_crashes_breaks_the_contract() {
    let weather = Weather { max_crashes: 2, max_lapses: 1 };
    weather.checker().threads(2).spawn_bfs().join().assert_properties();
}
