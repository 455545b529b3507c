//! A map by task identity, cut into shards so that many attempts do not queue for one lock.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use raincheck_core::ids::TaskId;

const N_SHARDS: usize = 16;

pub(crate) type Map<V> = HashMap<TaskId, V, BuildHasherDefault<ByRandomBits>>;

/// Maps task identities to values.
#[derive(Debug)]
pub(crate) struct Shards<V>([Mutex<Map<V>>; N_SHARDS]);

impl<V> Shards<V> {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }

    /// Locks the part that a task belongs to.
    #[expect(clippy::indexing_slicing, reason = "the index is taken modulo the number of shards")]
    pub(crate) fn of(&self, id: TaskId) -> MutexGuard<'_, Map<V>> {
        lock(&self.0[(id.bits() as usize >> 32) % N_SHARDS])
    }

    /// Goes through the parts one by one.
    pub(crate) fn each(&self, mut visit: impl FnMut(&mut Map<V>)) {
        for shard in &self.0 {
            visit(&mut lock(shard));
        }
    }
}

/// Locks a mutex whose critical sections cannot leave it half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the random low bits of an identity as their own hash.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ByRandomBits(u64);

impl Hasher for ByRandomBits {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low half is the random one")]
    fn write_u128(&mut self, bits: u128) {
        self.0 = bits as u64;
    }
}
