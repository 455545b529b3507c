//! A loss of power at any moment: the writes of a working store are recorded, and played back up to
//! some point with what was not synced lost, torn or reordered [DUR-1, DUR-2, DUR-7].

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use raincheck_core::store::Durability;
use raincheck_testkit::disk::{Change, Disk, Loss, Random, Recording, Shim, Tree, number_from};

use crate::work::{Told, UNREADABLE, Work, open_store, quick_folder, store_below};

/// How many disks are made; `RAINCHECK_POWER_STATES` asks for more.
fn n_states() -> usize {
    usize::try_from(number_from("RAINCHECK_POWER_STATES", 100)).expect("a number")
}

/// How many playbacks run at a time.
const N_THREADS: usize = 2;

/// What came of a campaign.
#[derive(Debug, Default)]
struct Figures {
    states: AtomicUsize,
    promises: AtomicUsize,
    /// States in which a promise was broken, and how many were.
    states_with_loss: AtomicUsize,
    broken: AtomicUsize,
    /// The same, of promises made before the last sync of the log.
    broken_before_sync: AtomicUsize,
}

/// One loss of power.
#[derive(Clone, Copy, Debug)]
struct Moment {
    after: usize,
    loss: Loss,
    seed: u64,
}

fn moments(changes: &[Change<'_>], random: &mut Random) -> Vec<Moment> {
    let told: Vec<usize> = (0..changes.len())
        .filter(|at| matches!(&changes[*at], Change::Say(text) if text.contains("ack ")))
        .collect();
    let moment = |n: usize| Moment {
        after: match n % 5 {
            // The beginning, when tables are made, and the instant after a promise.
            0 => random.below(changes.len().min(200)),
            1 | 2 => told[random.below(told.len())] + 1,
            _ => random.below(changes.len() + 1),
        },
        loss: Loss::ALL[n % 7 % Loss::ALL.len()],
        seed: random.next(),
    };
    let mut moments: Vec<_> = (0..n_states()).map(moment).collect();
    moments.sort_by_key(|moment| moment.after);
    moments
}

fn campaign(durability: Durability) -> Figures {
    let (root, beside) = (quick_folder(), quick_folder());
    let file = beside.path().join("recording");
    let work = Work { n_tasks: 240, n_workers: 4, durability };
    work.run(root.path(), &Shim::new(root.path()).recording(&file));
    let recording = Recording::read(&file, root.path());
    let changes = recording.changes();
    assert_eq!(replayed(&changes), Tree::read(root.path()), "the recording has a hole");
    let has_files = |change: &Change<'_>| matches!(change, Change::Create { path, .. } if path.contains(".contents/"));
    assert!(changes.iter().any(has_files), "no content was large enough for a file");

    let mut random = Random::from_environment("RAINCHECK_SEED");
    let moments = moments(&changes, &mut random);
    let figures = Figures::default();
    std::thread::scope(|threads| {
        for part in 0..N_THREADS {
            let (figures, changes) = (&figures, changes.as_slice());
            let own = moments.iter().skip(part).step_by(N_THREADS);
            threads.spawn(move || {
                tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .expect("a runtime")
                    .block_on(play(changes, own, durability, figures));
            });
        }
    });
    figures
}

fn replayed(changes: &[Change<'_>]) -> Tree {
    let mut disk = Disk::new();
    let mut random = Random::new(0);
    for change in changes {
        disk.apply(change, &mut random);
    }
    disk.after(Loss::Nothing, &mut random)
}

async fn play(
    changes: &[Change<'_>],
    moments: impl Iterator<Item = &Moment>,
    durability: Durability,
    figures: &Figures,
) {
    let mut disk = Disk::new();
    let (mut told, mut told_at_sync) = (Told::default(), Told::default());
    let (mut log, mut done) = (None, 0);
    for moment in moments {
        for change in &changes[done..moment.after] {
            if let Change::Say(text) = change {
                told.hear(text);
            } else if let Change::Create { path, inode } = change {
                log = path.ends_with("-wal").then_some(*inode).or(log);
            } else if matches!(change, Change::Sync { inode } if Some(*inode) == log) {
                told_at_sync = told.clone();
            }
            disk.apply(change, &mut Random::new(0));
        }
        done = moment.after;
        let tree = disk.after(moment.loss, &mut Random::new(moment.seed));
        let folder = quick_folder();
        tree.write_to(folder.path());
        let broken = reopened(folder.path(), durability, &told, moment).await;
        let count = |counter: &AtomicUsize, n| counter.fetch_add(n, Ordering::Relaxed);
        count(&figures.states, 1);
        count(&figures.promises, told.n_promises());
        count(&figures.states_with_loss, usize::from(!broken.is_empty()));
        count(&figures.broken, broken.len());
        let may_break = durability == Durability::Process
            && broken.iter().all(|promise| !promise.contains(UNREADABLE));
        assert!(broken.is_empty() || may_break, "{moment:?}: {broken:?}");
        if !broken.is_empty() {
            let folder = quick_folder();
            tree.write_to(folder.path());
            let early = reopened(folder.path(), durability, &told_at_sync, moment).await;
            assert!(early.is_empty(), "{moment:?}: synced and lost: {early:?}");
            count(&figures.broken_before_sync, early.len());
        }
    }
}

/// Opens what is left, and returns the promises that it does not keep.
async fn reopened(
    root: &Path,
    durability: Durability,
    told: &Told,
    moment: &Moment,
) -> Vec<String> {
    let store = open_store(&store_below(root), durability).await;
    let store = store.unwrap_or_else(|error| panic!("{moment:?}: {error}"));
    told.broken_by(&store).await
}

#[test]
fn a_loss_of_power_takes_nothing_that_was_acknowledged() {
    let figures = campaign(Durability::Full);
    println!("power loss at durability full: {figures:?}");
    assert_eq!(figures.broken.into_inner(), 0);
    assert!(figures.promises.into_inner() > n_states(), "too little was promised");
}

#[test]
fn a_store_for_crashes_only_loses_the_tail_to_a_loss_of_power_and_nothing_else() {
    let figures = campaign(Durability::Process);
    println!("power loss at durability process: {figures:?}");
    assert_eq!(figures.broken_before_sync.into_inner(), 0);
    // Were nothing ever lost, the playback would not take away what it should.
    assert!(figures.states_with_loss.into_inner() > 0, "the disks are too good");
}
