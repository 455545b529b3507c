//! The one table of what a connection has asked and not been answered yet [CALL-7].
//!
//! An id is taken from the moment its request is read until the answer of its handler went out, or
//! would have gone out: a request that is cancelled keeps its id and its place until then.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::backlog::Backlog;
use crate::caller::{Leave, RequestKey, Turn, Turns};
use crate::wire::Id;

/// How many requests may be unanswered at once.
pub(crate) const MAX_REQUESTS: usize = 4096;

/// How many bytes of requests and unread answers there may be at once.
pub(crate) const MAX_BYTES: usize = 64 << 20;

/// How many answers are made at once.
const MAX_MAKERS: usize = 4;

/// Why a request is not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Its id belongs to a request that has not ended.
    IdTaken,
    /// Too much is asked and not answered, or answered and not read.
    Full,
}

/// The requests of one connection. Cloning shares them.
#[derive(Clone, Debug)]
pub(crate) struct Flights(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    table: Mutex<Table>,
    backlog: Arc<Backlog>,
    makers: Semaphore,
    turns: Turns,
}

#[derive(Debug, Default)]
struct Table {
    flights: HashMap<Id, Flight>,
    bytes: usize,
}

#[derive(Debug)]
struct Flight {
    cancelled: CancellationToken,
    bytes: usize,
    has_leave: bool,
}

impl Flights {
    /// Begins without a request; what was answered and is not read stands in `backlog`.
    pub(crate) fn new(backlog: Arc<Backlog>) -> Self {
        let (table, makers) = (Mutex::default(), Semaphore::new(MAX_MAKERS));
        Self(Arc::new(Shared { table, backlog, makers, turns: Turns::default() }))
    }

    /// Takes a request of so many bytes in.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(crate) fn begin(&self, id: &Id, bytes: usize) -> Result<InFlight, Refusal> {
        let mut table = self.table();
        let is_full = table.flights.len() >= MAX_REQUESTS || !self.has_room(&table, bytes);
        let Entry::Vacant(place) = table.flights.entry(id.clone()) else {
            return Err(Refusal::IdTaken);
        };
        if is_full {
            return Err(Refusal::Full);
        }
        let cancelled = CancellationToken::new();
        place.insert(Flight { cancelled: cancelled.clone(), bytes, has_leave: false });
        table.bytes += bytes;
        let (flights, id) = (self.clone(), id.clone());
        Ok(InFlight { flights, id, cancelled, arrival: Instant::now(), turn: None, key: None })
    }

    /// Notes that a client no longer wants the answer; `false` when there is no such request.
    pub(crate) fn cancel(&self, id: &Id) -> bool {
        let table = self.table();
        let flight = table.flights.get(id);
        flight.inspect(|flight| flight.cancelled.cancel()).is_some()
    }

    /// Tells whether the answer to a request is to be sent.
    pub(crate) fn is_wanted(&self, id: &Id) -> bool {
        self.table().flights.get(id).is_some_and(|flight| !flight.cancelled.is_cancelled())
    }

    /// Ends a request: its answer went out, or would have. The id is free from now on.
    pub(crate) fn end(&self, id: &Id) {
        let mut table = self.table();
        if let Some(flight) = table.flights.remove(id) {
            table.bytes -= flight.bytes;
            drop(table);
            if flight.has_leave {
                self.0.makers.add_permits(1);
            }
        }
    }

    fn has_room(&self, table: &Table, bytes: usize) -> bool {
        // One answer may be larger than all of them together may be: while it is read, others are asked.
        let unread = self.0.backlog.bytes().min(MAX_BYTES / 2);
        table.bytes.saturating_add(bytes).saturating_add(unread) <= MAX_BYTES
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request until it is answered.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    flights: Flights,
    id: Id,
    /// Fires when the client no longer wants the answer.
    pub(crate) cancelled: CancellationToken,
    /// When the request was read; wait budgets count from here [CALL-2].
    pub(crate) arrival: Instant,
    /// Its place among the calls of its connection.
    pub(crate) turn: Option<Arc<Turn>>,
    /// By what it is known again.
    pub(crate) key: Option<RequestKey>,
}

impl InFlight {
    /// Takes a place among the calls of the connection, whose work begins in the order of their lines.
    pub(crate) fn in_turn(mut self) -> Self {
        self.turn = Some(Arc::new(self.flights.0.turns.take()));
        self
    }

    /// Makes it known again by a key.
    pub(crate) fn asked_as(mut self, key: Option<RequestKey>) -> Self {
        self.key = key;
        self
    }

    /// Notes that the request has leave; `false` when it had it before, or is over.
    fn note_leave(&self) -> bool {
        let mut table = self.flights.table();
        let flight = table.flights.get_mut(&self.id);
        flight.is_some_and(|flight| !std::mem::replace(&mut flight.has_leave, true))
    }

    fn has_leave(&self) -> bool {
        self.flights.table().flights.get(&self.id).is_none_or(|flight| flight.has_leave)
    }
}

#[async_trait]
impl Leave for InFlight {
    fn try_now(&self) -> bool {
        if self.has_leave() {
            return true;
        }
        let Shared { backlog, makers, .. } = &*self.flights.0;
        if !backlog.has_room() {
            return false;
        }
        let Ok(permit) = makers.try_acquire() else { return false };
        if self.note_leave() {
            permit.forget();
        }
        true
    }

    async fn wait(&self) {
        let Shared { backlog, makers, .. } = &*self.flights.0;
        while !self.has_leave() {
            backlog.room().await;
            // The semaphore is never closed.
            let Ok(permit) = makers.acquire().await else { return };
            if backlog.has_room() && self.note_leave() {
                permit.forget();
            }
        }
    }

    fn give_back(&self) {
        let mut table = self.flights.table();
        let flight = table.flights.get_mut(&self.id);
        let had_leave =
            flight.is_some_and(|flight| std::mem::replace(&mut flight.has_leave, false));
        drop(table);
        if had_leave {
            self.flights.0.makers.add_permits(1);
        }
    }

    #[cfg(feature = "cache")]
    fn try_bring(&self, bytes: usize) -> bool {
        let mut table = self.flights.table();
        if !self.flights.has_room(&table, bytes) {
            return false;
        }
        // One that is over has no place any more, and its answer goes nowhere.
        let Some(flight) = table.flights.get_mut(&self.id) else { return false };
        flight.bytes += bytes;
        table.bytes += bytes;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flights(cap: usize) -> (Flights, Arc<Backlog>) {
        let backlog = Arc::new(Backlog::new(cap));
        (Flights::new(Arc::clone(&backlog)), backlog)
    }

    fn id(number: i64) -> Id {
        Id::Number(number)
    }

    #[test]
    fn an_id_is_free_when_its_handler_has_ended_and_not_when_it_is_cancelled() {
        // [CALL-7]
        let (flights, _) = flights(100);
        let one = flights.begin(&id(1), 10).expect("room");
        assert!(flights.is_wanted(&id(1)));
        assert!(flights.cancel(&id(1)) && one.cancelled.is_cancelled());
        assert!(!flights.is_wanted(&id(1)), "no answer after a cancel");
        assert_eq!(flights.begin(&id(1), 10).err(), Some(Refusal::IdTaken));
        flights.end(&id(1));
        assert!(flights.begin(&id(1), 10).is_ok());
        assert!(!flights.cancel(&id(2)), "a cancel of nothing");
    }

    #[test]
    fn requests_and_what_is_not_read_are_bounded_together() {
        // [CALL-7]
        let (flights, backlog) = flights(100);
        flights.begin(&id(1), MAX_BYTES - 50).expect("room");
        assert_eq!(flights.begin(&id(2), 51).err(), Some(Refusal::Full));
        backlog.add(20);
        assert_eq!(flights.begin(&id(2), 31).err(), Some(Refusal::Full));
        flights.begin(&id(2), 30).expect("room");
        flights.end(&id(1));
        backlog.remove(20);
        for n in 3..=4097 {
            flights.begin(&id(n), 1).expect("room");
        }
        assert_eq!(flights.begin(&id(9999), 1).err(), Some(Refusal::Full));
    }

    #[cfg(feature = "cache")]
    #[test]
    fn what_a_request_brings_along_counts_until_it_is_answered() {
        // [CALL-7]
        let (flights, backlog) = flights(100);
        let one = flights.begin(&id(1), 10).expect("room");
        let other = flights.begin(&id(2), 10).expect("room");
        assert!(one.try_bring(MAX_BYTES - 60) && !other.try_bring(41), "one table for all");
        backlog.add(10);
        assert!(!other.try_bring(31) && other.try_bring(30));
        assert_eq!(flights.begin(&id(3), 1).err(), Some(Refusal::Full));
        flights.end(&id(1));
        assert!(flights.begin(&id(3), MAX_BYTES - 50).is_ok());
        assert!(!one.try_bring(0), "it is answered");
    }

    #[tokio::test]
    async fn only_some_answers_are_made_at_once_and_none_while_the_client_does_not_read() {
        // [CALL-7]
        let (flights, backlog) = flights(100);
        let all: Vec<InFlight> = (0..9).map(|n| flights.begin(&id(n), 1).expect("room")).collect();
        let (some, rest) = all.split_at(MAX_MAKERS);
        assert!(some.iter().all(Leave::try_now) && some.iter().all(Leave::try_now));
        assert!(!rest.iter().any(Leave::try_now));
        some[0].give_back();
        assert!(rest[0].try_now() && !some[0].try_now());
        backlog.add(100);
        flights.end(&id(1));
        assert!(!rest[1].try_now(), "a place, but no room");
        let wait = rest[1].wait();
        let (mut wait, read) = (std::pin::pin!(wait), std::future::ready(()));
        tokio::select! { biased; () = &mut wait => panic!("no room"), () = read => {} }
        backlog.remove(1);
        wait.await;
        assert!(rest[1].try_now() && !rest[2].try_now());
    }
}
