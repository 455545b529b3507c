//! Asking the caller of a task for something while it runs [TASKS-6].

use std::collections::BTreeSet;
use std::fmt::Display;
use std::iter;

use tokio::time::sleep;

use raincheck_core::content::Json;
use raincheck_core::decide::Change;
use raincheck_core::error::{Error, Kind};
use raincheck_core::input::{InputRequest, MAX_INPUTS, MAX_OPEN};
use raincheck_core::store::{Found, Update, UpdateResult};
use raincheck_core::task::TaskRecord;

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
        let mut answers = self.request_inputs(vec![question]).await?;
        answers.pop().ok_or_else(to_end)
    }

    /// Asks the caller of the task several things that it is shown at once, and waits for all the answers, which are
    /// returned in the order of the questions. Each of them is as in [`request_input`](Self::request_input).
    ///
    /// # Errors
    /// As of [`request_input`](Self::request_input), and `invalid_request` for more than 16 questions, or two
    /// under one key; none of them is asked then.
    ///
    /// # Cancel safety
    /// As of [`request_input`](Self::request_input).
    pub async fn request_inputs(&self, questions: Vec<InputRequest>) -> Result<Vec<Json>, Error> {
        check(&questions)?;
        let asking = &self.live.asking;
        let n = u32::try_from(questions.len()).unwrap_or(u32::MAX);
        let _places = asking.places.acquire_many(n).await.map_err(|_| to_end())?;
        let mut watch = self.kernel.waits.watch(self.live.id);
        let putting = asking.putting.lock().await;
        let known = self.known_answers(&questions).await?;
        if let Some(answers) = known.iter().cloned().collect() {
            return Ok(answers);
        }
        let asked = questions.iter().zip(&known).filter(|(_, answer)| answer.is_none());
        let asked: Vec<&InputRequest> = asked.map(|(question, _)| question).collect();
        let _awaited: Vec<_> =
            asked.iter().map(|question| Awaited::new(asking, &question.key)).collect();
        for result in self.ask(&asked).await? {
            match result {
                UpdateResult::Moved(record) | UpdateResult::Same(record) => {
                    self.live.observe(&record);
                }
                UpdateResult::Late(record) | UpdateResult::Refused(record, _) => {
                    self.live.observe(&record);
                    return Err(to_end());
                }
                UpdateResult::Absent => return Err(Error::not_found()),
            }
        }
        drop(putting);
        let is_open =
            |record: &TaskRecord| asked.iter().any(|question| record.asks.contains(&question.key));
        loop {
            match self.kernel.store.record(&self.live.scope, self.live.id).await {
                Ok(Some(record)) if record.fence != self.live.fence => return Err(to_end()),
                Ok(Some(record)) if is_open(&record) => {
                    tokio::select! {
                        () = watch.changed() => {}
                        () = self.live.stop.cancelled() => return Err(to_end()),
                    }
                }
                Ok(Some(_)) => {
                    let answers = self.known_answers(&questions).await?;
                    return answers.into_iter().collect::<Option<_>>().ok_or_else(to_end);
                }
                Ok(None) => return Err(Error::not_found()),
                Err(error) => self.pause(&error).await?,
            }
        }
    }

    /// Puts the questions, all with one commit. Who asks runs: a function may ask before the engine has said so for
    /// it.
    async fn ask(&self, questions: &[&InputRequest]) -> Result<Vec<UpdateResult>, Error> {
        let asking = questions.iter().map(|question| Change::AskInput {
            request: (*question).clone(),
            beside: self.live.asking.awaited(),
        });
        let changes = iter::once(Change::Start).chain(asking);
        let updates =
            changes.map(|change| Update::attempt(self.live.id, self.live.fence, change)).collect();
        let posted = self.kernel.store.update(self.now(), updates, None).await?;
        posted.receipt.committed().await?;
        let (mut results, _) = posted.value;
        if results.len() != questions.len() + 1 {
            let words = "the store gave no answer to a question";
            return Err(Error::new(Kind::StorageUnavailable, words));
        }
        Ok(results.split_off(1))
    }

    /// Returns what the questions were answered, where they were; refuses another question under the same key.
    async fn known_answers(&self, questions: &[InputRequest]) -> Result<Vec<Option<Json>>, Error> {
        let details = loop {
            match self.kernel.store.find(&self.live.scope, self.live.id).await {
                Ok(Found::Task(_, details)) => break details,
                Ok(Found::Tombstone(_) | Found::Absent) => return Err(Error::not_found()),
                Err(error) => self.pause(&error).await?,
            }
        };
        let is_new = |question: &&InputRequest| details.input(&question.key).is_none();
        if details.asked.len() + questions.iter().filter(is_new).count() > MAX_INPUTS {
            return Err(Error::new(Kind::InvalidRequest, "a task asks at most 100 questions"));
        }
        let answer = |question: &InputRequest| match details.input(&question.key) {
            Some(known) if known.request != question.request => {
                let message = format!("another question was asked as `{}` before", question.key);
                Err(Error::new(Kind::InvalidRequest, message).with_hint("choose another key"))
            }
            Some(known) => Ok(known.response.clone()),
            None => Ok(None),
        };
        questions.iter().map(answer).collect()
    }

    /// Waits for the store, while the task is not to end.
    async fn pause(&self, error: &(dyn Display + Sync)) -> Result<(), Error> {
        tracing::warn!(task = %self.live.id, %error, "a question waits for the store");
        tokio::select! {
            () = self.live.stop.cancelled() => Err(to_end()),
            () = sleep(PAUSE) => Ok(()),
        }
    }
}

/// Looks whether questions may be asked at once.
fn check(questions: &[InputRequest]) -> Result<(), Error> {
    let refused = |why: &str| Error::new(Kind::InvalidRequest, why.to_owned());
    if questions.len() > MAX_OPEN {
        return Err(refused("at most 16 questions are open at once"));
    }
    questions.iter().try_for_each(|question| question.check().map_err(refused))?;
    let keys: BTreeSet<&str> = questions.iter().map(|question| &*question.key).collect();
    if keys.len() < questions.len() {
        return Err(refused("two questions at once have one key"));
    }
    Ok(())
}

/// What an attempt is told that asks while its task is to end.
fn to_end() -> Error {
    Error::new(Kind::Cancelled, "the task is to end; nobody answers its question any more")
}
