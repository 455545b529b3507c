//! What the other server asks of a client: passed on while a call of that client is open.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raincheck_core::content::Json;
use raincheck_core::input::InputRequest;
use raincheck_core::scope::Scope;
use raincheck_runtime::TaskContext;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::link::Answering;
use super::message::RpcError;
use crate::caller::{Asking, Peer};

const ELICITATION: &str = "elicitation";

/// What a server may ask for, and the capability by which a client says that it answers.
const QUESTIONS: &[(&str, &str)] = &[
    ("elicitation/create", ELICITATION),
    ("sampling/createMessage", "sampling"),
    ("roots/list", "roots"),
];

/// The code of a question that nobody can be asked.
const NOBODY: i64 = -32_000;

/// Clients with an open call, who can be asked something.
#[derive(Debug, Default)]
pub(super) struct Askable(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    next: u64,
    calls: BTreeMap<u64, (Scope, Arc<dyn Peer>)>,
    /// What the client that greeted last says that it can do.
    capabilities: Map<String, Value>,
}

/// A client can be asked as long as this value lives.
#[derive(Debug)]
pub(super) struct Waiting {
    askable: Arc<Askable>,
    id: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.askable.open().calls.remove(&self.id);
    }
}

impl Askable {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a client says that it can do.
    pub(super) fn greeted(&self, capabilities: &Json) {
        self.open().capabilities = capabilities.read().unwrap_or_default();
    }

    /// Returns what the other server is told that its client can do.
    pub(super) fn capabilities(&self) -> Map<String, Value> {
        let open = self.open();
        let said = |(_, name): &(&str, &str)| {
            open.capabilities.get_key_value(*name).map(|(name, said)| (name.clone(), said.clone()))
        };
        let mut told: Map<String, Value> = QUESTIONS.iter().filter_map(said).collect();
        // A task can ask for it also where its client cannot be asked.
        told.entry(ELICITATION).or_insert_with(|| serde_json::json!({"form": {}}));
        told
    }

    /// Notes an open call of a client.
    pub(super) fn enter(self: &Arc<Self>, scope: &Scope, peer: Arc<dyn Peer>) -> Waiting {
        let mut open = self.open();
        open.next += 1;
        let id = open.next;
        open.calls.insert(id, (scope.clone(), peer));
        drop(open);
        Waiting { askable: Arc::clone(self), id }
    }

    /// Asks the client that waits; where none does, or none that can answer, the task that runs asks for
    /// input. `owners` are those of the calls that are under way. `None` for what is no such question.
    pub(super) fn ask(
        &self,
        method: &str,
        params: Option<&RawValue>,
        running: Option<TaskContext>,
        owners: &[Scope],
    ) -> Option<Answering> {
        let (method, capability) = QUESTIONS.iter().find(|(known, _)| *known == method)?;
        let params = params.map_or_else(Json::empty_object, |raw| Json::from_raw(raw.to_owned()));
        let asked = match (self.whom(capability, owners), running) {
            (Ok(peer), _) => Asked::Client(peer),
            (Err(_), Some(task)) if *capability != "roots" => Asked::Task(task, self.key()),
            (Err(refusal), _) => Asked::Nobody(refusal),
        };
        Some(Box::pin(asked.answer(method, params)))
    }

    fn key(&self) -> u64 {
        let mut open = self.open();
        open.next += 1;
        open.next
    }

    /// Finds whom a question is for. The other server does not say which call it is about: with calls of several
    /// owners, open or under way in the background, no client is asked.
    fn whom(&self, capability: &str, owners: &[Scope]) -> Result<Arc<dyn Peer>, RpcError> {
        let open = self.open();
        if !open.capabilities.contains_key(capability) {
            return Err(refused("the client has no answer to such questions"));
        }
        let Some((scope, peer)) = open.calls.values().next_back() else {
            return Err(refused(
                "nobody waits for this call any more, so that nobody can be asked; call the tool again and \
                 wait for it",
            ));
        };
        let mut all = open.calls.values().map(|(owner, _)| owner).chain(owners);
        if all.any(|other| other != scope) {
            return Err(refused("several owners have calls, and it is not known whose this is"));
        }
        Ok(Arc::clone(peer))
    }
}

/// Who is asked.
enum Asked {
    Client(Arc<dyn Peer>),
    Task(TaskContext, u64),
    Nobody(RpcError),
}

impl Asked {
    async fn answer(self, method: &'static str, params: Json) -> Result<Json, RpcError> {
        match self {
            Self::Client(peer) => match peer.ask(method, params).await {
                Ok(answer) => Ok(answer),
                Err(Asking::Refused(reason)) => Err(refused(&reason)),
                Err(Asking::Gone) => Err(refused("the client is gone")),
            },
            Self::Task(task, number) => {
                // Unique in the life of the task: each attempt has questions of its own.
                let key = format!("{}.{number}", task.attempt_number());
                let question = InputRequest::new(key, method, &params);
                let question = question.map_err(|error| refused(&error.to_string()))?;
                task.request_input(question).await.map_err(|error| refused(&error.message))
            }
            Self::Nobody(refusal) => Err(refusal),
        }
    }
}

fn refused(reason: &str) -> RpcError {
    RpcError { code: NOBODY, message: reason.to_owned(), data: None }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;

    /// A client that says which one it is.
    #[derive(Debug)]
    struct Named(&'static str);

    #[async_trait]
    impl Peer for Named {
        async fn ask(&self, method: &str, _: Json) -> Result<Json, Asking> {
            Json::of(&format!("{} {method}", self.0)).map_err(|_| Asking::Gone)
        }

        async fn tell(&self, _: &str, _: Json) {}
    }

    async fn ask(askable: &Askable) -> Result<String, String> {
        ask_beside(askable, &[]).await
    }

    async fn ask_beside(askable: &Askable, owners: &[Scope]) -> Result<String, String> {
        let answer =
            askable.ask("elicitation/create", None, None, owners).expect("a question").await;
        answer.map(|json| json.get().to_owned()).map_err(|error| error.message)
    }

    #[tokio::test]
    async fn a_question_goes_to_who_waits_and_to_nobody_where_that_is_not_sure() {
        // [GATE-12] [SCOPE-1]
        let askable = Arc::new(Askable::default());
        assert!(askable.ask("other/method", None, None, &[]).is_none());
        assert!(ask(&askable).await.expect_err("it cannot").contains("no answer"));
        askable.greeted(&Json::parse(r#"{"elicitation":{}}"#).expect("JSON"));
        assert!(ask(&askable).await.expect_err("nobody").contains("nobody waits"));
        let first = askable.enter(&Scope::local(), Arc::new(Named("first")));
        let second = askable.enter(&Scope::local(), Arc::new(Named("second")));
        assert_eq!(ask(&askable).await.as_deref(), Ok("\"second elicitation/create\""));
        drop(second);
        // A task of another owner runs in the background, or its client asks in other ways.
        let beside = [Scope::local(), Scope::new("other")];
        assert!(ask_beside(&askable, &beside).await.expect_err("two").contains("several owners"));
        assert_eq!(
            ask_beside(&askable, &beside[..1]).await.as_deref(),
            Ok("\"first elicitation/create\"")
        );
        let other = askable.enter(&Scope::new("other"), Arc::new(Named("other")));
        assert!(ask(&askable).await.expect_err("two owners").contains("several owners"));
        drop((first, other));
        assert!(ask(&askable).await.is_err());
    }

    #[test]
    fn the_other_server_is_told_what_the_client_can_do() {
        // [GATE-12]
        let askable = Askable::default();
        let told = |askable: &Askable| Value::from(askable.capabilities());
        assert_eq!(told(&askable), serde_json::json!({"elicitation": {"form": {}}}), "by its task");
        let said = r#"{"elicitation":{"url":{}},"roots":{},"experimental":{"x":{}}}"#;
        askable.greeted(&Json::parse(said).expect("JSON"));
        assert_eq!(told(&askable), serde_json::json!({"elicitation": {"url": {}}, "roots": {}}));
    }
}
