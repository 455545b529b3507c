//! What the tests drive: a ledger, or a ledger with a planted fault, and the disk its effects make.

use std::collections::BTreeMap;

use raincheck_core::ids::{Fence, TaskId};
use raincheck_core::ledger::{Applied, Command, Effect, Ledger, Snapshot};
use raincheck_core::slot::Slot;
use raincheck_core::task::{Outcome, TaskRecord};
use raincheck_core::time::Timestamp;

/// A ledger as its callers see it.
pub(crate) trait Machine {
    fn new(ledger: Ledger) -> Self;
    fn ledger(&self) -> &Ledger;
    fn apply(&mut self, now: Timestamp, command: Command) -> Applied;
    fn restarted(disk: &Disk) -> Self
    where
        Self: Sized,
    {
        let mut ledger = Ledger::restore(disk.snapshot());
        ledger.begin_epoch();
        Self::new(ledger)
    }
}

impl Machine for Ledger {
    fn new(ledger: Ledger) -> Self {
        ledger
    }

    fn ledger(&self) -> &Ledger {
        self
    }

    fn apply(&mut self, now: Timestamp, command: Command) -> Applied {
        Self::apply(self, now, command)
    }
}

/// What a durable store would hold: the effects, applied in order.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    shape: Snapshot,
    rows: BTreeMap<u64, TaskRecord>,
    slots: BTreeMap<(TaskId, Fence), Slot>,
    ends: BTreeMap<TaskId, u32>,
}

impl Disk {
    pub(crate) fn of(ledger: &Ledger) -> Self {
        Self {
            shape: ledger.snapshot(),
            rows: BTreeMap::new(),
            slots: BTreeMap::new(),
            ends: BTreeMap::new(),
        }
    }

    /// Keeps effects and checks that each follows the one before.
    pub(crate) fn keep(&mut self, effects: &[Effect]) -> Result<(), String> {
        for effect in effects {
            self.keep_one(effect)?;
        }
        Ok(())
    }

    fn keep_one(&mut self, effect: &Effect) -> Result<(), String> {
        match effect {
            Effect::Inserted { record, event } => {
                self.shape.next_seq = self.shape.next_seq.max(record.seq + 1);
                if event.from.is_some() || event.to != record.state {
                    return Err(format!("{event:?} does not begin a history"));
                }
                self.rows.insert(record.seq, record.clone());
            }
            Effect::Moved { record, event, outcome, .. } => {
                let before =
                    self.rows.get(&record.seq).ok_or("a task moved before it was there")?;
                if let Some(event) = event {
                    let chains = event.from == Some(before.state)
                        && event.seq == before.n_events + 1
                        && event.to == record.state;
                    if !chains {
                        return Err(format!("[STATE-4] {event:?} does not follow {before:?}"));
                    }
                } else if before.state != record.state {
                    return Err("[STATE-4] a state moved without an event".to_owned());
                }
                self.count_end(record, outcome.as_ref())?;
                self.rows.insert(record.seq, record.clone());
            }
            Effect::Late { record, .. } => {
                self.rows.insert(record.seq, record.clone());
            }
            Effect::Taken(slot) => {
                self.shape.next_fence = self.shape.next_fence.max(slot.fence.raw() + 1);
                if self.slots.keys().any(|(task, _)| *task == slot.task) {
                    return Err("[QUEUE-6] two attempts of one task hold slots".to_owned());
                }
                self.slots.insert((slot.task, slot.fence), slot.clone());
            }
            Effect::Heard(slot) => {
                let kept = self.slots.get_mut(&(slot.task, slot.fence));
                *kept.ok_or("a holder was heard of that holds nothing")? = slot.clone();
            }
            Effect::Freed { task, fence } => {
                self.slots.remove(&(*task, *fence)).ok_or("a slot was freed twice")?;
            }
            Effect::Forgotten(id) => self.rows.retain(|_, record| record.id() != *id),
        }
        Ok(())
    }

    fn count_end(&mut self, record: &TaskRecord, outcome: Option<&Outcome>) -> Result<(), String> {
        if outcome.is_none() {
            return Ok(());
        }
        let ends = self.ends.entry(record.id()).or_default();
        *ends += 1;
        if *ends > 1 { Err(format!("[STATE-2] {} ended twice", record.id())) } else { Ok(()) }
    }

    /// Takes over the instants that heartbeats moved; a durable store writes them with the beat.
    pub(crate) fn with_leases_of(&self, ledger: &Ledger) -> Self {
        let mut disk = self.clone();
        disk.shape = ledger.snapshot();
        for record in &disk.shape.rows {
            if let Some(kept) = disk.rows.get_mut(&record.seq) {
                kept.deadlines = record.deadlines;
            }
        }
        for slot in &disk.shape.slots {
            if let Some(kept) = disk.slots.get_mut(&(slot.task, slot.fence)) {
                kept.lease = slot.lease;
            }
        }
        disk
    }

    /// Keeps the epoch that a restarted ledger began.
    pub(crate) fn begin_epoch(&mut self, ledger: &Ledger) {
        self.shape.next_fence = ledger.snapshot().next_fence;
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut slots: Vec<_> = self.slots.values().cloned().collect();
        slots.sort_by(|a, b| (&a.lane, a.task).cmp(&(&b.lane, b.task)));
        Snapshot { rows: self.rows.values().cloned().collect(), slots, ..self.shape.clone() }
    }

    /// Compares what is on disk with what is in memory, but for what only heartbeats move.
    pub(crate) fn agrees(&self, ledger: &Ledger) -> Result<(), String> {
        let plain = |snapshot: &Snapshot| {
            let rows: Vec<_> = snapshot
                .rows
                .iter()
                .map(|r| (r.id(), r.seq, r.state, r.attempt, r.fence, r.n_events, r.cancel.clone()))
                .collect();
            let slots: Vec<_> =
                snapshot.slots.iter().map(|s| (s.lane.clone(), s.task, s.fence, s.heard)).collect();
            (rows, slots, snapshot.next_seq, snapshot.next_fence)
        };
        let (disk, memory) = (plain(&self.snapshot()), plain(&ledger.snapshot()));
        if disk == memory {
            return Ok(());
        }
        Err(format!("[DUR-2] the effects give\n{disk:?}\nthe ledger holds\n{memory:?}"))
    }
}
