//! Answering what a task asks its caller [TASKS-6].

use std::sync::Arc;

use raincheck_core::content::Json;
use raincheck_core::decide::Change;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::TaskId;
use raincheck_core::input::{BadAnswer, MAX_TEXT};
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::store::{Found, Update, UpdateResult};
use raincheck_core::task::TaskRecord;

use super::Handle;
use crate::kernel::{Kernel, Need};

/// What became of an answer.
#[derive(Clone, Debug)]
pub enum Given {
    /// The task has it, and goes on unless it still asks something else.
    Taken(TaskRecord),
    /// The question had been answered before, and the first answer stays.
    Before(TaskRecord),
    /// The task asks no such question, or not any more.
    NotAsked(TaskRecord),
}

impl Handle {
    /// Answers a question of a task; returns once the answer is committed. The task goes on with the last
    /// answer that it waits for; answers are there in an attempt after this one, too.
    ///
    /// # Errors
    /// `invalid_params` for an answer that is too long or that does not have the form its question asks for
    /// ([`Input::check_response`](raincheck_core::input::Input::check_response)): the question stays open.
    /// `not_found` for an id that is not the scope's, `expired` once its retention is over;
    /// `storage_unavailable`.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll loses nothing: the answer counts.
    pub async fn give_input(
        &self,
        scope: &Scope,
        id: TaskId,
        key: &str,
        response: Json,
    ) -> Result<Given, Error> {
        if response.get().len() > MAX_TEXT {
            return Err(Error::new(Kind::InvalidParams, "an answer has at most 256 KiB"));
        }
        self.engine.kernel.admit(Need::Command).await?;
        let key: Arc<str> = key.into();
        let (kernel, scope_of_it) = (Arc::clone(&self.engine.kernel), scope.clone());
        let given = Arc::clone(&key);
        let update = async move {
            check(&kernel, &scope_of_it, id, &given, &response).await?;
            let change = Change::GiveInput { key: given, response };
            let update = Update::attempt(id, raincheck_core::ids::Fence::NONE, change);
            kernel.update_one(Update { scope: Some(scope_of_it), fence: None, ..update }).await
        };
        match self.engine.kernel.drivers.detached(update).await? {
            UpdateResult::Moved(record) => Ok(Given::Taken(record)),
            // The answer to one of several questions moves no state.
            UpdateResult::Same(record) if record.state == State::InputRequired => {
                Ok(Given::Taken(record))
            }
            UpdateResult::Same(record)
            | UpdateResult::Late(record)
            | UpdateResult::Refused(record, _) => self.given_before(scope, record, &key).await,
            UpdateResult::Absent => Err(Error::not_found()),
        }
    }

    /// Looks whether a question that is not open had been answered.
    async fn given_before(
        &self,
        scope: &Scope,
        record: TaskRecord,
        key: &str,
    ) -> Result<Given, Error> {
        match self.engine.kernel.store.find(scope, record.id()).await? {
            Found::Task(record, details) => {
                let is_answered = details.input(key).is_some_and(|input| input.response.is_some());
                Ok(if is_answered { Given::Before(record) } else { Given::NotAsked(record) })
            }
            Found::Tombstone(_) => {
                Err(Error::new(Kind::Expired, "the retention of the task is over"))
            }
            Found::Absent => Err(Error::not_found()),
        }
    }
}

/// Refuses what does not answer an open question; what is not open is told by the change itself.
async fn check(
    kernel: &Kernel,
    scope: &Scope,
    id: TaskId,
    key: &str,
    response: &Json,
) -> Result<(), Error> {
    let Found::Task(record, details) = kernel.store.find(scope, id).await? else { return Ok(()) };
    let open = details.input(key).filter(|_| record.asks.contains(key));
    let Some(Err(fault)) = open.map(|input| input.check_response(response)) else { return Ok(()) };
    let message = format!("the answer to `{key}` is not what it asks for: {fault}");
    let hint = "answer a question to a person with {\"action\":\"accept\",\"content\":{…}} or \
                {\"action\":\"decline\"}, another with what its method asks for; it stays open";
    let error = Error::new(Kind::InvalidParams, message).with_hint(hint);
    Err(match fault {
        BadAnswer::LacksContent(name) => error.with_quoted(name, None),
        BadAnswer::NoObject | BadAnswer::Lacks(_) | BadAnswer::NoAction | BadAnswer::NoContent => {
            error
        }
    })
}
