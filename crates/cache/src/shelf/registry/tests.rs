use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::shelf::entry::BodyKind;

const LIMITS: Limits = Limits {
    total_bytes: 20_000,
    scope_bytes: 10_000,
    entries_per_scope: 6,
    life: Life { sliding: 100, absolute: 250 },
    graves: Bounds { ttl: 1_000, per_scope: 8, bytes_per_scope: 1_500, in_total: 20 },
};

fn metadata(scope: &str, id: u128, now: Millis) -> Metadata {
    Metadata {
        id: Uuid::from_u128(id),
        scope: scope.into(),
        tool: "tool".into(),
        params: "{}".into(),
        kind: BodyKind::Json,
        size_bytes: 0,
        created_at: now,
        last_access_at: now,
        expires_at: 0,
        access_count: 0,
        parent: None,
        jq_filter: None,
        mark: None,
        is_sensitive: false,
        is_ahead: false,
        revision: 0,
    }
}

/// Returns the body that fills a scope with `n` equal entries of it.
fn nth_of_scope(n: u64) -> u64 {
    LIMITS.scope_bytes / n - charge(&metadata("a", 0, 0), 0)
}

fn put(
    registry: &mut Registry<()>,
    now: Millis,
    scope: &str,
    id: u128,
    held: u64,
) -> Result<(), Refusal> {
    registry.put(now, metadata(scope, id, now), (), held).map(|_| ())
}

fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

fn reason(registry: &mut Registry<()>, now: Millis, scope: &str, n: u128) -> Option<Reason> {
    registry.look(now, scope, id(n)).err().map(|miss| miss.reason)
}

#[test]
fn a_scope_is_filled_to_its_last_byte_and_not_beyond() {
    let mut registry = Registry::new(LIMITS);
    for n in 0..4 {
        put(&mut registry, 0, "a", n, nth_of_scope(4)).expect("fits");
    }
    assert_eq!(registry.bytes_of("a"), LIMITS.scope_bytes);
    assert!(registry.take_gone().is_empty());
    put(&mut registry, 0, "a", 4, 0).expect("fits");
    assert_eq!(reason(&mut registry, 0, "a", 0), Some(Reason::Evicted));
    assert_eq!(registry.list("a").count(), 4);
}

#[test]
fn what_was_read_last_goes_last() {
    let mut registry = Registry::new(LIMITS);
    for n in 0..4 {
        put(&mut registry, 0, "a", n, nth_of_scope(4)).expect("fits");
    }
    let number = registry.pin(1, "a", id(0)).expect("there").number;
    registry.unpin(id(0), number);
    registry.look(2, "a", id(1)).expect("looking is no use");
    put(&mut registry, 3, "a", 9, 0).expect("fits");
    assert_eq!(reason(&mut registry, 3, "a", 1), Some(Reason::Evicted));
    assert_eq!(reason(&mut registry, 3, "a", 0), None);
}

#[test]
fn the_total_is_shared_and_the_oldest_of_any_scope_goes() {
    let mut registry = Registry::new(LIMITS);
    for (n, scope) in ["a", "b"].into_iter().enumerate() {
        put(&mut registry, 0, scope, n as u128, nth_of_scope(1)).expect("fits");
    }
    assert_eq!(registry.bytes(), LIMITS.total_bytes);
    put(&mut registry, 0, "c", 2, 0).expect("fits");
    assert_eq!(reason(&mut registry, 0, "a", 0), Some(Reason::Evicted));
    assert_eq!(reason(&mut registry, 0, "b", 1), None);
}

#[test]
fn a_body_that_cannot_fit_moves_nobody() {
    let mut registry = Registry::new(LIMITS);
    put(&mut registry, 0, "a", 0, 100).expect("fits");
    put(&mut registry, 0, "a", 1, nth_of_scope(2)).expect("fits");
    registry.pin(0, "a", id(1)).expect("there");
    let too_large = put(&mut registry, 0, "a", 2, nth_of_scope(1) + 1);
    assert_eq!(too_large, Err(Refusal::TooLarge { limit: LIMITS.scope_bytes }));
    assert_eq!(put(&mut registry, 0, "a", 2, nth_of_scope(2) + 1), Err(Refusal::Full));
    assert!(registry.take_gone().is_empty());
    assert_eq!(reason(&mut registry, 0, "a", 0), None);
    put(&mut registry, 0, "a", 2, nth_of_scope(2)).expect("fits beside the pinned one");
    assert_eq!(reason(&mut registry, 0, "a", 0), Some(Reason::Unknown), "no room for a tombstone");
}

#[test]
fn a_body_that_a_reader_has_is_charged_until_it_is_put_down() {
    let mut registry = Registry::new(LIMITS);
    put(&mut registry, 0, "a", 0, nth_of_scope(2)).expect("fits");
    let before = registry.bytes_of("a");
    let number = registry.pin(0, "a", id(0)).expect("there").number;
    assert!(registry.remove(0, id(0), Some(Reason::Deleted)));
    assert_eq!(reason(&mut registry, 0, "a", 0), Some(Reason::Deleted));
    assert!(registry.bytes_of("a") > before, "the body and its tombstone");
    assert_eq!(put(&mut registry, 0, "a", 1, nth_of_scope(1)), Err(Refusal::Full));
    registry.unpin(id(0), number);
    put(&mut registry, 0, "a", 1, nth_of_scope(1)).expect("fits");
}

#[test]
fn a_replaced_body_frees_its_room_first() {
    let mut registry = Registry::new(LIMITS);
    put(&mut registry, 0, "a", 0, nth_of_scope(1)).expect("fits");
    put(&mut registry, 0, "a", 0, nth_of_scope(1)).expect("fits in its own place");
    let gone: Vec<_> = registry.take_gone().iter().map(|gone| gone.reason).collect();
    assert_eq!(gone, [None]);
    let old = registry.pin(0, "a", id(0)).expect("there").number;
    assert_eq!(put(&mut registry, 0, "a", 0, nth_of_scope(1)), Err(Refusal::Full));
    registry.unpin(id(0), old);
    assert_eq!(registry.bytes_of("a"), LIMITS.scope_bytes);
}

#[test]
fn an_entry_expires_at_its_instant() {
    let mut registry = Registry::new(LIMITS);
    put(&mut registry, 1000, "a", 0, 0).expect("fits");
    assert_eq!(registry.next_end(), Some(1100));
    registry.pin(1099, "a", id(0)).expect("its last instant");
    registry.pin(1198, "a", id(0)).expect("slid");
    assert_eq!(registry.next_end(), Some(1250), "the absolute end");
    registry.tick(1249);
    assert_eq!(reason(&mut registry, 1249, "a", 0), None);
    assert_eq!(reason(&mut registry, 1250, "a", 0), Some(Reason::Expired));
    assert_eq!(reason(&mut registry, 2249, "a", 0), Some(Reason::Expired));
    assert_eq!(reason(&mut registry, 2250, "a", 0), Some(Reason::Unknown));
}

#[test]
fn another_scope_reads_a_handle_as_unknown_whatever_became_of_it() {
    let mut registry = Registry::new(LIMITS);
    put(&mut registry, 0, "a", 0, 0).expect("fits");
    assert_eq!(registry.pin(0, "b", id(0)).map(|_| ()), Err(Miss::UNKNOWN));
    registry.remove(0, id(0), Some(Reason::Deleted));
    assert_eq!(registry.look(0, "b", id(0)).map(|_| ()), Err(Miss::UNKNOWN));
    let miss = registry.look(0, "a", id(0)).map(|_| ()).expect_err("deleted");
    let rerun = miss.rerun.expect("the call");
    assert_eq!((&*rerun.tool, rerun.params.as_deref()), ("tool", Some("{}")));
}

#[test]
fn sensitive_arguments_are_in_no_tombstone() {
    let mut registry = Registry::new(LIMITS);
    let metadata = Metadata { is_sensitive: true, ..metadata("a", 0, 0) };
    registry.put(0, metadata, (), 0).expect("fits");
    registry.remove(0, id(0), Some(Reason::Deleted));
    let miss = registry.look(0, "a", id(0)).map(|_| ()).expect_err("deleted");
    assert_eq!(miss.rerun.expect("the tool").params, None);
}

fn number_of(row: &Row<()>) -> usize {
    row.metadata.id.as_u128().try_into().expect("small")
}

#[derive(Clone, Debug)]
enum Step {
    Put { scope: usize, held: u64 },
    Replace { nth: usize, held: u64 },
    Pin { nth: usize },
    Unpin { nth: usize },
    Delete { nth: usize },
    Shrink { nth: usize },
    Pass { ms: Millis },
}

fn step() -> impl Strategy<Value = Step> {
    let nth = || any::<usize>();
    prop_oneof![
        4 => (0_usize..3, 0_u64..6_000).prop_map(|(scope, held)| Step::Put { scope, held }),
        1 => (nth(), 0_u64..6_000).prop_map(|(nth, held)| Step::Replace { nth, held }),
        2 => nth().prop_map(|nth| Step::Pin { nth }),
        2 => nth().prop_map(|nth| Step::Unpin { nth }),
        1 => nth().prop_map(|nth| Step::Delete { nth }),
        1 => nth().prop_map(|nth| Step::Shrink { nth }),
        2 => (0_u64..90).prop_map(|ms| Step::Pass { ms }),
    ]
}

const SCOPES: [&str; 3] = ["a", "b", "c"];

/// What an onlooker knows of the registry: a plain list.
#[derive(Default)]
struct Model {
    now: Millis,
    given: Vec<Known>,
    /// Handle and number of every pin.
    pins: Vec<(usize, u64)>,
    n_uses: u64,
}

struct Known {
    scope: &'static str,
    created_at: Millis,
    last_access_at: Millis,
    used: u64,
    /// Why it went, as far as this model can tell.
    gone: Option<(Reason, Millis)>,
}

impl Known {
    fn end(&self) -> Millis {
        (self.last_access_at + 100).min(self.created_at + 250)
    }
}

impl Model {
    fn run(&mut self, registry: &mut Registry<()>, step: &Step) {
        self.expire();
        let n = self.given.len().max(1);
        match *step {
            Step::Put { scope, held } => {
                self.given.push(Known {
                    scope: SCOPES[scope],
                    created_at: self.now,
                    last_access_at: self.now,
                    used: 0,
                    gone: None,
                });
                let nth = self.given.len() - 1;
                if !self.put(registry, nth, held) {
                    self.given.pop();
                }
            }
            Step::Replace { nth, held } => {
                let nth = nth % n;
                if self.is_live(nth) && self.put(registry, nth, held) {
                    self.given[nth].created_at = self.now;
                    self.given[nth].last_access_at = self.now;
                }
            }
            Step::Pin { nth } if nth % n < self.given.len() => {
                let nth = nth % n;
                let scope = self.given[nth].scope;
                let pinned = registry.pin(self.now, scope, id(nth as u128)).map(|row| row.number);
                assert_eq!(pinned.is_ok(), self.is_live(nth), "{nth}");
                if let Ok(number) = pinned {
                    self.pins.push((nth, number));
                    self.use_it(nth);
                }
            }
            Step::Unpin { nth } if !self.pins.is_empty() => {
                let (nth, number) = self.pins.swap_remove(nth % self.pins.len());
                registry.unpin(id(nth as u128), number);
            }
            Step::Delete { nth } if self.is_live(nth % n) => {
                let nth = nth % n;
                assert!(registry.remove(self.now, id(nth as u128), Some(Reason::Deleted)));
                self.given[nth].gone = Some((Reason::Deleted, self.now));
            }
            Step::Shrink { nth } if self.is_live(nth % n) => {
                let row = registry.row(id((nth % n) as u128)).expect("live");
                let (id, number, held) = (row.metadata.id, row.number, row.held / 5);
                assert!(registry.swap(id, number, (), held));
            }
            Step::Pass { ms } => {
                self.now += ms;
                self.expire();
                registry.tick(self.now);
            }
            Step::Pin { .. } | Step::Unpin { .. } | Step::Delete { .. } | Step::Shrink { .. } => {}
        }
        registry.take_gone();
    }

    fn is_live(&self, nth: usize) -> bool {
        self.given.get(nth).is_some_and(|known| known.gone.is_none())
    }

    fn use_it(&mut self, nth: usize) {
        self.n_uses += 1;
        self.given[nth].last_access_at = self.now;
        self.given[nth].used = self.n_uses;
    }

    fn expire(&mut self) {
        for known in &mut self.given {
            if known.gone.is_none() && known.end() <= self.now {
                known.gone = Some((Reason::Expired, known.end()));
            }
        }
    }

    fn put(&mut self, registry: &mut Registry<()>, nth: usize, held: u64) -> bool {
        // Expiry is noticed before the room is counted, as the shelf does it.
        registry.tick(self.now);
        registry.take_gone();
        let scope = self.given[nth].scope;
        let before: BTreeMap<Uuid, u64> =
            registry.iter().map(|row| (row.metadata.id, row.charge())).collect();
        let done = put(registry, self.now, scope, nth as u128, held);
        let gone = registry.take_gone();
        if done.is_err() {
            assert!(gone.is_empty(), "a refused body moved others");
            let after: BTreeMap<Uuid, u64> =
                registry.iter().map(|row| (row.metadata.id, row.charge())).collect();
            assert_eq!(before, after);
            return false;
        }
        self.check_victims(registry, nth, &gone);
        for gone in gone.iter().filter(|gone| gone.reason == Some(Reason::Evicted)) {
            self.given[number_of(&gone.row)].gone = Some((Reason::Evicted, self.now));
        }
        self.use_it(nth);
        true
    }

    /// No pinned entry goes, none while a less recently used one of the same choice stays, and none in vain.
    fn check_victims(&self, registry: &Registry<()>, nth: usize, gone: &[Gone<()>]) {
        let scope = self.given[nth].scope;
        let evicted = gone.iter().filter(|gone| gone.reason == Some(Reason::Evicted));
        for gone in evicted.clone() {
            assert!(!gone.row.is_pinned(), "a pinned entry was evicted");
            let victim = &self.given[number_of(&gone.row)];
            let older = registry.iter().map(|row| (row, &self.given[number_of(row)])).find(
                |(row, other)| {
                    !row.is_pinned()
                        && number_of(row) != nth
                        && other.used < victim.used
                        && (victim.scope != scope || other.scope == scope)
                },
            );
            assert!(older.is_none(), "an older one stayed");
        }
        if let Some(last) = evicted.clone().next_back() {
            let back = last.row.charge() + LIMITS.graves.bytes_per_scope;
            let is_own = last.row.metadata.scope.as_ref() == scope;
            let is_needed = registry.bytes() + 2 * LIMITS.graves.bytes_per_scope + back
                > LIMITS.total_bytes
                || is_own
                    && (registry.bytes_of(scope) + back > LIMITS.scope_bytes
                        || registry.list(scope).count() == LIMITS.entries_per_scope);
            assert!(is_needed, "evicted in vain");
        }
    }

    fn check(&self, registry: &mut Registry<()>) {
        recount(registry);
        for (nth, known) in self.given.iter().enumerate() {
            let found = registry.look(self.now, known.scope, id(nth as u128)).map(|_| ());
            match known.gone {
                None => assert_eq!(found, Ok(()), "{nth} is held"),
                Some((reason, at)) => {
                    let told = found.expect_err("it went").reason;
                    let is_forgotten = told == Reason::Unknown;
                    assert!(told == reason || is_forgotten, "{nth}: {told:?} for {reason:?}");
                    assert!(is_forgotten || self.now < at + 1_000, "{nth} is told for too long");
                }
            }
            let foreign = SCOPES.iter().find(|scope| **scope != known.scope).expect("others");
            let look = registry.look(self.now, foreign, id(nth as u128)).map(|_| ());
            assert_eq!(look, Err(Miss::UNKNOWN));
        }
        registry.take_gone();
    }
}

/// Counts again what is charged, from the rows.
fn recount(registry: &Registry<()>) {
    let mut scopes: HashMap<&str, u64> = HashMap::new();
    for row in registry.rows.values() {
        *scopes.entry(&row.metadata.scope).or_default() += row.charge();
    }
    for lingering in registry.lingering.values() {
        *scopes.entry(&lingering.scope).or_default() += lingering.charge;
    }
    for (_, grave) in registry.graves() {
        *scopes.entry(&grave.scope).or_default() += grave.charge();
    }
    assert_eq!(registry.bytes(), scopes.values().sum::<u64>());
    assert!(registry.bytes() <= LIMITS.total_bytes);
    for (scope, bytes) in scopes {
        assert_eq!(registry.bytes_of(scope), bytes);
        assert!(bytes <= LIMITS.scope_bytes);
        assert!(registry.list(scope).count() <= LIMITS.entries_per_scope);
    }
    let by_turn: BTreeSet<Uuid> = registry.turns.values().copied().collect();
    let by_end: BTreeSet<Uuid> = registry.ends.iter().map(|(_, id)| *id).collect();
    let rows: BTreeSet<Uuid> = registry.rows.keys().copied().collect();
    assert_eq!((&by_turn, &by_end), (&rows, &rows));
    assert!(registry.scopes.values().all(|scope| scope.bytes > 0), "an empty scope is forgotten");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_registry_agrees_with_a_plain_list(steps in proptest::collection::vec(step(), 1..120)) {
        let mut registry = Registry::new(LIMITS);
        let mut model = Model::default();
        for step in &steps {
            model.run(&mut registry, step);
            model.check(&mut registry);
        }
        for (nth, number) in model.pins.drain(..) {
            registry.unpin(id(nth as u128), number);
        }
        prop_assert!(registry.lingering.is_empty());
        recount(&registry);
    }
}
