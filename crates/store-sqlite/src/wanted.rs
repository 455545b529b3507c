//! What a command depends on beside what lives [DUR-8].

use std::sync::Arc;

use raincheck_core::ids::{TaskId, ToolName};
use raincheck_core::scope::Scope;
use raincheck_core::task::Task;

use crate::front::Front;
use crate::settled::Key;

/// What a command depends on beside what lives.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) ids: Vec<TaskId>,
    pub(crate) keys: Vec<(Key, Scope, ToolName, Arc<str>)>,
}

impl Wanted {
    pub(crate) fn tasks(ids: impl IntoIterator<Item = TaskId>) -> Self {
        Self { ids: ids.into_iter().collect(), keys: Vec::new() }
    }

    /// The tasks that the keys of new ones may stand for [IDEM-1].
    pub(crate) fn keys_of<'t>(tasks: impl Iterator<Item = &'t Task>) -> Self {
        let key = |task: &Task| {
            let key = Key::of(task)?;
            Some((key, task.scope.clone(), task.tool.clone(), task.key.clone()?))
        };
        Self { ids: Vec::new(), keys: tasks.filter_map(key).collect() }
    }

    /// Whether something of it may only be on the disk.
    pub(crate) fn is_away(&self, front: &Front) -> bool {
        let is_here = |id: &TaskId| front.ledger.get(*id).is_some();
        let is_known = |(key, scope, tool, word): &(Key, Scope, ToolName, Arc<str>)| {
            !front.settled.may_have(*key) || front.ledger.keyed(scope, tool, word).is_some()
        };
        !self.ids.iter().all(is_here) || !self.keys.iter().all(is_known)
    }
}
