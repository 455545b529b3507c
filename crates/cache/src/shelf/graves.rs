//! Tombstones: what became of handles that are gone.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use crate::shelf::entry::{Reason, Rerun};
use crate::shelf::life::Millis;

/// What a tombstone takes beside its texts: its row in three maps.
const FIXED: u64 = 256;

/// What is remembered of a handle that is gone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Tombstone {
    pub(super) scope: Arc<str>,
    pub(super) reason: Reason,
    pub(super) rerun: Rerun,
    /// When the entry went.
    pub(super) at: Millis,
}

impl Tombstone {
    /// Returns what it takes of its scope's budget.
    pub(super) fn charge(&self) -> u64 {
        let params = self.rerun.params.as_ref().map_or(0, |params| params.len());
        FIXED + (self.scope.len() + self.rerun.tool.len() + params) as u64
    }
}

/// How many tombstones stay, and how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) ttl: Millis,
    pub(super) per_scope: usize,
    pub(super) bytes_per_scope: u64,
    pub(super) in_total: usize,
}

#[derive(Debug, Default)]
struct Plot {
    /// The oldest first.
    by_age: BTreeMap<u64, Uuid>,
    bytes: u64,
}

/// All tombstones, the oldest first.
#[derive(Debug)]
pub(super) struct Graves {
    bounds: Bounds,
    by_id: HashMap<Uuid, (u64, Tombstone)>,
    by_age: BTreeMap<u64, Uuid>,
    plots: HashMap<Arc<str>, Plot>,
    bytes: u64,
    next: u64,
}

impl Graves {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            by_id: HashMap::new(),
            by_age: BTreeMap::new(),
            plots: HashMap::new(),
            bytes: 0,
            next: 0,
        }
    }

    /// Returns a scope's tombstone. One that is past its time is none.
    pub(super) fn get(&self, now: Millis, scope: &str, id: Uuid) -> Option<&Tombstone> {
        let (_, grave) = self.by_id.get(&id)?;
        let is_told = &*grave.scope == scope && now < grave.at.saturating_add(self.bounds.ttl);
        is_told.then_some(grave)
    }

    /// Adds a tombstone; the oldest go where there are too many.
    pub(super) fn add(&mut self, id: Uuid, grave: Tombstone) {
        self.remove(id);
        let turn = self.next;
        self.next += 1;
        let plot = self.plots.entry(grave.scope.clone()).or_default();
        plot.by_age.insert(turn, id);
        plot.bytes += grave.charge();
        self.bytes += grave.charge();
        let scope = grave.scope.clone();
        self.by_age.insert(turn, id);
        self.by_id.insert(id, (turn, grave));
        while self.is_over(&scope) && self.drop_oldest_of(&scope) {}
        while self.by_id.len() > self.bounds.in_total && self.drop_oldest() {}
    }

    fn is_over(&self, scope: &str) -> bool {
        self.plots.get(scope).is_some_and(|plot| {
            plot.by_age.len() > self.bounds.per_scope || plot.bytes > self.bounds.bytes_per_scope
        })
    }

    /// Forgets those that are past their time.
    pub(super) fn tick(&mut self, now: Millis) {
        while self.next_end().is_some_and(|end| end <= now) && self.drop_oldest() {}
    }

    /// Returns when the oldest one is past its time.
    pub(super) fn next_end(&self) -> Option<Millis> {
        let (_, id) = self.by_age.first_key_value()?;
        let (_, grave) = self.by_id.get(id)?;
        Some(grave.at.saturating_add(self.bounds.ttl))
    }

    pub(super) fn drop_oldest(&mut self) -> bool {
        let oldest = self.by_age.first_key_value().map(|(_, id)| *id);
        oldest.is_some_and(|id| self.remove(id))
    }

    pub(super) fn drop_oldest_of(&mut self, scope: &str) -> bool {
        let plot = self.plots.get(scope);
        let oldest = plot.and_then(|plot| plot.by_age.first_key_value()).map(|(_, id)| *id);
        oldest.is_some_and(|id| self.remove(id))
    }

    /// Takes one away; false when there is none.
    pub(super) fn remove(&mut self, id: Uuid) -> bool {
        let Some((turn, grave)) = self.by_id.remove(&id) else { return false };
        self.by_age.remove(&turn);
        self.bytes -= grave.charge();
        if let Some(plot) = self.plots.get_mut(&grave.scope) {
            plot.by_age.remove(&turn);
            plot.bytes -= grave.charge();
            if plot.by_age.is_empty() {
                self.plots.remove(&grave.scope);
            }
        }
        true
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn bytes_of(&self, scope: &str) -> u64 {
        self.plots.get(scope).map_or(0, |plot| plot.bytes)
    }

    /// Returns all of them, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Uuid, &Tombstone)> {
        let ids = self.by_age.values();
        ids.filter_map(|id| self.by_id.get(id).map(|(_, grave)| (*id, grave)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grave(scope: &str, at: Millis) -> Tombstone {
        let rerun = Rerun { tool: "tool".into(), params: Some("{}".into()) };
        Tombstone { scope: scope.into(), reason: Reason::Deleted, rerun, at }
    }

    fn graves() -> Graves {
        let bytes_per_scope = 3 * grave("a", 0).charge();
        Graves::new(Bounds { ttl: 100, per_scope: 4, bytes_per_scope, in_total: 5 })
    }

    #[test]
    fn the_oldest_of_a_scope_goes_first_and_other_scopes_stay() {
        let mut graves = graves();
        graves.add(Uuid::from_u128(100), grave("b", 0));
        for n in 0..5_u32 {
            graves.add(Uuid::from_u128(n.into()), grave("a", n.into()));
        }
        let left: Vec<u128> = graves.iter().map(|(id, _)| id.as_u128()).collect();
        assert_eq!(left, [100, 2, 3, 4]);
        assert_eq!(graves.bytes_of("a"), 3 * grave("a", 0).charge());
        assert_eq!(graves.bytes(), 4 * grave("a", 0).charge());
    }

    #[test]
    fn the_total_number_is_bounded_over_all_scopes() {
        let mut graves = graves();
        for n in 0..9 {
            graves.add(Uuid::from_u128(n), grave(&n.to_string(), 0));
        }
        assert_eq!(graves.iter().count(), 5);
        assert_eq!(graves.plots.len(), 5);
    }

    #[test]
    fn a_tombstone_is_told_to_its_scope_until_its_time_ends() {
        let mut graves = graves();
        let id = Uuid::from_u128(1);
        graves.add(id, grave("a", 50));
        assert!(graves.get(149, "a", id).is_some());
        assert!(graves.get(150, "a", id).is_none());
        assert!(graves.get(149, "b", id).is_none());
        graves.tick(149);
        assert_eq!(graves.next_end(), Some(150));
        graves.tick(150);
        assert_eq!((graves.next_end(), graves.bytes(), graves.plots.len()), (None, 0, 0));
    }
}
