//! Calls that ask their client something in the course of the call [TASKS-9].
//!
//! Such a call is answered with `input_required`, its questions and a state; its client calls again with the
//! answers and the state, and the call goes on. What goes on is the task that the first call made: the questions,
//! the answers and how it ended are in the store, and the state only names it.

use std::collections::BTreeMap;

use serde::Serialize;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::idempotency::{hash_inputs, hash_words};
use raincheck_core::ids::TaskId;
use raincheck_runtime::View;

use super::requests::Retry;
use crate::answer::Refused;
use crate::call::{Told, go_on};
use crate::caller::Caller;
use crate::surface::{Call, Desk};
use crate::wire::read_responses;

/// What a call brings for the questions of an earlier one.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// The task that goes on; `None` for a call that begins.
    id: Option<TaskId>,
    /// The answers, by the keys of their questions.
    responses: BTreeMap<String, Json>,
}

impl Round {
    /// Reads what a call brings. A revision that has no such words has none of it.
    ///
    /// # Errors
    /// `invalid_params` for answers that are none, and for a state that this server did not give for this very
    /// call of this owner; why the store cannot be read.
    pub(super) async fn read(
        desk: &Desk,
        call: &Call,
        retry: Option<&Retry>,
        who: &Caller,
    ) -> Result<Self, Error> {
        let Some(retry) = retry.filter(|_| who.has_extensions()) else {
            return Ok(Self::default());
        };
        let responses = retry.responses.as_ref().map(read_responses).transpose()?;
        let id = match &retry.state {
            Some(state) => {
                // What seals it comes from the store, which may still be opened: a server that was killed is asked
                // for the rest of the call as soon as the next one is there.
                desk.engine().open().await?;
                Some(open(desk, call, state, who)?)
            }
            None => None,
        };
        Ok(Self { id, responses: responses.unwrap_or_default() })
    }

    /// Returns the task that goes on; `None` for a call that begins.
    pub(super) const fn id(&self) -> Option<TaskId> {
        self.id
    }

    /// Gives a task the answers to what it asks, as long as it asks what the call brought an answer to. Answers to
    /// what it does not ask are passed over: one that was given before stays.
    pub(super) async fn answer(
        mut self,
        desk: &Desk,
        mut told: Result<Told, Refused>,
        who: &mut Caller,
    ) -> Result<Told, Refused> {
        while let Ok(Told::Live(view)) = &told {
            let asked = view.inputs.iter().map(|input| &*input.key);
            let known: Vec<_> = asked.filter_map(|key| self.responses.remove_entry(key)).collect();
            if known.is_empty() {
                break;
            }
            let id = view.record.id();
            for (key, response) in known {
                desk.engine().give_input(who.scope(), id, &key, response).await?;
            }
            told = Ok(go_on(desk.engine(), id, who).await?);
        }
        told
    }
}

/// Writes what a call is answered with whose task asks something that its client says it answers; `None` where there
/// is no such question, and where the call did not wait for one.
pub(super) fn question(desk: &Desk, view: &View, call: &Call, who: &Caller) -> Option<Json> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct InputRequired<'a> {
        result_type: &'static str,
        input_requests: BTreeMap<&'a str, &'a Json>,
        request_state: String,
    }

    let abilities = who.abilities().filter(|_| who.has_waited() && view.is_committed)?;
    let asked = view.inputs.iter().filter(|input| abilities.answers(&input.request));
    let asked: BTreeMap<_, _> = asked.map(|input| (&*input.key, &input.request)).collect();
    if asked.is_empty() {
        return None;
    }
    let open = hash_words(view.inputs.iter().map(|input| &*input.key));
    let state = State { id: view.record.id(), open }.sealed(desk, call, who)?;
    let result_type = "input_required";
    Json::of(&InputRequired { result_type, input_requests: asked, request_state: state }).ok()
}

/// What a client brings back: which task goes on, and what it asked. It says nothing more, and counts only with
/// the code that follows from it, from the owner and from the call.
#[derive(Clone, Copy, Debug)]
struct State {
    id: TaskId,
    /// The hash of the open questions' keys: another round has another state.
    open: u128,
}

impl State {
    /// Writes the state for a call; `None` where its arguments have no canonical form.
    fn sealed(self, desk: &Desk, call: &Call, who: &Caller) -> Option<String> {
        let code = self.code(desk, call, who)?;
        Some(format!("{}.{:032x}.{code:032x}", self.id, self.open))
    }

    fn code(self, desk: &Desk, call: &Call, who: &Caller) -> Option<u128> {
        let (id, open) = (self.id.to_string(), self.open.to_be_bytes());
        let arguments = hash_inputs(&call.arguments).ok()?.to_be_bytes();
        let (scope, tool) = (who.scope().as_str().as_bytes(), call.tool.as_bytes());
        let parts = [scope, tool, &arguments, id.as_bytes(), &open];
        Some(desk.engine().seal("round", parts))
    }
}

/// Finds the task that a state names.
fn open(desk: &Desk, call: &Call, state: &Json, who: &Caller) -> Result<TaskId, Error> {
    let read = || {
        let text: String = state.read().ok()?;
        let (id, rest) = text.split_once('.')?;
        let (open, code) = rest.split_once('.')?;
        let state = State { id: id.parse().ok()?, open: bits(open)? };
        (state.code(desk, call, who)? == bits(code)?).then_some(state.id)
    };
    read().ok_or_else(|| {
        let words = "`requestState` is not the one that this call was answered with";
        // It may be of a call that runs, or has run.
        Error::new(Kind::InvalidParams, words).with_guarantee(Guarantee::Unknown).with_hint(
            "send requestState as it came, with the same tool and arguments; what it was for goes on as it was, and \
             a call without it begins anew",
        )
    })
}

/// Reads a number as [`State::sealed`] writes it.
fn bits(text: &str) -> Option<u128> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_written_so = text.len() == 32 && text.bytes().all(is_hex);
    is_written_so.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

/// Puts into words why a call cannot go on: its state was ours, so that its task is gone.
pub(super) fn gone(error: Error) -> Error {
    if !matches!(error.kind, Kind::NotFound | Kind::Expired) {
        return error;
    }
    let words = "the call that `requestState` names is over, and its result is no longer kept";
    Error::new(Kind::InvalidParams, words)
        .with_guarantee(Guarantee::Unknown)
        .with_hint("look whether it did its work, then call again without requestState")
}
