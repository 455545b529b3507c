//! A ledger from which what has ended is taken out behaves as one that holds everything [DUR-8].

use std::collections::BTreeMap;

use raincheck_core::ids::TaskId;
use raincheck_core::ledger::{Applied, Command, Ledger};
use raincheck_core::lifecycle::State;
use raincheck_core::task::TaskRecord;
use raincheck_core::time::Timestamp;

use crate::ledger::explore;
use crate::machine::Machine;

/// What brings a task back.
const BY_ID: u8 = 1;
const BY_KEY: u8 = 2;
const BY_TIME: u8 = 4;

/// A ledger that holds only what lives. Before a command that touches more, that is brought back;
/// `RECALLS` says by what.
struct Evicting<const RECALLS: u8> {
    live: Ledger,
    away: BTreeMap<TaskId, TaskRecord>,
    /// Everything, to be looked at.
    ledger: Ledger,
}

impl<const RECALLS: u8> Evicting<RECALLS> {
    fn recall(&mut self, is_wanted: impl Fn(&TaskRecord) -> bool) {
        for (_, record) in self.away.extract_if(.., |_, record| is_wanted(record)) {
            self.live.recall(record);
        }
    }

    fn prepare(&mut self, now: Timestamp, command: &Command) {
        match command {
            Command::Submit(batch) if RECALLS & BY_KEY != 0 => self.recall(|record| {
                let is_kept = record.state != State::Expired;
                is_kept && batch.iter().any(|(task, _)| task.key == record.task.key)
            }),
            Command::Update(batch) if RECALLS & BY_ID != 0 => {
                self.recall(|record| batch.iter().any(|update| update.id == record.id()));
            }
            Command::Fire { .. } if RECALLS & BY_TIME != 0 => {
                self.recall(|record| record.expires_at().is_some_and(|at| at <= now));
            }
            Command::Sweep { .. } if RECALLS & BY_TIME != 0 => {
                self.recall(|record| record.state == State::Expired);
            }
            _ => {}
        }
    }

    fn evict(&mut self) {
        for record in self.live.snapshot().rows {
            let evicted = self.live.evict(record.id());
            assert_eq!(evicted.is_none(), self.live.get(record.id()).is_some());
            self.away.extend(evicted.map(|record| (record.id(), record)));
        }
        self.ledger = self.live.clone();
        self.away.values().for_each(|record| self.ledger.recall(record.clone()));
    }
}

impl<const RECALLS: u8> Machine for Evicting<RECALLS> {
    fn new(ledger: Ledger) -> Self {
        let mut machine = Self { ledger: ledger.clone(), live: ledger, away: BTreeMap::new() };
        machine.evict();
        machine
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn apply(&mut self, now: Timestamp, command: Command) -> Applied {
        self.prepare(now, &command);
        let applied = self.live.apply(now, command);
        self.evict();
        applied
    }
}

#[test]
fn what_has_ended_may_be_away_until_it_is_wanted() {
    if let Err(difference) = explore::<Evicting<{ BY_ID | BY_KEY | BY_TIME }>>(300) {
        panic!("{difference}");
    }
}

#[test]
fn each_way_back_is_needed() {
    assert!(
        explore::<Evicting<{ BY_KEY | BY_TIME }>>(300).is_err(),
        "an event of one that is away"
    );
    assert!(explore::<Evicting<{ BY_ID | BY_TIME }>>(300).is_err(), "a key of one that is away");
    assert!(
        explore::<Evicting<{ BY_ID | BY_KEY }>>(300).is_err(),
        "a deadline of one that is away"
    );
}
