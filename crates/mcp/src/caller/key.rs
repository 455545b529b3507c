//! By what a request is known again that another process asks a second time [ATTACH-6].

use std::sync::Arc;

use raincheck_core::idempotency::REQUEST;
use raincheck_runtime::{AskedBefore, Request, Submission};

/// The key of one request of an attached process: no other request has it, and the same request has it
/// again when it is asked of the next owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestKey {
    text: Arc<str>,
    /// Set when an owner that is gone was asked before.
    pub(crate) repeat: Option<Repeat>,
}

/// A request that an owner was asked before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It may be done a second time.
    Free,
    /// It is done where it is certain that it was not done before.
    Of(AskedBefore),
}

impl RequestKey {
    /// Names a request by its process and its number there. The first character is one that no caller
    /// writes by chance: keys of callers stand in the same table.
    pub(crate) fn new(process: &str, number: u64, repeat: Option<Repeat>) -> Self {
        Self { text: format!("{REQUEST}{process}/{number}").into(), repeat }
    }

    /// Returns the key.
    pub(crate) fn text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// Gives the key to a submit that has none of its own; tells whether it did.
    pub(crate) fn mark(&self, request: &mut Request) -> bool {
        if let Some(Repeat::Of(before)) = &self.repeat {
            request.before = Some(before.clone());
        }
        let is_bare = request.key.is_none();
        if is_bare {
            request.key = Some(Arc::clone(&self.text));
        }
        is_bare
    }

    /// Makes a submission that was found by this key the call's own: its caller does not know of a first
    /// time.
    pub(crate) fn own(submission: &mut Submission) {
        if let Submission::Task(accepted) = submission {
            accepted.existing = false;
        }
    }
}
