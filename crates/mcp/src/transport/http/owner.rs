//! What one owner has asked for and has not read yet, over all of its connections [CALL-7].

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use raincheck_core::scope::Scope;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::server::{Backlog, Flights, InFlight, Refusal};
use crate::wire::Id;

/// How many bytes of answers an owner may leave unread before no further answer is made.
const CAP: usize = 32 << 20;

/// How many bytes of an owner's bodies are read at once; further ones wait.
const BODIES: usize = 64 << 20;

/// How many owners are remembered before those that have nothing any more are forgotten.
const SWEEP: usize = 64;

/// One owner.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) scope: Scope,
    pub(super) backlog: Arc<Backlog>,
    bodies: Semaphore,
    flights: Flights,
    next: AtomicI64,
}

impl Owner {
    fn new(scope: Scope) -> Self {
        let backlog = Arc::new(Backlog::new(CAP));
        let flights = Flights::new(Arc::clone(&backlog));
        let bodies = Semaphore::new(BODIES);
        Self { scope, backlog, bodies, flights, next: AtomicI64::new(0) }
    }

    /// Waits for room to read a body of so many bytes, in the order of asking.
    ///
    /// # Cancel safety
    /// Safe: the place in line is given up.
    pub(super) async fn room(&self, n_bytes: usize) -> Option<SemaphorePermit<'_>> {
        let n_bytes = u32::try_from(n_bytes.min(BODIES)).unwrap_or(u32::MAX);
        self.bodies.acquire_many(n_bytes).await.ok()
    }

    /// Takes a request of so many bytes in.
    ///
    /// # Errors
    /// When the owner has asked too much already.
    pub(super) fn begin(self: &Arc<Self>, n_bytes: usize) -> Result<(Place, InFlight), Refusal> {
        // Ids of requests are their connections' own, so that the table has ids of its own.
        let id = Id::Number(self.next.fetch_add(1, Ordering::Relaxed));
        let flight = self.flights.begin(&id, n_bytes)?;
        Ok((Place { owner: Arc::clone(self), id }, flight))
    }
}

/// A request's place in the table; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    owner: Arc<Owner>,
    id: Id,
}

impl Place {
    /// Tells whether the answer is to be sent.
    pub(super) fn is_wanted(&self) -> bool {
        self.owner.flights.is_wanted(&self.id)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.owner.flights.end(&self.id);
    }
}

/// The owners that have something here.
#[derive(Debug, Default)]
pub(super) struct Owners(Mutex<HashMap<Scope, Weak<Owner>>>);

impl Owners {
    /// Finds an owner, or begins one.
    pub(super) fn of(&self, scope: &Scope) -> Arc<Owner> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(owner) = table.get(scope).and_then(Weak::upgrade) {
            return owner;
        }
        if table.len() >= SWEEP {
            table.retain(|_, owner| owner.strong_count() > 0);
        }
        let owner = Arc::new(Owner::new(scope.clone()));
        table.insert(scope.clone(), Arc::downgrade(&owner));
        owner
    }
}
