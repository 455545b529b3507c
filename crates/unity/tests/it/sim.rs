//! Simulated worlds: a bridge and an editor on a network that breaks, while the editor reloads and the server
//! is killed and started again. Everything follows from a seed.

mod editor;
mod judge;

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use raincheck_core::ids::TaskId;
use raincheck_core::lifecycle::State;
use raincheck_testkit::dice::Dice;
use raincheck_unity::Settings;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use crate::world::{Kept, SECOND, World, settings};
use editor::{Act, Life};
use judge::Call;

/// How many worlds an ordinary run looks at; `RAINCHECK_SEEDS` asks for another number.
const SEEDS: u64 = 200;

const N_CALLS: u64 = 12;

/// From here on nothing breaks any more.
const HEALED: Duration = Duration::from_secs(12);

/// Until then every call has ended.
const OVER: Duration = Duration::from_secs(240);

/// What is done wrong, to see whether it is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The editor runs what it has once more.
    RunsTwice,
    /// The editor does not say what it runs when it comes back.
    ForgetsWhatItRuns,
    /// The editor loses its results with its connection.
    LosesItsOutbox,
    /// No deadline fires.
    DeadlinesSleep,
}

/// Every fault, and what has to be said of it.
const FAULTS: &[(Fault, &str)] = &[
    (Fault::RunsTwice, "ran 2 times"),
    (Fault::ForgetsWhatItRuns, "ran 2 times"),
    (Fault::LosesItsOutbox, "is lost"),
    (Fault::DeadlinesSleep, "did not end"),
];

/// What happens at an instant.
#[derive(Clone, Copy, Debug)]
enum Event {
    Submit(u64),
    Cancel(u64),
    Editor(Act),
    KillServer,
}

fn limits() -> Settings {
    Settings {
        reconnect_grace: 6 * SECOND,
        reconnect_grace_compiling: 9 * SECOND,
        ready: 10 * SECOND,
        sync_timeout: 20 * SECOND,
        job_timeout: 20 * SECOND,
        ..settings()
    }
}

fn plan(dice: &mut Dice) -> Vec<(Duration, Event)> {
    let millis = |dice: &mut Dice| Duration::from_millis(dice.between(100, 11_500));
    let mut events = Vec::new();
    for n in 0..N_CALLS {
        let at = millis(dice);
        events.push((at, Event::Submit(n)));
        if dice.one_in(4) {
            events.push((at + Duration::from_millis(dice.between(1, 2500)), Event::Cancel(n)));
        }
    }
    for _ in 0..dice.between(2, 7) {
        let longest = if dice.one_in(6) { 8000 } else { 1500 };
        let pause = Duration::from_millis(dice.between(20, longest));
        let event = match dice.between(0, 9) {
            0..=3 => Event::Editor(Act::Drop(pause)),
            4 | 5 => Event::Editor(Act::Reload(pause)),
            6 => Event::Editor(Act::Crash(pause)),
            7 => Event::Editor(Act::Compile(pause)),
            _ => Event::KillServer,
        };
        events.push((millis(dice), event));
    }
    events.sort_by_key(|(at, _)| *at);
    events
}

async fn world(seed: u64, fault: Option<Fault>) -> Vec<String> {
    let mut dice = Dice::new(seed);
    let events = plan(&mut dice);
    let begin = Instant::now();
    let mut world = World::over(limits(), Kept::new(fault));
    let life = Life::new(fault, dice.split(), world.network());
    let mut calls: Vec<Call> = Vec::new();
    for (at, event) in events {
        sleep_until(begin + at).await;
        match event {
            Event::Submit(n) => {
                let is_tests = dice.one_in(3);
                let longest = if dice.one_in(5) { 4000 } else { 500 };
                let ms = dice.between(1, longest);
                let (tool, inputs) = if is_tests {
                    // Some ask for the same.
                    (
                        "run_tests",
                        json!({ "mode": "EditMode", "filter": format!("{}/{}", n % 3, 700) }),
                    )
                } else {
                    ("execute_menu_item", json!({ "path": format!("{n}/{ms}") }))
                };
                let submitted = world.try_submit(tool, inputs).await;
                calls.extend(Call::of(n, submitted.expect("accepted")));
            }
            Event::Cancel(n) => {
                if let Some(call) = calls.iter_mut().find(|call| call.number == n) {
                    call.was_cancelled_in_line |=
                        world.cancel(call.id).await == State::Cancelled && !life.has_begun(call.id);
                }
            }
            Event::Editor(act) => life.act(act),
            Event::KillServer => {
                world = world.killed().await;
                life.find(world.network());
            }
        }
    }
    sleep_until(begin + HEALED).await;
    life.heal();
    let ids: Vec<TaskId> = calls.iter().map(|call| call.id).collect();
    for id in ids {
        let left = (begin + OVER).saturating_duration_since(Instant::now());
        let scope = raincheck_core::scope::Scope::local();
        world.handle.wait_end(&scope, id, left).await.expect("a task");
    }
    life.settled(begin + OVER).await;
    let mut views = Vec::new();
    for call in calls {
        let view = world.view(call.id).await;
        views.push((call, view));
    }
    judge::judge(&life.journal(), &views)
}

fn run(seed: u64, fault: Option<Fault>) -> Vec<String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(world(seed, fault))
}

fn seeds() -> u64 {
    std::env::var("RAINCHECK_SEEDS").map_or(SEEDS, |text| text.parse().expect("a number"))
}

/// Runs worlds on all processors until there are no more, or one has what is looked for.
fn run_all(
    n: u64,
    fault: Option<Fault>,
    is_it: impl Fn(&str) -> bool + Sync,
) -> Option<(u64, String)> {
    let (next, found) = (AtomicU64::new(0), Arc::new(Mutex::new(None)));
    let n_threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= n {
                        return;
                    }
                    let complaint = run(seed, fault).into_iter().find(|it| is_it(it));
                    if let Some(complaint) = complaint {
                        *found.lock().expect("a place") = Some((seed, complaint));
                        next.store(n, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    found.lock().expect("a place").take()
}

#[test]
fn no_weather_breaks_the_contract() {
    // [STATE-2] [CANCEL-1] [LEASE-3] [LEASE-5] [LEASE-6] [LEASE-7] [LEASE-9] [QUEUE-1] [QUEUE-6] [DUR-1] [DUR-3] [UNITY-8]
    let found = run_all(seeds(), None, |_| true);
    assert!(found.is_none(), "{found:?}");
}

#[test]
fn every_planted_fault_is_found() {
    for (fault, wanted) in FAULTS {
        let found = run_all(SEEDS, Some(*fault), |complaint| complaint.contains(wanted));
        println!("{fault:?}: {found:?}");
        assert!(found.is_some(), "{fault:?} went unnoticed: nobody said `{wanted}`");
    }
}
