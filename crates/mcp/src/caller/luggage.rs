//! What a request brings along beside its line.

use std::sync::Arc;
use std::time::Duration;

use raincheck_core::error::{Error, Guarantee, Kind};

use super::Leave;

/// Counts what a request brings along beside its line, wherever that is read [CALL-7].
#[derive(Clone, Debug)]
pub(crate) struct Luggage(pub(super) Option<Arc<dyn Leave>>);

impl Luggage {
    /// Counts so many bytes more until the request is answered.
    ///
    /// # Errors
    /// `queue_full` when the connection has asked too much already.
    pub(crate) fn bring(&self, bytes: usize) -> Result<(), Error> {
        if self.0.as_ref().is_none_or(|leave| leave.try_bring(bytes)) {
            return Ok(());
        }
        let message =
            "what the arguments refer to is too much beside what is asked and not answered yet";
        Err(Error::new(Kind::QueueFull, message)
            .with_guarantee(Guarantee::NotExecuted)
            .with_retry_after(RETRY)
            .with_hint("read the answers that are due and call again, or name a part with `path`"))
    }
}

/// When there may be room again.
const RETRY: Duration = Duration::from_secs(1);
