//! A cache beside a plain list of what it should hold.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::shelf::folder::fuse;

const TTL: Millis = 100;
const ABSOLUTE: Millis = 250;
const SCOPES: [&str; 2] = ["a", "b"];

pub(super) fn config(dir: Option<&Path>) -> Config {
    Config {
        dir: dir.map(Path::to_owned),
        total_bytes: 300_000,
        scope_bytes: 200_000,
        entry_bytes: 60_000,
        entries_per_scope: 6,
        ttl_ms: TTL,
        absolute_ttl_ms: ABSOLUTE,
        idle_ms: 20,
        tombstone_ttl_ms: 1_000_000,
        tombstones_per_scope: 1_000,
    }
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Insert { scope: usize, len: usize, is_sensitive: bool },
    Get { nth: usize },
    Refresh { nth: usize, len: usize },
    Delete { nth: usize },
    Clear { scope: usize },
    Pass { ms: Millis },
    Reopen,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let len = 0_usize..70_000;
    let nth = any::<usize>();
    prop_oneof![
        6 => (0_usize..2, len.clone(), proptest::bool::weighted(0.2))
            .prop_map(|(scope, len, is_sensitive)| Step::Insert { scope, len, is_sensitive }),
        4 => nth.prop_map(|nth| Step::Get { nth }),
        2 => (nth, len).prop_map(|(nth, len)| Step::Refresh { nth, len }),
        2 => nth.prop_map(|nth| Step::Delete { nth }),
        1 => (0_usize..2).prop_map(|scope| Step::Clear { scope }),
        3 => (0_u64..60).prop_map(|ms| Step::Pass { ms }),
        1 => Just(Step::Reopen),
    ]
}

#[derive(Clone, Debug)]
struct Known {
    id: Uuid,
    scope: &'static str,
    body: Vec<u8>,
    /// In memory only, for whatever reason.
    is_sensitive: bool,
    created_at: Millis,
    last_access_at: Millis,
    access_count: u64,
    gone: Option<Reason>,
}

impl Known {
    fn end(&self) -> Millis {
        (self.last_access_at + TTL).min(self.created_at + ABSOLUTE)
    }
}

pub(super) struct World {
    config: Config,
    cache: Option<Cache>,
    now: Millis,
    known: Vec<Known>,
    n_bodies: u64,
}

impl World {
    pub(super) fn new(dir: Option<&Path>) -> Self {
        let config = config(dir);
        let cache = Some(Cache::open(config.clone(), 0));
        Self { config, cache, now: 0, known: Vec::new(), n_bodies: 0 }
    }

    fn cache(&self) -> Cache {
        self.cache.clone().expect("open")
    }

    fn is_durable(&self) -> bool {
        self.config.dir.is_some()
    }

    /// Does a step; what it may be seen to have done is in the list after.
    pub(super) fn run(&mut self, step: &Step) {
        self.expire();
        let n = self.known.len().max(1);
        match *step {
            Step::Insert { scope, len, is_sensitive } => {
                self.insert(SCOPES[scope], len, is_sensitive);
            }
            Step::Get { nth } => self.get(nth % n),
            Step::Refresh { nth, len } => self.refresh(nth % n, len),
            Step::Delete { nth } => self.delete(nth % n),
            Step::Clear { scope } => {
                let live = self.live(SCOPES[scope]);
                let n_cleared = self.cache().clear(self.now, SCOPES[scope]);
                assert_eq!(n_cleared, live.len());
                live.into_iter().for_each(|nth| self.known[nth].gone = Some(Reason::Deleted));
            }
            Step::Pass { ms } => {
                self.now += ms;
                self.expire();
                let next = self.cache().tick(self.now);
                assert!(next.is_none_or(|next| next > self.now), "no busy loop");
            }
            Step::Reopen => self.reopen(),
        }
    }

    /// Starts again, as after the end of the process.
    pub(super) fn reopen(&mut self) {
        self.cache = None;
        self.cache = Some(Cache::open(self.config.clone(), self.now));
        let is_durable = self.is_durable();
        for known in &mut self.known {
            if !is_durable {
                known.gone = Some(Reason::Unknown);
            } else if known.is_sensitive && known.gone.is_none() {
                known.gone = Some(Reason::Lost);
            }
        }
    }

    fn expire(&mut self) {
        for known in &mut self.known {
            if known.gone.is_none() && known.end() <= self.now {
                known.gone = Some(Reason::Expired);
            }
        }
    }

    fn live(&self, scope: &str) -> Vec<usize> {
        let all = self.known.iter().enumerate();
        all.filter(|(_, known)| known.gone.is_none() && known.scope == scope)
            .map(|(nth, _)| nth)
            .collect()
    }

    fn body(&mut self, len: usize) -> Vec<u8> {
        self.n_bodies += 1;
        text(self.n_bodies, len)
    }

    fn insert(&mut self, scope: &'static str, len: usize, is_sensitive: bool) {
        let body = self.body(len);
        let new = New { is_sensitive, ..json(&body) };
        match self.cache().insert(self.now, scope, new) {
            Ok(receipt) => {
                if fuse::is_blown() {
                    // The process was gone before it could say so; who made room may have gone.
                    drop(receipt);
                    return self.see_evictions();
                }
                let is_right = receipt.is_durable == (self.is_durable() && !is_sensitive);
                assert!(is_right || fuse::has_failed());
                self.known.push(Known {
                    id: receipt.id(),
                    scope,
                    body,
                    is_sensitive: !receipt.is_durable,
                    created_at: self.now,
                    last_access_at: self.now,
                    access_count: 0,
                    gone: None,
                });
                drop(receipt);
                self.see_evictions();
            }
            Err(Refused::TooLarge { .. }) => assert!(body.len() > 60_000),
            Err(other) => panic!("nothing is in use: {other}"),
        }
    }

    fn get(&mut self, nth: usize) {
        let Some(known) = self.known.get_mut(nth) else { return };
        let found = self.cache.as_ref().expect("open").get(self.now, known.scope, known.id);
        match (found, known.gone) {
            (Ok(entry), None) => {
                assert_eq!(body(&entry), known.body);
                known.last_access_at = self.now;
                known.access_count += 1;
                assert_eq!(entry.metadata().expires_at, known.end());
            }
            (Err(miss), Some(reason)) => assert_eq!(miss.reason, reason),
            (found, gone) => panic!("{found:?} of {gone:?}"),
        }
    }

    fn refresh(&mut self, nth: usize, len: usize) {
        let body = self.body(len);
        let now = self.now;
        let Some(known) = self.known.get_mut(nth) else { return };
        let cache = self.cache.as_ref().expect("open");
        match cache.refresh(now, known.scope, known.id, body.clone()) {
            Ok(receipt) => {
                assert_eq!(known.gone, None);
                // A process that is gone cannot say so.
                if !fuse::is_blown() {
                    known.is_sensitive = !receipt.is_durable;
                }
                known.body = body;
                known.created_at = now;
                known.last_access_at = now;
            }
            Err(Refused::TooLarge { .. }) => assert!(body.len() > 60_000),
            Err(Refused::Gone(miss)) => assert_eq!(Some(miss.reason), known.gone),
            Err(other) => panic!("{other}"),
        }
        self.see_evictions();
    }

    fn delete(&mut self, nth: usize) {
        let now = self.now;
        let Some(known) = self.known.get_mut(nth) else { return };
        let deleted = self.cache.as_ref().expect("open").delete(now, known.scope, known.id);
        assert_eq!(deleted.err().map(|miss| miss.reason), known.gone);
        known.gone = known.gone.or(Some(Reason::Deleted));
    }

    /// Learns who went; that the right ones do is the registry's test.
    fn see_evictions(&mut self) {
        let cache = self.cache();
        for known in self.known.iter_mut().filter(|known| known.gone.is_none()) {
            if let Err(miss) = cache.peek(self.now, known.scope, known.id) {
                assert_eq!(miss.reason, Reason::Evicted);
                known.gone = Some(Reason::Evicted);
            }
        }
    }

    pub(super) fn check(&self) {
        let cache = self.cache();
        for known in &self.known {
            let found = cache.peek(self.now, known.scope, known.id);
            assert_eq!(found.as_ref().err().map(|miss| miss.reason), known.gone);
            if let Ok(metadata) = found {
                assert_eq!(metadata.expires_at, known.end());
                assert_eq!(metadata.access_count, known.access_count);
            }
            let other = if known.scope == "a" { "b" } else { "a" };
            assert_eq!(cache.peek(self.now, other, known.id), Err(Miss::UNKNOWN));
            assert_eq!(cache.get(self.now, other, known.id).err(), Some(Miss::UNKNOWN));
        }
        for scope in SCOPES {
            let listed: BTreeSet<Uuid> =
                cache.list(self.now, scope).iter().map(|metadata| metadata.id).collect();
            let live = self.live(scope).into_iter().map(|nth| self.known[nth].id).collect();
            assert_eq!(listed, live);
            assert!(cache.usage(self.now, scope).bytes <= self.config.scope_bytes);
            assert!(cache.usage(self.now, scope).total_bytes <= self.config.total_bytes);
        }
        recount(&cache);
        if !fuse::has_failed() {
            self.check_files(&cache);
        }
    }

    /// Starts again after a write failed: whatever was called durable is there, and nothing that went is back.
    pub(super) fn check_after_a_failure(&mut self) {
        self.reopen();
        let cache = self.cache();
        for known in &self.known {
            let found = cache.get(self.now, known.scope, known.id);
            match found.map_err(|miss| miss.reason) {
                Ok(entry) => assert_eq!((&body(&entry), known.gone), (&known.body, None)),
                Err(Reason::Expired) => {}
                Err(_) => assert!(known.gone.is_some(), "{} is not there", known.id),
            }
        }
        recount(&cache);
        self.check_files(&cache);
    }

    /// Each file is a live entry's, and is as long as is charged.
    fn check_files(&self, cache: &Cache) {
        let Some(dir) = &self.config.dir else { return };
        let files: BTreeSet<(String, u64)> = std::fs::read_dir(dir)
            .expect("listed")
            .map(|file| {
                let file = file.expect("listed");
                let name = file.file_name().into_string().expect("a name");
                (name, file.metadata().expect("there").len())
            })
            .filter(|(name, _)| name != "lock" && name != "index")
            .collect();
        let state = cache.shared.lock();
        let rows = state.registry.iter().filter_map(|row| {
            let bytes = row.body.file_bytes?;
            Some((crate::shelf::body::file_name(&row.metadata), bytes))
        });
        assert_eq!(files, rows.collect());
    }

    /// Reads every body that should be there, and those that the last step may have changed either way.
    pub(super) fn check_after_a_kill(&mut self, before: &Self) {
        let cache = self.cache();
        for (known, before) in self.known.iter().zip(&before.known) {
            let may_be = [known, before].map(|known| match known.gone {
                None if known.is_sensitive => Err(Reason::Lost),
                None => Ok(&known.body),
                Some(reason) => Err(reason),
            });
            let found = cache.get(self.now, known.scope, known.id);
            let found = found.map(|entry| body(&entry)).map_err(|miss| miss.reason);
            let is_right = may_be.contains(&found.as_ref().map_err(|reason| *reason));
            assert!(is_right, "{}: {:?}", known.id, found.map(|body| body.len()));
        }
        let strangers = SCOPES
            .iter()
            .flat_map(|scope| cache.list(self.now, scope))
            .filter(|found| self.known.iter().all(|known| known.id != found.id));
        assert!(strangers.count() <= 1, "one that was stored and not yet told");
        recount(&cache);
        self.check_files(&cache);
    }

    /// What the list was before a step.
    pub(super) fn remember(&self) -> Self {
        Self {
            config: self.config.clone(),
            cache: None,
            now: self.now,
            known: self.known.clone(),
            n_bodies: self.n_bodies,
        }
    }
}

/// Counts again what is charged, from what is there.
fn recount(cache: &Cache) {
    let state = cache.shared.lock();
    let rows = state.registry.iter().map(|row| {
        let memory = match &row.body.memory {
            Some(Memory::Verbatim(bytes)) => bytes.capacity() as u64,
            Some(Memory::Compressed(blocks)) => blocks.heap_bytes(),
            None => 0,
        };
        let index = row.body.index.get().map(|index| index.heap_bytes() as u64);
        let body = memory.max(row.body.file_bytes.unwrap_or(0));
        charge(&row.metadata, body + index.unwrap_or(row.body.index_bytes))
    });
    let graves = state.registry.graves().map(|(_, grave)| grave.charge());
    assert_eq!(state.registry.bytes(), rows.sum::<u64>() + graves.sum::<u64>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_cache_in_a_folder_agrees_with_a_plain_list(
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let dir = tempfile::tempdir().expect("a folder");
        let mut world = World::new(Some(dir.path()));
        for step in &steps {
            world.run(step);
            world.check();
        }
        world.reopen();
        world.check();
    }

    #[test]
    fn a_cache_in_memory_agrees_with_a_plain_list(
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let mut world = World::new(None);
        for step in &steps {
            world.run(step);
            world.check();
        }
    }
}
