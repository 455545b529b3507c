//! What a task asked, and what it was answered, after its server was killed [TASKS-6].

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use raincheck::runtime::{self, Functions, Given, Handle, Request, Submission, View};
use raincheck_core::content::{Content, Json};
use raincheck_core::ids::TaskId;
use raincheck_core::input::InputRequest;
use raincheck_core::lifecycle::State;
use raincheck_core::retry::Policy;
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_core::trace::TraceContext;
use raincheck_store_sqlite::{Options, SqliteStore};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// An engine on a file, which is killed when it is dropped.
struct Engine {
    handle: Handle,
    _service: JoinSet<()>,
}

/// Asks two things, and says how often it began, what it was answered, and which trace it is in.
fn engine(folder: &Path, n_begun: &Arc<AtomicU32>) -> Engine {
    let n_begun = Arc::clone(n_begun);
    let spec = ToolSpec {
        is_idempotent: true,
        retry: Policy { max_attempts: 9, backoff: Duration::from_millis(1), on: Vec::new() },
        ..ToolSpec::new("ask", "Asks twice", Json::empty_object())
    };
    let tools = Functions::new()
        .with_lane("cpu_standard", raincheck_core::lane::Config::new(1, 4))
        .with(spec, move |_, context| {
            let n = n_begun.fetch_add(1, Ordering::SeqCst) + 1;
            async move {
                let mut answers = Vec::new();
                for key in ["first", "second"] {
                    let question = InputRequest::new(key, "elicitation/create", &key);
                    match context.request_input(question.expect("JSON")).await {
                        Ok(answer) => answers.push(answer.get().to_owned()),
                        Err(error) => return Outcome::Failed(error),
                    }
                }
                let trace = context.trace().map(TraceContext::parent).unwrap_or_default();
                let words = format!("{n} {} {trace}", answers.join(" "));
                Outcome::Succeeded(vec![Content::Text(words.into())])
            }
        });
    let store = Arc::new(SqliteStore::new(Options::process(folder.join("tasks.db"))));
    let options = runtime::Options::in_memory().with_store(store).with_tools(Arc::new(tools));
    let (handle, service) = runtime::start(options);
    let mut running = JoinSet::new();
    running.spawn(service.run(CancellationToken::new()));
    Engine { handle, _service: running }
}

impl Engine {
    /// Kills it, and waits until its store can be opened again.
    async fn kill(self) {
        let Self { handle, mut _service } = self;
        _service.shutdown().await;
        drop(handle);
    }

    async fn asks(&self, id: TaskId, key: &str) -> View {
        let mut watch = self.handle.watch(id);
        loop {
            let view = self.handle.view(&Scope::local(), id).await.expect("a task");
            if view.record.asks.as_str() == Some(key) {
                return view;
            }
            assert!(!view.record.state.is_terminal(), "{:?}", view.record);
            watch.changed().await;
        }
    }

    async fn give(&self, id: TaskId, key: &str, answer: &str) -> Given {
        let answer = Json::parse(answer).expect("JSON");
        self.handle.give_input(&Scope::local(), id, key, answer).await.expect("a task")
    }
}

#[tokio::test]
async fn a_question_and_its_answer_survive_the_server_and_are_not_asked_for_twice() {
    // [TASKS-6] [TRACE-2] [DUR-3]
    let folder = TempDir::new().expect("a folder");
    let n_begun = Arc::new(AtomicU32::new(0));
    let first = engine(folder.path(), &n_begun);
    let mut request = Request::new("ask", Json::empty_object(), Scope::local());
    request.trace = TraceContext::new(PARENT, None, None).map(Arc::new);
    let Submission::Task(accepted) = first.handle.submit(request).await.expect("accepted") else {
        panic!("a task")
    };
    let id = accepted.record.id();
    let asked = first.asks(id, "first").await.inputs;
    first.kill().await;

    let second = engine(folder.path(), &n_begun);
    let again = second.asks(id, "first").await;
    assert_eq!(again.record.state, State::InputRequired);
    assert_eq!(again.inputs, asked, "the same question");
    assert!(matches!(second.give(id, "first", "1").await, Given::Taken(_)));
    second.asks(id, "second").await;
    second.kill().await;

    let third = engine(folder.path(), &n_begun);
    third.asks(id, "second").await;
    assert!(matches!(third.give(id, "first", "9").await, Given::Before(_)), "the first one stays");
    third.give(id, "second", "2").await;
    let end = third.handle.wait_end(&Scope::local(), id, Duration::from_secs(60)).await;
    let details = end.expect("a task").payload.expect("its details");
    let expected = Content::Text(format!("3 1 2 {PARENT}").into());
    assert_eq!(details.outcome, Some(Outcome::Succeeded(vec![expected])));
    third.kill().await;
}
