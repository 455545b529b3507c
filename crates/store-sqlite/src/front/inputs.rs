//! What queued tasks were given, as long as it is wanted and there is room for it.

use std::collections::BTreeMap;

use raincheck_core::content::Json;
use raincheck_core::ids::TaskId;

/// How many bytes of committed inputs stay in memory; the others are read when they are wanted.
const KEPT: usize = 8 << 20;

/// What an input that is kept costs beside its text.
const OVERHEAD: usize = 64;

/// Inputs by task: all that are not committed, and some of those that are.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    items: BTreeMap<TaskId, Item>,
    /// The bytes of committed ones.
    kept: usize,
}

#[derive(Debug)]
struct Item {
    inputs: Json,
    is_committed: bool,
    /// Set once the task was leased: nobody asks again but for another attempt.
    is_spent: bool,
}

impl Item {
    fn size(&self) -> usize {
        self.inputs.get().len() + OVERHEAD
    }
}

impl Inputs {
    pub(super) fn give(&mut self, id: TaskId, inputs: Json) {
        self.items.insert(id, Item { inputs, is_committed: false, is_spent: false });
    }

    /// Returns inputs; what is not here is on the disk.
    pub(super) fn get(&self, id: TaskId) -> Option<Json> {
        self.items.get(&id).map(|item| item.inputs.clone())
    }

    /// Marks the inputs of a task that was leased or has ended.
    pub(super) fn spend(&mut self, id: TaskId) {
        let Some(item) = self.items.get_mut(&id) else { return };
        item.is_spent = true;
        if item.is_committed {
            self.kept -= item.size();
            self.items.remove(&id);
        }
    }

    /// Marks inputs that are on the disk.
    pub(super) fn commit(&mut self, id: TaskId) {
        let Some(item) = self.items.get_mut(&id).filter(|item| !item.is_committed) else { return };
        item.is_committed = true;
        let size = item.size();
        if item.is_spent || self.kept + size > KEPT {
            self.items.remove(&id);
        } else {
            self.kept += size;
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> TaskId {
        TaskId::from_parts(n, [0; 10])
    }

    fn text(length: usize) -> Json {
        Json::parse(format!("\"{}\"", "x".repeat(length))).expect("JSON")
    }

    #[test]
    fn what_is_not_committed_is_always_here() {
        let mut inputs = Inputs::default();
        inputs.give(id(1), text(2 * KEPT));
        inputs.spend(id(1));
        assert!(inputs.get(id(1)).is_some());
        inputs.commit(id(1));
        assert!(inputs.get(id(1)).is_none());
    }

    #[test]
    fn what_is_committed_stays_while_there_is_room_and_use() {
        let mut inputs = Inputs::default();
        for n in 0..10 {
            inputs.give(id(n), text(KEPT / 4));
            inputs.commit(id(n));
        }
        assert!(inputs.kept <= KEPT);
        assert!(inputs.get(id(0)).is_some() && inputs.get(id(9)).is_none());
        for n in 0..10 {
            inputs.spend(id(n));
        }
        assert!(inputs.items.is_empty() && inputs.kept == 0);
    }
}
