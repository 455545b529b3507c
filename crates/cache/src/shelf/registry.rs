//! The rows: who is held, for how long, at what cost, and who has to go. No bytes and no files here.
//!
//! Nothing reads a clock: every function takes `now`. Rows that went are left in [`Registry::take_gone`]
//! for whoever holds the bodies. What is charged is what is held: rows, bodies that a reader still
//! has though their row went, and tombstones.

mod budget;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use crate::shelf::entry::{Metadata, Miss, Reason};
use crate::shelf::graves::{Bounds, Graves, Tombstone};
use crate::shelf::life::{Life, Millis};

/// What a row takes beside its texts and its body: the row and its places in the maps.
pub(super) const ROW_FIXED: u64 = 768;

/// The budgets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) total_bytes: u64,
    pub(super) scope_bytes: u64,
    pub(super) entries_per_scope: usize,
    pub(super) life: Life,
    pub(super) graves: Bounds,
}

/// Why a body is not taken in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Refusal {
    /// It would not fit if it were alone.
    TooLarge { limit: u64 },
    /// What is in use leaves no room for it.
    Full,
}

/// A row: what is said of an entry, and its body.
#[derive(Clone, Debug)]
pub(super) struct Row<B> {
    pub(super) metadata: Metadata,
    pub(super) body: B,
    /// Bytes of its body and index.
    pub(super) held: u64,
    /// Tells this body from one that took its place under the same handle.
    pub(super) number: u64,
    turn: u64,
    pins: u32,
}

impl<B> Row<B> {
    /// Returns what it takes of the budgets.
    pub(super) fn charge(&self) -> u64 {
        charge(&self.metadata, self.held)
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.pins > 0
    }
}

/// Returns what an entry takes of the budgets.
pub(super) fn charge(metadata: &Metadata, held: u64) -> u64 {
    ROW_FIXED.saturating_add(metadata.text_bytes()).saturating_add(held)
}

/// A row that went.
#[derive(Debug)]
pub(super) struct Gone<B> {
    pub(super) row: Row<B>,
    /// Absent when another body took its place under the same handle.
    pub(super) reason: Option<Reason>,
    pub(super) at: Millis,
}

/// A body without a row that a reader still has.
#[derive(Debug)]
struct Lingering {
    scope: Arc<str>,
    charge: u64,
    pins: u32,
}

#[derive(Debug, Default)]
struct Scope {
    /// Its rows, the least recently used first.
    turns: BTreeMap<u64, Uuid>,
    /// Rows and lingering bodies.
    bytes: u64,
}

/// All rows.
#[derive(Debug)]
pub(super) struct Registry<B> {
    limits: Limits,
    rows: HashMap<Uuid, Row<B>>,
    scopes: HashMap<Arc<str>, Scope>,
    /// The least recently used first.
    turns: BTreeMap<u64, Uuid>,
    ends: BTreeSet<(Millis, Uuid)>,
    lingering: HashMap<u64, Lingering>,
    graves: Graves,
    gone: Vec<Gone<B>>,
    /// Rows and lingering bodies.
    bytes: u64,
    next: u64,
}

impl<B> Registry<B> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            rows: HashMap::new(),
            scopes: HashMap::new(),
            turns: BTreeMap::new(),
            ends: BTreeSet::new(),
            lingering: HashMap::new(),
            graves: Graves::new(limits.graves),
            gone: Vec::new(),
            bytes: 0,
            next: 0,
        }
    }

    /// Takes an entry in, as the one used last. Others go as the budgets ask; one of the same handle is replaced.
    ///
    /// # Errors
    /// When it cannot fit. Nothing went then.
    pub(super) fn put(
        &mut self,
        now: Millis,
        mut metadata: Metadata,
        body: B,
        held: u64,
    ) -> Result<&Row<B>, Refusal> {
        let id = metadata.id;
        for victim in self.make_room(&metadata, held)? {
            self.remove(now, victim, Some(Reason::Evicted));
        }
        self.remove(now, id, None);
        self.graves.remove(id);
        let number = self.next();
        let turn = self.next();
        metadata.expires_at = self.limits.life.end(metadata.created_at, metadata.last_access_at);
        let row = Row { metadata, body, held, number, turn, pins: 0 };
        let scope = self.scopes.entry(row.metadata.scope.clone()).or_default();
        scope.turns.insert(turn, id);
        scope.bytes += row.charge();
        self.bytes += row.charge();
        self.turns.insert(turn, id);
        self.ends.insert((row.metadata.expires_at, id));
        let scope = row.metadata.scope.clone();
        let row = &*self.rows.entry(id).insert_entry(row).into_mut();
        trim(&self.limits, &self.scopes, self.bytes, &mut self.graves, &scope);
        Ok(row)
    }

    /// Finds an entry and counts a read: its life slides, it is the one used last, and it is pinned.
    ///
    /// # Errors
    /// When it is gone, or is not this scope's.
    pub(super) fn pin(&mut self, now: Millis, scope: &str, id: Uuid) -> Result<&Row<B>, Miss> {
        self.look(now, scope, id)?;
        let turn = self.next();
        let Some(row) = self.rows.get_mut(&id) else { return Err(Miss::UNKNOWN) };
        let metadata = &mut row.metadata;
        self.ends.remove(&(metadata.expires_at, id));
        metadata.last_access_at = now;
        metadata.access_count += 1;
        metadata.expires_at = self.limits.life.end(metadata.created_at, now);
        self.ends.insert((metadata.expires_at, id));
        self.turns.remove(&row.turn);
        self.turns.insert(turn, id);
        if let Some(scope) = self.scopes.get_mut(scope) {
            scope.turns.remove(&row.turn);
            scope.turns.insert(turn, id);
        }
        row.turn = turn;
        row.pins += 1;
        Ok(row)
    }

    /// Pins an entry that was just taken in. That is no read.
    pub(super) fn hold(&mut self, id: Uuid) {
        if let Some(row) = self.rows.get_mut(&id) {
            row.pins += 1;
        }
    }

    /// Ends one [`Registry::pin`] or [`Registry::hold`] of a body.
    pub(super) fn unpin(&mut self, id: Uuid, number: u64) {
        if let Some(row) = self.rows.get_mut(&id).filter(|row| row.number == number) {
            row.pins = row.pins.saturating_sub(1);
            return;
        }
        let Some(lingering) = self.lingering.get_mut(&number) else { return };
        lingering.pins = lingering.pins.saturating_sub(1);
        if lingering.pins == 0 {
            let (scope, charge) = (lingering.scope.clone(), lingering.charge);
            self.lingering.remove(&number);
            self.release(&scope, charge);
        }
    }

    /// Finds an entry, and counts nothing.
    ///
    /// # Errors
    /// As [`Registry::pin`].
    pub(super) fn look(&mut self, now: Millis, scope: &str, id: Uuid) -> Result<&Row<B>, Miss> {
        if self.rows.get(&id).is_some_and(|row| row.metadata.expires_at <= now) {
            self.remove(now, id, Some(Reason::Expired));
        }
        match self.rows.get(&id).filter(|row| &*row.metadata.scope == scope) {
            Some(row) => Ok(row),
            None => Err(self.miss(now, scope, id)),
        }
    }

    fn miss(&self, now: Millis, scope: &str, id: Uuid) -> Miss {
        self.graves.get(now, scope, id).map_or(Miss::UNKNOWN, |grave| Miss {
            reason: grave.reason,
            rerun: Some(grave.rerun.clone()),
        })
    }

    /// Returns a row by its handle alone.
    pub(super) fn row(&self, id: Uuid) -> Option<&Row<B>> {
        self.rows.get(&id)
    }

    /// Returns the rows of a scope, the one used last first.
    pub(super) fn list(&self, scope: &str) -> impl Iterator<Item = &Row<B>> {
        let turns = self.scopes.get(scope).map(|scope| scope.turns.values().rev());
        turns.into_iter().flatten().filter_map(|id| self.rows.get(id))
    }

    /// Returns all rows, the least recently used first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Row<B>> {
        self.turns.values().filter_map(|id| self.rows.get(id))
    }

    /// Returns all tombstones, the oldest first.
    pub(super) fn graves(&self) -> impl Iterator<Item = (Uuid, &Tombstone)> {
        self.graves.iter()
    }

    /// Adds a tombstone for a handle that was given before this registry was.
    pub(super) fn bury(&mut self, id: Uuid, grave: Tombstone) {
        let scope = grave.scope.clone();
        self.graves.add(id, grave);
        trim(&self.limits, &self.scopes, self.bytes, &mut self.graves, &scope);
    }

    /// Replaces the body by one of the same bytes in another form. False when the row is another one by now.
    pub(super) fn swap(&mut self, id: Uuid, number: u64, body: B, held: u64) -> bool {
        let Some(row) = self.rows.get_mut(&id).filter(|row| row.number == number) else {
            return false;
        };
        row.body = body;
        self.recharge(id, held);
        true
    }

    /// Corrects what body and index of a row take.
    fn recharge(&mut self, id: Uuid, held: u64) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        let before = row.charge();
        row.held = held;
        let after = row.charge();
        self.bytes = self.bytes - before + after;
        if let Some(scope) = self.scopes.get_mut(&row.metadata.scope) {
            scope.bytes = scope.bytes - before + after;
        }
    }

    /// Evicts what the budgets have no room for since a row was found to take more.
    pub(super) fn fit(&mut self, now: Millis, scope: &str) {
        while self.bytes_of(scope) > self.limits.scope_bytes {
            let victim = self.list(scope).filter(|row| !row.is_pinned()).last();
            let Some(id) = victim.map(|row| row.metadata.id) else { break };
            self.remove(now, id, Some(Reason::Evicted));
        }
        while self.bytes() > self.limits.total_bytes {
            let victim = self.iter().find(|row| !row.is_pinned());
            let Some(id) = victim.map(|row| row.metadata.id) else { break };
            self.remove(now, id, Some(Reason::Evicted));
        }
        trim(&self.limits, &self.scopes, self.bytes, &mut self.graves, scope);
    }

    /// Takes an entry out; false when there is none. A pinned body goes on being charged until it is unpinned.
    pub(super) fn remove(&mut self, now: Millis, id: Uuid, reason: Option<Reason>) -> bool {
        let Some(row) = self.rows.remove(&id) else { return false };
        let metadata = &row.metadata;
        self.turns.remove(&row.turn);
        self.ends.remove(&(metadata.expires_at, id));
        if let Some(scope) = self.scopes.get_mut(&metadata.scope) {
            scope.turns.remove(&row.turn);
        }
        if row.is_pinned() {
            let scope = metadata.scope.clone();
            let lingering = Lingering { scope, charge: row.charge(), pins: row.pins };
            self.lingering.insert(row.number, lingering);
        } else {
            self.release(&metadata.scope.clone(), row.charge());
        }
        // The time of a tombstone runs from the end of the life, however late that was noticed.
        let at = if reason == Some(Reason::Expired) { row.metadata.expires_at } else { now };
        if let Some(reason) = reason {
            let (scope, rerun) = (row.metadata.scope.clone(), row.metadata.rerun());
            self.bury(id, Tombstone { scope, reason, rerun, at });
        }
        self.gone.push(Gone { row, reason, at });
        true
    }

    fn release(&mut self, name: &Arc<str>, charge: u64) {
        self.bytes -= charge;
        let Some(scope) = self.scopes.get_mut(name) else { return };
        scope.bytes -= charge;
        if scope.bytes == 0 {
            self.scopes.remove(name);
        }
    }

    /// Takes out what has expired, and forgets tombstones that are past their time.
    pub(super) fn tick(&mut self, now: Millis) {
        while let Some((_, id)) = self.ends.first().filter(|(end, _)| *end <= now) {
            self.remove(now, *id, Some(Reason::Expired));
        }
        self.graves.tick(now);
    }

    /// Returns when [`Registry::tick`] has something to do.
    pub(super) fn next_end(&self) -> Option<Millis> {
        let row = self.ends.first().map(|(end, _)| *end);
        row.into_iter().chain(self.graves.next_end()).min()
    }

    /// Returns the rows that went since the last call.
    pub(super) fn take_gone(&mut self) -> Vec<Gone<B>> {
        std::mem::take(&mut self.gone)
    }

    /// Returns what a scope holds.
    pub(super) fn bytes_of(&self, scope: &str) -> u64 {
        self.scopes.get(scope).map_or(0, |scope| scope.bytes) + self.graves.bytes_of(scope)
    }

    /// Returns what all scopes hold.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes + self.graves.bytes()
    }

    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// Drops the oldest tombstones where they stand in the way of what is held.
fn trim(
    limits: &Limits,
    scopes: &HashMap<Arc<str>, Scope>,
    bytes: u64,
    graves: &mut Graves,
    scope: &str,
) {
    let held = scopes.get(scope).map_or(0, |scope| scope.bytes);
    while held + graves.bytes_of(scope) > limits.scope_bytes && graves.drop_oldest_of(scope) {}
    while bytes + graves.bytes() > limits.total_bytes && graves.drop_oldest() {}
}
