//! A process that ends between any two changes of its files, or in the middle of one.

use proptest::prelude::*;

use super::world::{Step, World, step};
use super::*;
use crate::shelf::folder::fuse;

/// Runs steps until the process is gone after `n` changes. Returns whether it was.
fn kill_after(n: u64, share: usize, steps: &[Step]) -> bool {
    let dir = tempfile::tempdir().expect("a folder");
    fuse::set(n, share);
    let mut world = World::new(Some(dir.path()));
    let mut before = world.remember();
    for step in steps {
        if fuse::is_blown() {
            break;
        }
        before = world.remember();
        world.run(step);
    }
    let was_killed = fuse::is_blown();
    fuse::clear();
    if was_killed {
        world.reopen();
        world.check_after_a_kill(&before);
    }
    was_killed
}

/// Runs steps while one change of a file fails. Returns whether it did.
fn fail_at(n: u64, share: usize, steps: &[Step]) -> bool {
    let dir = tempfile::tempdir().expect("a folder");
    fuse::clear();
    let mut world = World::new(Some(dir.path()));
    fuse::fail_once(n, share);
    for step in steps.iter().filter(|step| !matches!(step, Step::Reopen)) {
        world.run(step);
        world.check();
    }
    let has_failed = fuse::has_failed();
    fuse::clear();
    world.check_after_a_failure();
    has_failed
}

/// Whether more cases were asked for than a run of all tests has time for.
fn is_campaign() -> bool {
    std::env::var_os("PROPTEST_CASES").is_some()
}

#[test]
fn every_handle_answers_after_a_kill_at_any_change_of_a_file() {
    let steps = script();
    // All of them in a campaign, else before each change and somewhere in the middle of it.
    let shares: Vec<fn(u64) -> usize> = if is_campaign() {
        vec![|_| 0, |_| 1, |_| 50, |_| 99, |_| 100]
    } else {
        vec![|_| 0, |n| if n % 2 == 0 { 1 } else { 99 }]
    };
    for share in shares {
        let mut n = 0;
        while kill_after(n, share(n), &steps) {
            n += 1;
        }
        assert!(n > 60, "only {n} changes");
    }
}

#[test]
fn a_write_that_fails_costs_a_handle_its_durability_at_most() {
    let steps = script();
    let shares: Vec<fn(u64) -> usize> =
        if is_campaign() { vec![|_| 0, |_| 50] } else { vec![|n| if n % 2 == 0 { 0 } else { 50 }] };
    for share in shares {
        let mut n = 0;
        while fail_at(n, share(n), &steps) {
            n += 1;
        }
        assert!(n > 50, "only {n} changes");
    }
}

fn script() -> [Step; 20] {
    let insert = |len| Step::Insert { scope: 0, len, is_sensitive: false };
    [
        insert(50_000),
        insert(100),
        Step::Insert { scope: 1, len: 40_000, is_sensitive: true },
        Step::Get { nth: 0 },
        Step::Refresh { nth: 0, len: 55_000 },
        Step::Pass { ms: 30 },
        Step::Get { nth: 0 },
        Step::Delete { nth: 1 },
        Step::Refresh { nth: 2, len: 1_000 },
        Step::Reopen,
        insert(60_000 - 100),
        insert(60_000 - 100),
        insert(60_000 - 100),
        insert(60_000 - 100),
        insert(60_000 - 100),
        Step::Pass { ms: 90 },
        Step::Reopen,
        insert(10),
        Step::Clear { scope: 0 },
        Step::Pass { ms: 300 },
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_handle_answers_after_any_steps_and_a_kill(
        steps in proptest::collection::vec(step(), 1..30),
        n in 0_u64..150,
        share in 0_usize..=100,
    ) {
        kill_after(n, share, &steps);
        fail_at(n, share, &steps);
    }
}

#[test]
fn an_index_file_cut_at_any_byte_gives_each_handle_its_body_or_none() {
    let dir = tempfile::tempdir().expect("a folder");
    let cache = Cache::open(in_folder(dir.path()), 0);
    let ids = [1, 2, 3].map(|n| insert(&cache, 0, &text(n, 50)));
    cache.delete(0, "me", ids[1]).expect("deleted");
    drop(cache);
    let read = |name: &str| std::fs::read(dir.path().join(name)).expect("read");
    let index = read("index");
    let files: Vec<(String, Vec<u8>)> =
        [0, 2].map(|n| format!("{}.0", ids[n])).map(|name| (name.clone(), read(&name))).into();
    for cut in 0..index.len() {
        std::fs::write(dir.path().join("index"), &index[..cut]).expect("written");
        for (name, bytes) in &files {
            std::fs::write(dir.path().join(name), bytes).expect("written");
        }
        let cache = Cache::open(in_folder(dir.path()), 0);
        let mut n_held = 0;
        for (n, id) in (1..).zip(ids) {
            match cache.get(0, "me", id) {
                Ok(entry) => {
                    n_held += 1;
                    assert_eq!(body(&entry), text(n, 50), "cut at {cut}");
                }
                Err(miss) => assert_ne!(miss.reason, Reason::Evicted, "cut at {cut}"),
            }
        }
        let names = std::fs::read_dir(dir.path()).expect("listed").count();
        assert_eq!(names, n_held + 2, "what no record names is swept");
    }
}

#[test]
fn a_body_file_cut_at_any_byte_is_lost() {
    let dir = tempfile::tempdir().expect("a folder");
    let cache = Cache::open(in_folder(dir.path()), 0);
    let id = insert(&cache, 0, &text(1, 200));
    drop(cache);
    let [index, file] = ["index", &format!("{id}.0")].map(|name| dir.path().join(name));
    let (index_bytes, bytes) =
        (std::fs::read(&index).expect("read"), std::fs::read(&file).expect("read"));
    for cut in 0..=bytes.len() {
        std::fs::write(&index, &index_bytes).expect("written");
        std::fs::write(&file, &bytes[..cut]).expect("written");
        let cache = Cache::open(in_folder(dir.path()), 0);
        match cache.get(0, "me", id) {
            Ok(entry) => {
                assert_eq!(cut, bytes.len());
                assert_eq!(body(&entry), text(1, 200));
            }
            Err(miss) => assert_eq!((miss.reason, cut < bytes.len()), (Reason::Lost, true)),
        }
    }
}
