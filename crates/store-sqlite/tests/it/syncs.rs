//! A disk that fails to sync once, at each place where that can happen [DUR-1, DUR-5].

use raincheck_core::store::Durability;
use raincheck_testkit::disk::{Change, Disk, Loss, Random, Recording, Shim, number_from};

use crate::work::{Told, Work, open_store, quick_folder, store_below};

/// What may not stand in an error's text.
const INTERNALS: [&str; 5] = ["/", "sqlite", "SQL", "tasks.db", "os error"];

/// Works on a disk whose `k`-th sync fails; returns whether there were that many.
fn fail(k: u64, n_tasks: u64) -> bool {
    let (root, beside) = (quick_folder(), quick_folder());
    let file = beside.path().join("recording");
    let work = Work { n_tasks, n_workers: 1, durability: Durability::Full };
    work.run(root.path(), &Shim::new(root.path()).recording(&file).with_bad_sync(k));
    let recording = Recording::read(&file, root.path());
    let changes = recording.changes();

    let (mut told, mut was_bad, mut may_be_silent) = (Told::default(), false, false);
    for change in &changes {
        if let Change::Say(text) = change {
            told.hear(text);
        } else if let Change::BadSync { .. } = change {
            // What fails while the store is closed is nobody's acknowledgement.
            (was_bad, may_be_silent) = (true, told.n_ends > 0);
        } else if let Change::BadSyncFolder { .. } = change {
            // The database does not tell of folders; the store syncs them again by itself.
            (was_bad, may_be_silent) = (true, true);
        }
    }
    let everything: Vec<u64> = (0..n_tasks).collect();
    assert!(told.finished.iter().eq(&everything), "sync {k}: the work was not done: {told:?}");
    for error in &told.errors {
        let shown: Vec<_> = INTERNALS.iter().filter(|word| error.contains(**word)).collect();
        assert!(shown.is_empty(), "sync {k}: `{error}` shows {shown:?}");
    }
    let is_told = !told.errors.is_empty();
    assert!(is_told == was_bad || !is_told && may_be_silent, "sync {k}: {:?}", told.errors);
    let mut random = Random::new(k);
    for (point, loss) in points(&changes, &mut random) {
        let broken = after(&changes[..point], loss, random.next());
        assert!(broken.is_empty(), "sync {k}, {loss:?} after {point}: {broken:?}");
    }
    was_bad
}

/// Returns moments from the failed sync on at which the power goes as well.
fn points(changes: &[Change<'_>], random: &mut Random) -> Vec<(usize, Loss)> {
    let is_end =
        |change: &Change<'_>| matches!(change, Change::Say(text) if text.contains("ack end"));
    let ends = (1..=changes.len()).filter(|at| is_end(&changes[at - 1]));
    let mut points: Vec<_> = ends.map(|at| (at, Loss::All)).collect();
    let is_bad = |change: &Change<'_>| {
        matches!(change, Change::BadSync { .. } | Change::BadSyncFolder { .. })
    };
    let bad = changes.iter().position(is_bad).unwrap_or(changes.len());
    let mut any = || bad + random.below(changes.len() - bad + 1);
    points.extend(Loss::ALL.map(|loss| (any(), loss)));
    points
}

/// Returns the promises that are broken when the power goes after some changes.
#[tokio::main(flavor = "current_thread")]
async fn after(changes: &[Change<'_>], loss: Loss, seed: u64) -> Vec<String> {
    let mut random = Random::new(seed);
    let (mut disk, mut told) = (Disk::new(), Told::default());
    for change in changes {
        disk.apply(change, &mut random);
        if let Change::Say(text) = change {
            told.hear(text);
        }
    }
    let folder = quick_folder();
    disk.after(loss, &mut random).write_to(folder.path());
    let store = open_store(&store_below(folder.path()), Durability::Full).await;
    told.broken_by(&store.expect("it opens")).await
}

#[test]
fn whichever_sync_fails_it_is_told_and_nothing_acknowledged_is_lost() {
    let n_tasks = number_from("RAINCHECK_SYNC_TASKS", 6);
    let mut k = 1;
    while fail(k, n_tasks) {
        k += 1;
    }
    println!("failed syncs: {} places, {} losses of power after each", k - 1, Loss::ALL.len() + 2);
    assert!(k - 1 > 3 * n_tasks, "too few syncs: {k}");
}
