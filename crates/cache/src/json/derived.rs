//! What other rooms have worked out of a body, held as long as its index.

use std::{
    any::Any,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// Something worked out of a body, to be had again without reading it.
pub(crate) trait Derived: Any + Send + Sync {
    /// Returns the number of bytes that it holds on the heap.
    fn heap_bytes(&self) -> usize;
}

/// One of each type, made when it is first asked for.
#[derive(Default)]
pub(super) struct AllDerived(Mutex<Vec<Arc<dyn Derived>>>);

impl fmt::Debug for AllDerived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllDerived").finish_non_exhaustive()
    }
}

impl AllDerived {
    pub(super) fn get<T: Derived + Default>(&self) -> Arc<T> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let as_asked = |one: &Arc<dyn Derived>| {
            let one: Arc<dyn Any + Send + Sync> = one.clone();
            one.downcast::<T>().ok()
        };
        all.iter().find_map(as_asked).unwrap_or_else(|| {
            let new = Arc::new(T::default());
            all.push(new.clone());
            new
        })
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|one| one.heap_bytes()).sum()
    }
}
