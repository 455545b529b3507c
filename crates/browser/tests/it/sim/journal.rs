//! What a simulated extension knows of commands; it outlives its worker.

use std::collections::BTreeMap;

/// Where a command is, as the extension knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Delivered, and not confirmed: it has not run.
    Received,
    /// Confirmed by the server.
    Accepted,
    /// Under way.
    Running,
    /// It has an answer.
    Answered,
    /// The server gave its verdict on the answer.
    Settled,
}

/// One command.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) attempt: u64,
    pub(crate) fence: u64,
    pub(crate) tab: i64,
    pub(crate) script: String,
    pub(crate) deadline_ms: u64,
    pub(crate) stage: Stage,
    /// The rest of the item that tells how it ended.
    pub(crate) answer: Option<String>,
    /// The value that it returned.
    pub(crate) value: Option<String>,
    /// Its place in the order of delivery.
    pub(crate) place: u64,
}

/// Every command that was delivered.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pub(crate) records: BTreeMap<String, Record>,
    pub(crate) n_sessions: u64,
    pub(crate) n_placed: u64,
}

impl Journal {
    pub(crate) fn get(&self, id: &str) -> Option<Record> {
        self.records.get(id).cloned()
    }

    /// Changes a record that is in one of the stages; `None` when it is not.
    pub(crate) fn change(
        &mut self,
        id: &str,
        stages: &[Stage],
        edit: impl FnOnce(&mut Record),
    ) -> Option<Record> {
        let record = self.records.get_mut(id).filter(|it| stages.contains(&it.stage))?;
        edit(record);
        Some(record.clone())
    }

    /// The records in a stage, in the order of their delivery.
    pub(crate) fn all(&self, stage: Stage) -> Vec<Record> {
        let mut all: Vec<Record> =
            self.records.values().filter(|it| it.stage == stage).cloned().collect();
        all.sort_by_key(|it| it.place);
        all
    }
}
