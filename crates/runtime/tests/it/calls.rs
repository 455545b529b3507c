use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;

use raincheck_core::content::{Content, Json};
use raincheck_core::error::Error;
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Call, Executor, Functions, Options, Route, Submission, ToolSet};

use crate::world::{Gate, LONG, World, request, spec, text};

#[tokio::test(start_paused = true)]
async fn a_wait_sleeps_until_the_event() {
    // [CALL-4]
    let nap = Duration::from_millis(1234);
    let tools = Functions::new().with(spec("nap"), move |_, _| async move {
        tokio::time::sleep(nap).await;
        text("awake")
    });
    let world = World::new(tools);
    let before = world.handle.now();
    let id = world.call("nap").await;
    let scope = Scope::local();
    let waits = (0..10).map(|_| world.handle.wait_end(&scope, id, LONG));
    for view in futures_util::future::join_all(waits).await {
        assert_eq!(view.expect("a task").record.state, State::Succeeded);
    }
    assert_eq!(world.handle.now().since(before), nap, "nobody polled past the event");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_hears_the_end_of_what_it_submitted_whenever_it_comes() {
    // [CALL-4]
    let gate = Gate::new();
    let tools = Functions::new().with(spec("quick"), |_, _| async { text("done") });
    let world = World::new(gate.tool(tools, spec("gate")));
    let inline = |tool: &str, key: Option<&str>| {
        let key = key.map(Arc::from);
        raincheck_runtime::Request { is_inline: true, key, ..request(tool) }
    };

    let before = world.handle.now();
    let accepted = world.submit(inline("quick", Some("k"))).await;
    world.end(accepted.record.id()).await;
    let view = world.handle.wait_accepted(accepted, LONG).await.expect("a task");
    assert_eq!(view.record.state, State::Succeeded, "it ended before the wait began");

    let again = world.submit(inline("quick", Some("k"))).await;
    let view = world.handle.wait_accepted(again, LONG).await.expect("a task");
    assert_eq!(view.record.state, State::Succeeded, "it ended before the submit");
    assert_eq!(world.handle.now(), before, "nobody waited");

    let accepted = world.submit(inline("gate", None)).await;
    let view = world.handle.wait_accepted(accepted, Duration::from_secs(1)).await.expect("a task");
    assert_eq!(view.record.state, State::Running, "as it is when the wait is over");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_began_before_the_read_misses_nothing() {
    // [CALL-4]
    let gate = Gate::new();
    let world = World::new(gate.tool(Functions::new(), spec("gate")));
    let id = world.call("gate").await;
    world.reaches(id, State::Running).await;
    let mut watch = world.handle.watch(id);
    gate.open(1);
    world.end(id).await;
    assert!(watch.ended().now_or_never().is_some());
    assert!(watch.changed().now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_the_engine_to_open() {
    // [QUEUE-4]
    let tools = Functions::new().with(spec("quick"), |_, _| async { text("done") });
    let options = crate::world::options(tools);
    let (handle, service) = raincheck_runtime::start(options);
    assert_eq!(handle.specs().len(), 1);
    assert!(handle.spec("quick").is_some() && handle.spec("slow").is_none());
    let mut submit = std::pin::pin!(handle.submit(request("quick")));
    assert!(submit.as_mut().now_or_never().is_none(), "the store is not open");
    let stop = tokio_util::sync::CancellationToken::new();
    let run = service.run(stop.clone());
    let client = async {
        let submission = submit.await.expect("accepted");
        stop.cancel();
        submission
    };
    let (submission, ()) = tokio::join!(client, run);
    assert!(matches!(submission, Submission::Task(_)));
}

#[tokio::test(start_paused = true)]
async fn requests_to_an_engine_that_never_ran_are_answered() {
    let (handle, service) = raincheck_runtime::start(Options::in_memory());
    let wait = handle.lanes();
    drop(service);
    assert_eq!(&*wait.await.expect_err("no engine").message, "the server is shutting down");
}

/// A tool set that answers from memory.
struct Memory;

#[async_trait]
impl ToolSet for Memory {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![ToolSpec::new("state", "what is known", Json::empty_object())]
    }

    async fn route(&self, call: &Call) -> Result<Route, Error> {
        Ok(Route::Answer(Outcome::Succeeded(vec![Content::Json(call.inputs.clone())])))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(Functions::new())
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_known_is_answered_without_a_task() {
    // [QUEUE-4]
    let world = World::with(Options::in_memory().with_tools(Arc::new(Memory)));
    let submission = world.handle.submit(request("state")).await.expect("answered");
    assert!(matches!(submission, Submission::Answer(Outcome::Succeeded(_))));
    let page = world.handle.list(&Scope::local(), &Default::default(), None, 9).await;
    assert!(page.expect("a list").items.is_empty());
}
