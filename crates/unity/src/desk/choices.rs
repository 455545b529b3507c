//! Which editor each caller has selected.

use std::collections::BTreeMap;
use std::sync::Arc;

use raincheck_core::scope::Scope;

use super::Key;

/// How many callers may have selected one.
const MAX: usize = 1024;

/// The editors that were selected, and by whom.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    chosen: BTreeMap<Scope, (u64, Key)>,
    n: u64,
}

impl Choices {
    pub(crate) fn of(&self, scope: &Scope) -> Option<&Key> {
        self.chosen.get(scope).map(|(_, key)| key)
    }

    /// Takes down a choice. With too many the oldest is forgotten.
    pub(crate) fn choose(&mut self, scope: &Scope, key: &Key) {
        if self.chosen.len() >= MAX && !self.chosen.contains_key(scope) {
            let oldest =
                self.chosen.iter().min_by_key(|(_, (n, _))| *n).map(|(scope, _)| scope.clone());
            oldest.into_iter().for_each(|scope| {
                self.chosen.remove(&scope);
            });
        }
        self.n += 1;
        self.chosen.insert(scope.clone(), (self.n, Arc::clone(key)));
    }
}
