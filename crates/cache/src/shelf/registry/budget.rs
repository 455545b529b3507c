//! Who has to go so that a body fits.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{Limits, Refusal, Registry, Row, charge};
use crate::shelf::entry::{Metadata, Reason};
use crate::shelf::graves::Tombstone;

/// What is in use under one budget, as it would be after the evictions so far.
#[derive(Debug)]
struct Account {
    /// Rows and lingering bodies.
    held: u64,
    /// Tombstones: they go last, and never stand in the way.
    graves: u64,
    n_rows: usize,
    max_bytes: u64,
    max_rows: usize,
}

impl Account {
    fn has_room(&self, charge: u64) -> bool {
        self.held.saturating_add(self.graves).saturating_add(charge) <= self.max_bytes
            && self.n_rows < self.max_rows
    }

    fn has_room_without_graves(&self, charge: u64) -> bool {
        self.held.saturating_add(charge) <= self.max_bytes && self.n_rows < self.max_rows
    }

    fn without<B>(&mut self, row: &Row<B>, grave: u64) {
        self.n_rows = self.n_rows.saturating_sub(1);
        if row.is_pinned() {
            return;
        }
        self.held = self.held.saturating_sub(row.charge());
        self.graves += grave;
    }
}

impl<B> Registry<B> {
    /// Returns who has to go for an entry, the least recently used first: in its scope, then anywhere.
    ///
    /// # Errors
    /// When it would not fit even so.
    pub(in crate::shelf) fn make_room(
        &self,
        metadata: &Metadata,
        held: u64,
    ) -> Result<Vec<Uuid>, Refusal> {
        let charge = charge(metadata, held);
        let limit = self.limits.scope_bytes.min(self.limits.total_bytes);
        if charge > limit {
            return Err(Refusal::TooLarge { limit });
        }
        let (mut own, mut all) = self.accounts(&self.limits, &metadata.scope);
        let replaced = self.rows.get(&metadata.id);
        if let Some(row) = replaced {
            own.without(row, 0);
            all.without(row, 0);
        }
        let mut victims = Vec::new();
        if let Some(scope) = self.scopes.get(&metadata.scope) {
            for row in self.candidates(&scope.turns, metadata.id) {
                if own.has_room(charge) {
                    break;
                }
                own.without(row, grave(row));
                all.without(row, grave(row));
                victims.push(row.metadata.id);
            }
        }
        for row in self.candidates(&self.turns, metadata.id) {
            if all.has_room(charge) {
                break;
            }
            if !victims.contains(&row.metadata.id) {
                all.without(row, grave(row));
                victims.push(row.metadata.id);
            }
        }
        let fits = own.has_room_without_graves(charge) && all.has_room_without_graves(charge);
        if fits { Ok(victims) } else { Err(Refusal::Full) }
    }

    fn accounts(&self, limits: &Limits, scope: &str) -> (Account, Account) {
        let of_scope = self.scopes.get(scope);
        let own = Account {
            held: of_scope.map_or(0, |scope| scope.bytes),
            graves: self.graves.bytes_of(scope),
            n_rows: of_scope.map_or(0, |scope| scope.turns.len()),
            max_bytes: limits.scope_bytes,
            max_rows: limits.entries_per_scope,
        };
        let all = Account {
            held: self.bytes,
            graves: self.graves.bytes(),
            n_rows: self.rows.len(),
            max_bytes: limits.total_bytes,
            max_rows: usize::MAX,
        };
        (own, all)
    }

    fn candidates<'a>(
        &'a self,
        turns: &'a BTreeMap<u64, Uuid>,
        replaced: Uuid,
    ) -> impl Iterator<Item = &'a Row<B>> {
        let rows = turns.values().filter_map(|id| self.rows.get(id));
        rows.filter(move |row| !row.is_pinned() && row.metadata.id != replaced)
    }
}

fn grave<B>(row: &Row<B>) -> u64 {
    let metadata = &row.metadata;
    let (scope, rerun) = (metadata.scope.clone(), metadata.rerun());
    Tombstone { scope, reason: Reason::Evicted, rerun, at: 0 }.charge()
}
