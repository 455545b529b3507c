//! Simulated worlds: the bridge, its listener and an extension on a network that loses, delays and
//! repeats, while both ends are killed and started again. Everything follows from a seed.

mod callers;
mod extension;
mod fault;
mod history;
mod journal;
mod plan;
mod server;

use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use raincheck_testkit::dice::Dice;

use crate::store::Store;
pub(crate) use fault::Fault;
use history::{Log, lock};
use plan::{Act, Plan};

/// How many worlds an ordinary run looks at; `RAINCHECK_SEEDS` asks for another number.
const SEEDS: u64 = 200;

/// From here on nothing fails any more.
const HEALED: Duration = Duration::from_secs(12);

/// Until then every command has ended.
const OVER: Duration = Duration::from_secs(120);

const TICK: Duration = Duration::from_millis(5);

/// What a world came to.
struct Run {
    trace: Vec<String>,
    complaints: Vec<String>,
    /// What happened in it that is worth to be known of all worlds together.
    met: BTreeSet<&'static str>,
}

fn run(seed: u64, fault: Option<Fault>) -> Run {
    let mut dice = Dice::new(seed);
    let plan = Plan::draw(&mut dice);
    let log = Log::default();
    let store = Store::new();
    store.slow_down(dice.split());
    store.plant(fault);
    let mut sim = turmoil::Builder::new()
        .rng_seed(dice.next())
        .tick_duration(TICK)
        .simulation_duration(OVER + HEALED)
        .min_message_latency(Duration::from_millis(1))
        .max_message_latency(Duration::from_millis(plan.latency_ms))
        .fail_rate(plan.fail_rate)
        .repair_rate(0.3)
        .build();
    let calls = Arc::new(plan.calls);
    let ids = Arc::new(server::SeededIds::new(dice.split()));
    let setup = server::Setup { store: Arc::clone(&store), log: log.clone(), calls, ids, fault };
    sim.host(server::HOST, move || server::serve(setup.clone()));
    let journal = Arc::new(Mutex::new(journal::Journal::default()));
    let (browser, its_dice) = (log.clone(), Arc::new(Mutex::new(dice.split())));
    sim.host(extension::HOST, move || {
        extension::live(browser.clone(), Arc::clone(&journal), Arc::clone(&its_dice), fault)
    });
    let mut acts = plan.acts.into_iter().peekable();
    let mut is_healed = false;
    while sim.elapsed() < OVER && !lock(&log).is_over {
        let now = sim.elapsed();
        while let Some((_, act)) = acts.next_if(|(at, _)| *at <= now) {
            perform(&mut sim, &log, &store, act);
        }
        if !is_healed && now >= HEALED && acts.peek().is_none() {
            is_healed = true;
            sim.set_fail_rate(0.0);
            sim.repair(server::HOST, extension::HOST);
            store.mend();
            lock(&log).heal();
        }
        if let Err(error) = sim.step() {
            lock(&log).complain(format!("a host broke down: {error}"));
            break;
        }
    }
    drop(sim);
    let mut history = std::mem::take(&mut *lock(&log));
    history.judge();
    Run { trace: history.trace, complaints: history.complaints, met: history.met }
}

fn perform(sim: &mut turmoil::Sim<'_>, log: &Log, store: &Store, act: Act) {
    let (server, browser) = (server::HOST, extension::HOST);
    lock(log).note(sim.elapsed(), &format!("{act:?}"));
    match act {
        Act::Partition => sim.partition(server, browser),
        Act::LoseAnswers => sim.partition_oneway(server, browser),
        Act::LoseRequests => sim.partition_oneway(browser, server),
        Act::Hold => sim.hold(server, browser),
        Act::Release => sim.release(server, browser),
        Act::Repair => sim.repair(server, browser),
        Act::KillServer => sim.crash(server),
        Act::StartServer => sim.bounce(server),
        Act::KillWorker => {
            sim.crash(browser);
            lock(log).worker_died();
        }
        Act::StartWorker => sim.bounce(browser),
        Act::BreakStore => store.break_down(),
        Act::MendStore => store.mend(),
    }
}

fn seeds() -> u64 {
    std::env::var("RAINCHECK_SEEDS").map_or(SEEDS, |text| text.parse().expect("a number"))
}

/// Runs worlds on all processors until there are no more, or until `is_enough`.
fn run_all(n: u64, fault: Option<Fault>, is_enough: impl Fn(u64, Run) -> bool + Sync) {
    let next = AtomicU64::new(0);
    let n_threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= n || is_enough(seed, run(seed, fault)) {
                        next.store(n, Ordering::Relaxed);
                        return;
                    }
                }
            });
        }
    });
}

#[test]
fn no_weather_breaks_the_contract() {
    // [STATE-2] [BROWSER-23] [CANCEL-1] [CANCEL-5] [LEASE-3] [LEASE-5] [LEASE-6] [LEASE-7] [QUEUE-1] [QUEUE-6] [DUR-1] [DUR-3]
    let (broken, met) = (Mutex::new(Vec::new()), Mutex::new(BTreeSet::new()));
    run_all(seeds(), None, |seed, run| {
        met.lock().expect("a set").extend(run.met);
        if run.complaints.is_empty() {
            return false;
        }
        let trace = run.trace.join("\n");
        let complaints = run.complaints.join("\n");
        broken.lock().expect("a list").push(format!("{trace}\nseed {seed}:\n{complaints}"));
        true
    });
    let broken = broken.into_inner().expect("a list");
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
    let met = met.into_inner().expect("a set");
    // A few worlds need not have everything.
    for wanted in history::WORTH_MEETING.iter().filter(|_| seeds() >= SEEDS) {
        assert!(met.contains(wanted), "no world had: {wanted}; there were {met:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_world() {
    for seed in [1, 2, 3] {
        let (first, second) = (run(seed, None), run(seed, None));
        assert!(first.trace.len() > 50, "seed {seed}: {} lines", first.trace.len());
        for (n, (one, two)) in first.trace.iter().zip(&second.trace).enumerate() {
            assert_eq!(one, two, "seed {seed}, line {n}");
        }
        assert_eq!(first.trace.len(), second.trace.len(), "seed {seed}");
    }
}

#[test]
fn every_planted_fault_is_found() {
    for (fault, wanted) in fault::ALL {
        let found = Mutex::new(None);
        run_all(SEEDS, Some(*fault), |seed, run| {
            let complaint = run.complaints.into_iter().find(|it| it.contains(wanted));
            let is_found = complaint.is_some();
            if let Some(complaint) = complaint {
                *found.lock().expect("a place") = Some((seed, complaint));
            }
            is_found
        });
        let found = found.into_inner().expect("a place");
        println!("{fault:?}: {found:?}");
        assert!(found.is_some(), "{fault:?} went unnoticed: nobody said `{wanted}`");
    }
}
