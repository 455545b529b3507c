//! Asking the caller of a task for something while it runs [TASKS-6].

use std::fmt::Display;

use tokio::time::sleep;

use raincheck_core::content::Json;
use raincheck_core::decide::Change;
use raincheck_core::error::{Error, Kind};
use raincheck_core::input::{InputRequest, MAX_INPUTS};
use raincheck_core::store::{Found, Update, UpdateResult};

use super::TaskContext;
use crate::asking::Awaited;
use crate::kernel::PAUSE;

impl TaskContext {
    /// Asks the caller of the task something, and waits for the answer: the task is `input_required`
    /// meanwhile, and its run limit does not count. It has [`Limits::input`](raincheck_core::task::Limits)
    /// to be answered.
    ///
    /// The question and its answer are kept with the task. A question that was answered before, in an
    /// earlier attempt too, is not asked again: its answer is returned at once. Up to 16 questions may be open at
    /// the same time, by `tokio::join!` for instance; they may be answered in any order, and the task goes on
    /// when none is left. A further one waits for its place.
    ///
    /// The answer comes from outside: read it as you read inputs.
    ///
    /// ```
    /// use raincheck_core::content::Json;
    /// use raincheck_core::error::Error;
    /// use raincheck_core::input::InputRequest;
    /// use raincheck_runtime::TaskContext;
    /// use serde_json::json;
    ///
    /// async fn ask(context: &TaskContext) -> Result<Json, Error> {
    ///     let schema = json!({"type": "object", "properties": {"sure": {"type": "boolean"}}});
    ///     let question = InputRequest::elicitation("delete", "Delete 3 files?", &schema);
    ///     context.request_input(question.expect("a schema can be written")).await
    /// }
    /// ```
    ///
    /// # Errors
    /// `invalid_request` for a question that is too long, or differs from the one that was asked under its
    /// key before; `cancelled` when the task is to end; what the store says.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the question open until it is answered, or the attempt asks another one or
    /// ends.
    pub async fn request_input(&self, question: InputRequest) -> Result<Json, Error> {
        question.check().map_err(|why| Error::new(Kind::InvalidRequest, why))?;
        let asking = &self.live.asking;
        let _place = asking.places.acquire().await.map_err(|_| to_end())?;
        let mut watch = self.kernel.waits.watch(self.live.id);
        let putting = asking.putting.lock().await;
        if let Some(answer) = self.known_answer(&question).await? {
            return Ok(answer);
        }
        let _awaited = Awaited::new(asking, &question.key);
        match self.ask(question.clone()).await? {
            UpdateResult::Moved(record) | UpdateResult::Same(record) => self.live.observe(&record),
            UpdateResult::Late(record) | UpdateResult::Refused(record, _) => {
                self.live.observe(&record);
                return Err(to_end());
            }
            UpdateResult::Absent => return Err(Error::not_found()),
        }
        drop(putting);
        loop {
            match self.kernel.store.record(&self.live.scope, self.live.id).await {
                Ok(Some(record)) if record.fence != self.live.fence => return Err(to_end()),
                Ok(Some(record)) if record.asks.contains(&question.key) => {
                    tokio::select! {
                        () = watch.changed() => {}
                        () = self.live.stop.cancelled() => return Err(to_end()),
                    }
                }
                Ok(Some(_)) => return self.known_answer(&question).await?.ok_or_else(to_end),
                Ok(None) => return Err(Error::not_found()),
                Err(error) => self.pause(&error).await,
            }
        }
    }

    /// Puts the question. Who asks runs: a function may ask before the engine has said so for it.
    async fn ask(&self, request: InputRequest) -> Result<UpdateResult, Error> {
        let beside = self.live.asking.awaited();
        let changes = [Change::Start, Change::AskInput { request, beside }];
        let updates =
            changes.map(|change| Update::attempt(self.live.id, self.live.fence, change)).to_vec();
        let posted = self.kernel.store.update(self.now(), updates, None).await?;
        posted.receipt.committed().await?;
        let (mut results, _) = posted.value;
        results.pop().ok_or_else(|| {
            Error::new(Kind::StorageUnavailable, "the store gave no answer to a question")
        })
    }

    /// Returns what the question was answered, if it was; refuses another question under the same key.
    async fn known_answer(&self, question: &InputRequest) -> Result<Option<Json>, Error> {
        let details = loop {
            match self.kernel.store.find(&self.live.scope, self.live.id).await {
                Ok(Found::Task(_, details)) => break details,
                Ok(Found::Tombstone(_) | Found::Absent) => return Err(Error::not_found()),
                Err(error) => self.pause(&error).await,
            }
        };
        match details.input(&question.key) {
            Some(known) if known.request != question.request => {
                let message = format!("another question was asked as `{}` before", question.key);
                Err(Error::new(Kind::InvalidRequest, message).with_hint("choose another key"))
            }
            Some(known) => Ok(known.response.clone()),
            None if details.asked.len() >= MAX_INPUTS => {
                Err(Error::new(Kind::InvalidRequest, "a task asks at most 100 questions"))
            }
            None => Ok(None),
        }
    }

    async fn pause(&self, error: &(dyn Display + Sync)) {
        tracing::warn!(task = %self.live.id, %error, "a question waits for the store");
        sleep(PAUSE).await;
    }
}

/// What an attempt is told that asks while its task is to end.
fn to_end() -> Error {
    Error::new(Kind::Cancelled, "the task is to end; nobody answers its question any more")
}
