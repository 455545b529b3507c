//! What attempts ask their callers, and what they are answered [TASKS-6].

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::input::{InputRequest, MAX_OPEN};
use raincheck_core::lifecycle::State;
use raincheck_core::retry;
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Called, Functions, Given, TaskContext};

use tokio::sync::{Notify, mpsc};

use crate::gated::Gated;
use crate::world::{LONG, World, failure, options, spec, text};

fn question(key: &str, n: u32) -> InputRequest {
    InputRequest::new(key, "elicitation/create", &n).expect("JSON")
}

fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

fn ended(answer: Result<Json, Error>) -> Outcome {
    match answer {
        Ok(answer) => text(answer.get()),
        Err(error) if error.kind == Kind::Cancelled => Outcome::Cancelled,
        Err(error) => Outcome::Failed(error),
    }
}

/// Asks one thing, and ends with the answer.
fn asking(spec: ToolSpec) -> Functions {
    Functions::new().with(spec, |_, context: TaskContext| async move {
        ended(context.request_input(question("name", 1)).await)
    })
}

async fn give(world: &World, id: raincheck_core::ids::TaskId, key: &str, answer: &str) -> Given {
    world.handle.give_input(&Scope::local(), id, key, json(answer)).await.expect("a task")
}

#[tokio::test(start_paused = true)]
async fn a_task_waits_for_its_answer_and_ends_with_it() {
    // [TASKS-6] [TIME-3]
    let run_timeout = Some(Duration::from_secs(10));
    let world = World::new(asking(ToolSpec { run_timeout, ..spec("ask") }));
    let id = world.call("ask").await;
    let asked = world.reaches(id, State::InputRequired).await;
    let input = asked.inputs.first().expect("a question");
    assert_eq!(&*input.key, "name");
    assert_eq!(input.request.get(), r#"{"method":"elicitation/create","params":1}"#);
    // Longer than it may run: a person takes their time.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(matches!(give(&world, id, "other", "{}").await, Given::NotAsked(_)));
    assert!(matches!(give(&world, id, "name", r#"{"z":1.0}"#).await, Given::Taken(_)));
    assert!(matches!(give(&world, id, "name", r#"{"z":2}"#).await, Given::Before(_)));
    let view = world.end(id).await;
    assert_eq!(view.payload.as_ref().expect("details").outcome, Some(text(r#"{"z":1.0}"#)));
    assert!(view.inputs.is_empty());
    assert!(matches!(give(&world, id, "name", "{}").await, Given::Before(_)), "also later");
    let foreign = world.handle.give_input(&Scope::new("other"), id, "name", json("{}")).await;
    assert_eq!(foreign.expect_err("not theirs").kind, Kind::NotFound);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_is_refused_and_the_question_stays_open() {
    // [TASKS-6]
    let form = serde_json::json!({"type": "object", "required": ["name"]});
    let asked = InputRequest::elicitation("name", "Who?", &form).expect("JSON");
    let world = World::new(Functions::new().with(spec("ask"), move |_, context: TaskContext| {
        let asked = asked.clone();
        async move { ended(context.request_input(asked).await) }
    }));
    let id = world.call("ask").await;
    world.reaches(id, State::InputRequired).await;
    for (odd, lacking) in [(r#"{"name":"Ada"}"#, None), (r#"{"action":"accept"}"#, Some("name"))] {
        let refused = world.handle.give_input(&Scope::local(), id, "name", json(odd)).await;
        let refused = refused.expect_err("no answer");
        assert_eq!(refused.kind, Kind::InvalidParams);
        assert_eq!(refused.quoted.as_ref().map(|quoted| &*quoted.text), lacking);
        assert!(matches!(world.view(id).await.record.state, State::InputRequired));
    }
    let answer = r#"{"action":"accept","content":{"name":"Ada"}}"#;
    assert!(matches!(give(&world, id, "name", answer).await, Given::Taken(_)));
    let view = world.end(id).await;
    assert_eq!(view.payload.as_ref().expect("details").outcome, Some(text(answer)));
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_the_end_is_told_of_the_question_at_once() {
    // [TASKS-6] [CALL-4]
    let world = World::new(asking(spec("ask")));
    let begun = tokio::time::Instant::now();
    let called = world.handle.call("ask", [0; 0]).wait(LONG).await.expect("accepted");
    let Called::Task(task) = called else { panic!("{called:?}") };
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert!(task.view().await.expect("a task").inputs.len() == 1);
    let status = world.handle.status(&Scope::local(), task.id()).await.expect("a task");
    assert!(!status.inputs.is_empty() && status.payload.is_none());
    give(&world, task.id(), "name", "1").await;
    assert_eq!(task.outcome().await.expect("an end"), text("1"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_there_in_the_next_attempt_and_is_not_asked_for_again() {
    // [TASKS-6]
    let n = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&n);
    let again = retry::Policy {
        max_attempts: 2,
        backoff: Duration::from_secs(1),
        on: vec![Kind::ToolFailed],
    };
    let tools =
        Functions::new().with(ToolSpec { retry: again, ..spec("ask") }, move |_, context| {
            let seen = Arc::clone(&seen);
            async move {
                let answer = context.request_input(question("name", 1)).await;
                if seen.fetch_add(1, Ordering::SeqCst) == 0 {
                    return Outcome::Failed(Error::new(Kind::ToolFailed, "once"));
                }
                let other = context.request_input(question("name", 2)).await.expect_err("another");
                assert_eq!(other.kind, Kind::InvalidRequest);
                ended(answer)
            }
        });
    let world = World::new(tools);
    let id = world.call("ask").await;
    world.reaches(id, State::InputRequired).await;
    give(&world, id, "name", "7").await;
    let view = world.end(id).await;
    assert_eq!((view.record.state, view.record.attempt), (State::Succeeded, 2));
    let details = view.payload.expect("details");
    assert_eq!((&details.outcome, details.asked.len()), (&Some(text("7")), 1));
    assert_eq!(n.load(Ordering::SeqCst), 2);
}

/// Waits until just these questions are open.
async fn asks(world: &World, id: raincheck_core::ids::TaskId, keys: &str) {
    let mut watch = world.handle.watch(id);
    loop {
        let view = world.handle.status(&Scope::local(), id).await.expect("a task");
        if view.record.asks.as_str() == Some(keys) {
            let shown: Vec<&str> = view.inputs.iter().map(|input| &*input.key).collect();
            return assert_eq!(shown.join(" "), keys);
        }
        assert!(!view.record.state.is_terminal(), "{:?}", view.record);
        watch.changed().await;
    }
}

#[tokio::test(start_paused = true)]
async fn questions_at_the_same_time_are_open_together_and_answered_in_any_order() {
    // [TASKS-6]
    let tools = Functions::new().with(spec("ask"), |_, context: TaskContext| async move {
        let both = tokio::join!(
            context.request_input(question("a", 1)),
            context.request_input(question("b", 2))
        );
        let (a, b) = (both.0.expect("an answer"), both.1.expect("an answer"));
        text(&format!("{} {}", a.get(), b.get()))
    });
    let world = World::new(tools);
    let id = world.call("ask").await;
    asks(&world, id, "a b").await;
    assert!(matches!(give(&world, id, "b", "2").await, Given::Taken(_)));
    asks(&world, id, "a").await;
    assert!(matches!(give(&world, id, "b", "3").await, Given::Before(_)));
    give(&world, id, "a", "1").await;
    assert_eq!(world.end(id).await.payload.expect("details").outcome, Some(text("1 2")));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_was_given_up_ends_with_the_next_and_places_are_bounded() {
    // [TASKS-6]
    let tools = Functions::new().with(spec("ask"), |_, context: TaskContext| async move {
        let short = Duration::from_secs(1);
        let dropped = tokio::time::timeout(short, context.request_input(question("a", 1))).await;
        assert!(dropped.is_err(), "nobody answered");
        let keys: Vec<String> = (0..MAX_OPEN + 1).map(|n| format!("k{n:02}")).collect();
        let all = keys.iter().map(|key| context.request_input(question(key, 2)));
        let all = futures_util::future::join_all(all).await;
        text(&all.into_iter().filter(Result::is_ok).count().to_string())
    });
    let world = World::new(tools);
    let id = world.call("ask").await;
    let first: Vec<String> = (0..MAX_OPEN).map(|n| format!("k{n:02}")).collect();
    asks(&world, id, &first.join(" ")).await;
    assert!(matches!(give(&world, id, "a", "1").await, Given::NotAsked(_)));
    give(&world, id, "k03", "1").await;
    let next = format!("k{MAX_OPEN:02}");
    let mut left: Vec<String> = first.into_iter().filter(|key| key != "k03").collect();
    left.push(next);
    asks(&world, id, &left.join(" ")).await;
    for key in &left {
        give(&world, id, key, "1").await;
    }
    assert_eq!(world.end(id).await.payload.expect("details").outcome, Some(text("17")));
}

#[tokio::test(start_paused = true)]
async fn a_question_ends_with_a_cancel_and_with_the_time_to_answer() {
    // [TASKS-6] [CANCEL-2]
    for supports_cancel in [true, false] {
        let world = World::new(asking(ToolSpec { supports_cancel, ..spec("ask") }));
        let id = world.call("ask").await;
        world.reaches(id, State::InputRequired).await;
        assert_eq!(world.cancel(id).await, (State::CancelRequested, true));
        assert_eq!(world.end(id).await.record.state, State::Cancelled, "{supports_cancel}");
        assert!(matches!(give(&world, id, "name", "1").await, Given::NotAsked(_)));
    }
    let world = World::new(asking(spec("ask")));
    let id = world.call("ask").await;
    let view = world.end(id).await;
    assert_eq!(view.record.state, State::Failed);
    assert!(failure(&view).message.contains("was not given in time"));
    let began = view.record.started_at.expect("it ran");
    let took = view.record.ended_at.expect("it ended").since(began);
    assert!((3600..3610).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn questions_that_are_asked_with_one_call_are_shown_from_the_first_moment_on() {
    // [TASKS-6]
    let tools = Functions::new().with(spec("ask"), |_, context: TaskContext| async move {
        let one = context.request_input(question("a", 1)).await.expect("an answer");
        let twice = vec![question("b", 2), question("b", 3)];
        let too_many = (0..=MAX_OPEN).map(|n| question(&n.to_string(), 1)).collect();
        for refused in [twice, too_many, vec![question("c", 1), question("no key", 1)]] {
            let error = context.request_inputs(refused).await.expect_err("not so");
            assert_eq!(error.kind, Kind::InvalidRequest);
        }
        // The first is known, and is not asked again.
        let questions = vec![question("a", 1), question("b", 2), question("c", 3)];
        let all = context.request_inputs(questions).await.expect("answers");
        let all: Vec<&str> = all.iter().map(Json::get).collect();
        text(&format!("{} {}", one.get(), all.join(" ")))
    });
    let world = World::new(tools);
    let id = world.call("ask").await;
    asks(&world, id, "a").await;
    give(&world, id, "a", "1").await;
    let mut watch = world.handle.watch(id);
    loop {
        let view = world.handle.status(&Scope::local(), id).await.expect("a task");
        match view.record.asks.as_str() {
            Some("b c") => break,
            other => assert!(matches!(other, None | Some("a")), "one of two was seen: {other:?}"),
        }
        watch.changed().await;
    }
    give(&world, id, "c", "3").await;
    give(&world, id, "b", "2").await;
    assert_eq!(world.end(id).await.payload.expect("details").outcome, Some(text("1 1 2 3")));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_waits_for_a_store_ends_with_its_attempt() {
    // [TASKS-6] [DUR-5]
    let begin = Arc::new(Notify::new());
    let (told, mut heard) = mpsc::unbounded_channel();
    let may_ask = Arc::clone(&begin);
    let tools = Functions::new().with(spec("ask"), move |_, context: TaskContext| {
        let (may_ask, told) = (Arc::clone(&may_ask), told.clone());
        async move {
            may_ask.notified().await;
            let answer = context.request_input(question("name", 1)).await;
            told.send(answer.map_err(|error| error.kind).map(drop)).expect("the test listens");
            Outcome::Cancelled
        }
    });
    let store = Gated::new();
    let world = World::with(options(tools).with_store(store.clone()));
    let id = world.call("ask").await;
    world.reaches(id, State::Running).await;
    store.refuse_reads();
    begin.notify_one();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(heard.try_recv().is_err(), "it waits for the store");
    world.stop.cancel();
    let answer = tokio::time::timeout(Duration::from_secs(600), heard.recv()).await;
    assert_eq!(answer.expect("it looks at the end of its task"), Some(Err(Kind::Cancelled)));
}
