mod kill;
mod world;

use std::sync::{Barrier, mpsc};
use std::thread;

use super::*;

const MINUTE: Millis = 60 * 1000;

fn text(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut body = format!("[{seed}").into_bytes();
    while body.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        body.extend_from_slice(format!(",\"item {:x}\",[true,false,null]", state >> 50).as_bytes());
    }
    body.push(b']');
    body
}

fn json(body: &[u8]) -> New {
    New::answer("tool", r#"{"n":1}"#, body, BodyKind::Json)
}

fn body(entry: &Pinned) -> Vec<u8> {
    let mut body = Vec::new();
    let source = entry.source();
    source.read(0..source.len(), &mut body).expect("readable");
    body
}

fn insert(cache: &Cache, now: Millis, body: &[u8]) -> Uuid {
    cache.insert(now, "me", json(body)).expect("stored").id()
}

fn reason(cache: &Cache, now: Millis, id: Uuid) -> Option<Reason> {
    cache.peek(now, "me", id).err().map(|miss| miss.reason)
}

fn in_folder(dir: &Path) -> Config {
    Config { dir: Some(dir.to_owned()), ..Config::default() }
}

fn bytes(cache: &Cache) -> u64 {
    cache.usage(0, "me").bytes
}

#[test]
fn a_body_comes_back_byte_for_byte_with_what_was_said_of_it() {
    let cache = Cache::open(Config::default(), 0);
    let text = br#" {"b":1.00, "a":[1e5]} "#;
    let receipt = cache.insert(7, "me", New { mark: Some("page".into()), ..json(text) });
    let receipt = receipt.expect("stored");
    assert!(!receipt.is_durable);
    assert_eq!(receipt.entry.metadata().access_count, 0, "an answer is no read");
    let entry = cache.get(8, "me", receipt.id()).expect("held");
    assert_eq!(body(&entry), text);
    let metadata = entry.metadata();
    assert_eq!((&*metadata.tool, &*metadata.params), ("tool", r#"{"n":1}"#));
    assert_eq!((metadata.size_bytes, metadata.access_count), (text.len() as u64, 1));
    assert_eq!(metadata.mark.as_deref(), Some("page"));
    assert_eq!(metadata.expires_at, 8 + 30 * MINUTE);
    assert_eq!(cache.peek(9, "me", receipt.id()).expect("held"), *metadata);
    assert_eq!(cache.list(9, "me"), std::slice::from_ref(metadata));
    assert!(cache.list(9, "another").is_empty());
}

#[test]
fn what_is_no_json_or_too_large_gets_no_handle() {
    let cache = Cache::open(Config { entry_bytes: 100, ..Config::default() }, 0);
    let invalid = cache.insert(0, "me", json(b"[1,\nNaN]")).expect_err("no JSON");
    assert!(matches!(invalid, Refused::Invalid(why) if why.line == 2), "{invalid}");
    let large = cache.insert(0, "me", json(&text(0, 101))).expect_err("too large");
    assert!(matches!(large, Refused::TooLarge { limit: 100, .. }), "{large}");
    assert_eq!(cache.usage(0, "me"), Usage { entries: 0, bytes: 0, total_bytes: 0 });
}

#[test]
fn a_long_body_is_in_its_file_once_it_has_a_handle_and_an_invalid_one_leaves_none() {
    let dir = tempfile::tempdir().expect("a folder");
    let cache = Cache::open(in_folder(dir.path()), 0);
    let long = text(3, LONG + 1);
    let mut invalid = long.clone();
    invalid.pop();
    let before = folder_bytes(dir.path());
    cache.insert(0, "me", json(&invalid)).expect_err("cut short");
    assert_eq!(folder_bytes(dir.path()), before, "nothing is left of it");
    let receipt = cache.insert(0, "me", json(&long)).expect("stored");
    assert!(receipt.is_durable);
    let id = receipt.id();
    // As a kill leaves it: nothing is closed in order.
    let copy = tempfile::tempdir().expect("a folder");
    for file in std::fs::read_dir(dir.path()).expect("listed") {
        let file = file.expect("listed");
        std::fs::copy(file.path(), copy.path().join(file.file_name())).expect("copied");
    }
    let after = Cache::open(in_folder(copy.path()), 1);
    assert_eq!(body(&after.get(1, "me", id).expect("there")), long);
}

#[test]
fn an_entry_in_use_is_not_evicted_and_a_body_that_would_need_its_room_is_refused() {
    let cache = Cache::open(Config { scope_bytes: 100_000, ..Config::default() }, 0);
    let first = cache.insert(0, "me", json(&text(1, 60_000))).expect("stored");
    let full = cache.insert(0, "me", json(&text(2, 60_000))).expect_err("no room");
    assert!(matches!(full, Refused::CacheFull), "{full}");
    let id = first.id();
    drop(first);
    insert(&cache, 0, &text(2, 60_000));
    let miss = cache.get(0, "me", id).expect_err("evicted");
    assert_eq!(miss.reason, Reason::Evicted);
    assert_eq!(&*miss.rerun.expect("the call").tool, "tool");
}

#[test]
fn an_idle_body_is_compressed_and_reads_the_same() {
    for dir in [None, Some(tempfile::tempdir().expect("a folder"))] {
        let dir = dir.as_ref().map(|dir| dir.path().to_owned());
        let cache = Cache::open(Config { dir: dir.clone(), ..Config::default() }, 0);
        let (text, small) = (text(3, 500_000), text(4, 200));
        let (id, tiny) = (insert(&cache, 0, &text), insert(&cache, 0, &small));
        let before = bytes(&cache);
        assert_eq!(cache.tick(0), Some(MINUTE));
        assert_eq!(bytes(&cache), before, "not before its time");
        assert_eq!(cache.tick(MINUTE), Some(30 * MINUTE));
        assert!(bytes(&cache) < before / 3, "{} of {before}", bytes(&cache));
        let entry = cache.get(MINUTE, "me", id).expect("held");
        assert_eq!(entry.source().bytes(), None, "in blocks");
        assert_eq!(body(&entry), text);
        let mut part = Vec::new();
        entry.source().read(65_000..140_000, &mut part).expect("readable");
        assert_eq!(part, text[65_000..140_000]);
        entry.source().read(0..text.len() + 1, &mut part).expect_err("beyond the end");
        assert_eq!(body(&cache.get(MINUTE, "me", tiny).expect("held")), small);
        let files = dir.map_or(0, |dir| folder_bytes(&dir));
        assert!(files < text.len() as u64 / 3, "{files}");
    }
}

fn folder_bytes(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir).expect("listed");
    files.map(|file| file.expect("listed").metadata().expect("there").len()).sum()
}

#[test]
fn a_body_in_use_is_not_compressed_under_its_reader() {
    let cache = Cache::open(Config::default(), 0);
    let receipt = cache.insert(0, "me", json(&text(3, 50_000))).expect("stored");
    let before = bytes(&cache);
    assert_eq!(cache.tick(MINUTE), Some(MINUTE + 1000), "soon again");
    assert_eq!(bytes(&cache), before);
    drop(receipt);
    cache.tick(MINUTE);
    assert!(bytes(&cache) < before);
}

#[test]
fn handles_survive_a_restart_with_their_lives_and_their_graves() {
    let dir = tempfile::tempdir().expect("a folder");
    let config = in_folder(dir.path());
    let (kept, read, gone) = {
        let cache = Cache::open(config.clone(), 0);
        assert_eq!(cache.storage(), Storage::Folder);
        let ids = [1, 2, 3].map(|n| insert(&cache, 0, &text(n, 100_000)));
        cache.get(10 * MINUTE, "me", ids[1]).expect("held");
        cache.tick(5 * MINUTE);
        cache.delete(10 * MINUTE, "me", ids[2]).expect("deleted");
        ids.into()
    };
    let cache = Cache::open(config.clone(), 29 * MINUTE);
    assert_eq!(body(&cache.get(29 * MINUTE, "me", read).expect("held")), text(2, 100_000));
    assert_eq!(cache.peek(29 * MINUTE, "me", kept).expect("held").expires_at, 30 * MINUTE);
    assert_eq!(reason(&cache, 29 * MINUTE, gone), Some(Reason::Deleted));
    let entry = cache.get(29 * MINUTE, "me", kept).expect("held");
    let view = entry.view();
    assert!(view.len(view.root()).expect("indexed again") > 1_000);
    drop((entry, cache));
    let cache = Cache::open(config, 59 * MINUTE);
    let miss = cache.peek(59 * MINUTE, "me", read).expect_err("expired");
    assert_eq!(miss.reason, Reason::Expired);
    assert_eq!(miss.rerun.expect("the call").params.as_deref(), Some(r#"{"n":1}"#));
    assert_eq!(reason(&cache, 24 * 60 * MINUTE + 10 * MINUTE, gone), Some(Reason::Unknown));
}

#[test]
fn what_is_sensitive_touches_no_file_and_says_after_a_restart_that_it_is_lost() {
    let dir = tempfile::tempdir().expect("a folder");
    let secret = "hunter2".repeat(2000);
    let sensitive = |body: &str, parent: Option<Uuid>| New {
        is_sensitive: parent.is_none(),
        parent,
        params: format!("{{\"password\":\"{secret}\"}}"),
        ..json(format!("\"{body}\"").as_bytes())
    };
    let (first, made_of_it) = {
        let cache = Cache::open(in_folder(dir.path()), 0);
        let receipt = cache.insert(0, "me", sensitive(&secret, None)).expect("stored");
        assert!(!receipt.is_durable);
        let id = receipt.id();
        let child = cache.insert(0, "me", sensitive(&secret, Some(id))).expect("stored");
        assert!(child.entry.metadata().is_sensitive, "as what it was made of");
        let child = child.id();
        drop(receipt);
        cache.tick(MINUTE);
        cache.refresh(MINUTE, "me", id, format!("\"{secret}\"").into()).expect("refreshed");
        cache.get(MINUTE, "me", id).expect("held");
        (id, child)
    };
    for file in std::fs::read_dir(dir.path()).expect("listed") {
        let bytes = std::fs::read(file.expect("listed").path()).expect("read");
        assert!(!bytes.windows(7).any(|part| part == b"hunter2"));
    }
    let cache = Cache::open(in_folder(dir.path()), MINUTE);
    for id in [first, made_of_it] {
        let miss = cache.get(MINUTE, "me", id).expect_err("was in memory");
        assert_eq!(miss.reason, Reason::Lost);
        assert_eq!(miss.rerun.expect("the tool").params, None);
    }
}

#[test]
fn a_refreshed_entry_has_a_new_body_under_its_handle_and_readers_end_with_theirs() {
    let dir = tempfile::tempdir().expect("a folder");
    let cache = Cache::open(in_folder(dir.path()), 0);
    let id = insert(&cache, 0, &text(1, 100_000));
    cache.tick(MINUTE);
    let reader = cache.get(MINUTE, "me", id).expect("held");
    let newer = text(2, 70_000);
    cache.refresh(2 * MINUTE, "me", id, newer.clone()).expect("refreshed");
    assert_eq!(body(&reader), text(1, 100_000));
    let entry = cache.get(2 * MINUTE, "me", id).expect("held");
    assert_eq!(body(&entry), newer);
    assert_ne!(entry.binding(), reader.binding());
    let metadata = entry.metadata();
    assert_eq!((metadata.revision, metadata.created_at), (1, 2 * MINUTE));
    cache.refresh(2 * MINUTE, "me", id, b"{".to_vec()).expect_err("no JSON");
    cache.refresh(2 * MINUTE, "you", id, b"1".to_vec()).expect_err("another's");
    assert_eq!(body(&cache.get(2 * MINUTE, "me", id).expect("held")), newer);
    drop((cache, reader, entry));
    let cache = Cache::open(in_folder(dir.path()), 2 * MINUTE);
    assert_eq!(body(&cache.get(2 * MINUTE, "me", id).expect("held")), newer);
}

#[test]
fn a_second_process_on_a_folder_works_in_memory_and_says_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let first = Cache::open(in_folder(dir.path()), 0);
    let id = insert(&first, 0, b"1");
    let second = Cache::open(in_folder(dir.path()), 0);
    let Storage::Memory { why: Some(why) } = second.storage() else { panic!("two writers") };
    assert!(why.contains("another process"), "{why}");
    assert_eq!(reason(&second, 0, id), Some(Reason::Unknown));
    insert(&second, 0, b"2");
    drop(second);
    assert_eq!(first.list(0, "me").len(), 1);
    drop(first);
    assert_eq!(Cache::open(in_folder(dir.path()), 0).storage(), Storage::Folder);
}

#[test]
fn a_folder_in_use_can_be_looked_at_and_stays_as_it_is() {
    let dir = tempfile::tempdir().expect("a folder");
    let cache = Cache::open(in_folder(dir.path()), 0);
    let [id, other] = [1, 2].map(|n| insert(&cache, 0, &text(n, 100_000)));
    cache.tick(MINUTE);
    let files = folder_bytes(dir.path());
    let look = Cache::open_read_only(dir.path(), MINUTE).expect("readable");
    assert_eq!(look.scopes(MINUTE), ["me".into()]);
    assert_eq!(look.list(MINUTE, "me").len(), 2);
    assert_eq!(body(&look.get(MINUTE, "me", id).expect("held")), text(1, 100_000));
    look.delete(MINUTE, "me", other).expect("here alone");
    look.tick(100 * MINUTE);
    insert(&look, MINUTE, b"1");
    drop(look);
    assert_eq!(folder_bytes(dir.path()), files);
    assert_eq!(cache.list(MINUTE, "me").len(), 2);
    Cache::open_read_only(&dir.path().join("absent"), 0).expect_err("is not made");
}

#[test]
fn a_folder_that_cannot_be_used_leaves_a_cache_in_memory() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("written");
    let cache = Cache::open(in_folder(&file), 0);
    assert!(matches!(cache.storage(), Storage::Memory { why: Some(_) }));
    let id = insert(&cache, 0, b"[1]");
    assert_eq!(body(&cache.get(0, "me", id).expect("held")), b"[1]");
}

#[test]
fn a_body_that_was_damaged_or_taken_away_is_lost_and_never_another() {
    let dir = tempfile::tempdir().expect("a folder");
    let cache = Cache::open(in_folder(dir.path()), 0);
    let ids = [1, 2, 3, 4].map(|n| insert(&cache, 0, &text(n, 300_000)));
    drop(cache);
    let path = |n: usize| dir.path().join(format!("{}.0", ids[n]));
    std::fs::remove_file(path(0)).expect("removed");
    std::fs::copy(path(2), path(1)).expect("exchanged");
    let mut bytes = std::fs::read(path(3)).expect("read");
    bytes[200_000] ^= 1;
    std::fs::write(path(3), bytes).expect("written");
    let cache = Cache::open(in_folder(dir.path()), 1);
    for n in [0, 1, 3] {
        let miss = cache.get(1, "me", ids[n]).expect_err("damaged");
        assert_eq!(miss.reason, Reason::Lost, "{n}");
        assert!(miss.rerun.is_some());
    }
    assert_eq!(body(&cache.get(1, "me", ids[2]).expect("whole")), text(3, 300_000));
    assert_eq!(cache.list(1, "me").len(), 1);
}

#[test]
fn only_what_a_shelf_left_behind_is_swept() {
    let dir = tempfile::tempdir().expect("a folder");
    let foreign = ["notes.txt", "67e55044-10b1-426f-9247-bb680e5fe0c8", "x.0", "index.old"];
    let ours = [
        "67e55044-10b1-426f-9247-bb680e5fe0c8.0",
        "67e55044-10b1-426f-9247-bb680e5fe0c8.17.new",
        "index.new",
    ];
    for name in foreign.iter().chain(&ours) {
        std::fs::write(dir.path().join(name), "x").expect("written");
    }
    let cache = Cache::open(in_folder(dir.path()), 0);
    assert_eq!(cache.storage(), Storage::Folder);
    for name in foreign {
        assert!(dir.path().join(name).exists(), "{name}");
    }
    for name in ours {
        assert!(!dir.path().join(name).exists(), "{name}");
    }
    assert!(cache.list(0, "me").is_empty());
}

#[test]
fn the_index_file_stays_small_however_much_is_read() {
    let dir = tempfile::tempdir().expect("a folder");
    let cache = Cache::open(in_folder(dir.path()), 0);
    let id = insert(&cache, 0, b"[1]");
    let index = dir.path().join("index");
    let len = || index.metadata().expect("there").len();
    for n in 0..100_000 {
        cache.get(n / 1000, "me", id).expect("held");
        if n % 20_000 == 0 {
            cache.tick(n / 1000);
            assert!(len() < 100_000, "{}", len());
        }
    }
    assert!(len() < 6_000_000, "without a tick: {}", len());
    drop(cache);
    let cache = Cache::open(in_folder(dir.path()), 100);
    assert_eq!(cache.peek(100, "me", id).expect("held").access_count, 100_000);
}

#[test]
fn a_smaller_budget_after_a_restart_is_kept() {
    let dir = tempfile::tempdir().expect("a folder");
    let cache = Cache::open(in_folder(dir.path()), 0);
    let ids = [1, 2, 3].map(|n| insert(&cache, n, &text(n, 100_000)));
    cache.get(5, "me", ids[0]).expect("held");
    drop(cache);
    let small = Config { scope_bytes: 220_000, ..in_folder(dir.path()) };
    let cache = Cache::open(small, 5);
    assert_eq!(ids.map(|id| reason(&cache, 5, id)), [None, Some(Reason::Evicted), None]);
    assert!(bytes(&cache) <= 220_000);
    assert!(folder_bytes(dir.path()) <= 220_000);
}

#[test]
fn readers_writers_and_ticks_at_once_leave_nothing_pinned() {
    let dir = tempfile::tempdir().expect("a folder");
    let config = Config { scope_bytes: 400_000, idle_ms: 1, ttl_ms: 50, ..in_folder(dir.path()) };
    let cache = Cache::open(config, 0);
    let (ids, taken) = mpsc::channel();
    let start = Barrier::new(3);
    thread::scope(|scope| {
        scope.spawn(|| {
            start.wait();
            for n in 0..200 {
                let receipt = cache.insert(n, "me", json(&text(n, 30_000))).expect("stored");
                ids.send((n, receipt.id())).expect("taken");
            }
            drop(ids);
        });
        scope.spawn(|| {
            start.wait();
            for n in 0..200 {
                cache.tick(n);
            }
        });
        start.wait();
        for (n, id) in &taken {
            match cache.get(n, "me", id) {
                Ok(entry) => assert_eq!(body(&entry), text(n, 30_000)),
                Err(miss) => assert!(matches!(miss.reason, Reason::Evicted | Reason::Expired)),
            }
            if n % 3 == 0 {
                cache.refresh(n, "me", id, text(n, 10_000)).ok();
                cache.delete(n, "me", id).ok();
            }
        }
    });
    cache.clear(200, "me");
    cache.tick(10 * 24 * 60 * MINUTE);
    assert_eq!(cache.usage(0, "me"), Usage { entries: 0, bytes: 0, total_bytes: 0 });
    let names = std::fs::read_dir(dir.path()).expect("listed").count();
    assert_eq!(names, 2, "the lock and the index");
}
