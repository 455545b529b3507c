//! The questions of an attempt that are open just now [TASKS-6].

use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;

use raincheck_core::input::{MAX_OPEN, OpenInputs};

use crate::shards::lock;

/// What an attempt asks its caller just now.
#[derive(Debug)]
pub(crate) struct Asking {
    /// How many questions more may be open.
    pub(crate) places: Semaphore,
    /// Held while a question is put: two that differ are not put under one key.
    pub(crate) putting: tokio::sync::Mutex<()>,
    /// The keys that are waited for.
    awaited: Mutex<Vec<Arc<str>>>,
}

impl Default for Asking {
    fn default() -> Self {
        let (putting, awaited) = Default::default();
        Self { places: Semaphore::new(MAX_OPEN), putting, awaited }
    }
}

impl Asking {
    /// Returns the keys that are waited for.
    pub(crate) fn awaited(&self) -> OpenInputs {
        lock(&self.awaited).iter().map(|key| &**key).collect()
    }
}

/// Counts a key among those that are waited for.
pub(crate) struct Awaited<'a>(&'a Asking, Arc<str>);

impl<'a> Awaited<'a> {
    pub(crate) fn new(asking: &'a Asking, key: &Arc<str>) -> Self {
        lock(&asking.awaited).push(Arc::clone(key));
        Self(asking, Arc::clone(key))
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        let mut awaited = lock(&self.0.awaited);
        if let Some(at) = awaited.iter().position(|key| *key == self.1) {
            awaited.swap_remove(at);
        }
    }
}
