use std::time::Duration;

use futures_util::FutureExt as _;

use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::task::WaitReason;
use raincheck_runtime::{Functions, Request, Submission, Waited};

use crate::gated::Gated;
use crate::world::{Gate, LONG, World, options, request, spec, text};

const SECOND: Duration = Duration::from_secs(1);

fn world(gate: &Gate) -> (World, std::sync::Arc<Gated>) {
    let store = Gated::new();
    let options = options(gate.tool(Functions::new(), spec("gate"))).with_store(store.clone());
    (World::with(options), store)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_answered_or_executed_before_its_commit() {
    // [DUR-1] [DUR-6]
    let gate = Gate::new();
    let (world, store) = world(&gate);
    world.handle.lanes().await.expect("open");
    store.hold_commits();
    let submit = world.handle.submit(request("gate"));
    let mut submit = std::pin::pin!(submit);
    let early = tokio::time::timeout(4 * SECOND, &mut submit).await;
    assert!(early.is_err(), "it was answered before its commit");
    assert_eq!(gate.n_begun(), 0, "it ran before its commit");
    store.commit();
    let Ok(Submission::Task(accepted)) = submit.await else { panic!("accepted") };
    world.reaches(accepted.record.id(), State::Running).await;
    assert_eq!(gate.begun(1).await, [accepted.record.id()]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_loses_nothing() {
    // [TIME-1] [CALL-3]
    let gate = Gate::new();
    let (world, store) = world(&gate);
    world.handle.lanes().await.expect("open");
    store.hold_commits();
    assert!(world.handle.submit(request("gate")).now_or_never().is_none());
    store.commit();
    gate.open(1);
    let mut ended = 0;
    while ended == 0 {
        tokio::time::sleep(SECOND).await;
        let all = world.handle.list(&Scope::local(), &Default::default(), None, 9).await;
        let rows = all.expect("a list").items;
        assert_eq!(rows.len(), 1, "the task is there");
        ended = rows.iter().filter(|record| record.state == State::Succeeded).count();
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_whose_caller_goes_away_counts() {
    // [CANCEL-2]
    let gate = Gate::new();
    let (world, store) = world(&gate);
    let first = world.call("gate").await;
    world.reaches(first, State::Running).await;
    let second = world.call("gate").await;
    store.hold_commits();
    assert!(world.handle.cancel(&Scope::local(), second, None).now_or_never().is_none());
    store.commit();
    assert_eq!(world.end(second).await.record.state, State::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_opened_is_every_answer_until_it_can() {
    // [DUR-5]
    let store = Gated::new();
    store.break_down();
    let world = World::with(options(Functions::new()).with_store(store.clone()));
    for _ in 0..3 {
        let error = world.handle.lanes().await.expect_err("not open");
        assert_eq!(error.kind, Kind::StorageUnavailable);
        assert_eq!(&*error.message, "no space left on the device");
    }
    store.mend();
    let (first, second) = tokio::join!(world.handle.lanes(), world.handle.lanes());
    assert!(!first.expect("tried again").is_empty());
    assert!(!second.expect("tried again").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_may_be_open_by_now_is_opened_without_a_request() {
    // [DUR-3] [ATTACH-5]
    let store = Gated::new();
    store.break_down();
    let world = World::with(options(Functions::new()).with_store(store.clone()));
    world.handle.lanes().await.expect_err("not open");
    store.mend();
    world.handle.open_again();
    let opened = tokio::time::timeout(60 * SECOND, world.handle.opened());
    assert!(opened.await.expect("nobody has to ask"));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_breaks_down_refuses_and_the_engine_lives_on() {
    // [DUR-5]
    let gate = Gate::new();
    let (world, store) = world(&gate);
    let id = world.call("gate").await;
    world.reaches(id, State::Running).await;
    store.break_down();
    let error = world.handle.submit(request("gate")).await.expect_err("refused");
    assert_eq!(error.kind, Kind::StorageUnavailable);
    gate.open(1);
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(world.view(id).await.record.state, State::Running, "nothing was made up");
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_the_store_refuses_is_kept_until_it_takes_it() {
    // [DUR-5] [QUEUE-6]
    let gate = Gate::new();
    let (world, store) = world(&gate);
    let first = world.call("gate").await;
    world.reaches(first, State::Running).await;
    let second = world.call("gate").await;
    store.break_down();
    gate.open(2);
    tokio::time::sleep(15 * SECOND).await;
    assert_eq!(world.view(first).await.record.state, State::Running, "nothing was made up");
    store.mend();
    for id in [first, second] {
        let view = world.end(id).await;
        assert_eq!((view.record.state, view.record.attempt), (State::Succeeded, 1));
    }
    assert_eq!(gate.begun(2).await, [first, second], "each ran once");
}

#[tokio::test(start_paused = true)]
async fn a_start_that_the_store_refuses_waits_for_it() {
    // [DUR-1] [DUR-5]
    let gate = Gate::new();
    let (world, store) = world(&gate);
    world.handle.lanes().await.expect("open");
    store.hold_commits();
    let submit = world.handle.submit(request("gate"));
    let mut submit = std::pin::pin!(submit);
    assert!(tokio::time::timeout(SECOND, &mut submit).await.is_err());
    store.break_down();
    store.commit();
    let Ok(Submission::Task(accepted)) = submit.await else { panic!("accepted") };
    tokio::time::sleep(3 * SECOND).await;
    store.mend();
    let id = accepted.record.id();
    assert_eq!(world.reaches(id, State::Running).await.record.attempt, 1);
    gate.open(1);
    assert_eq!(world.end(id).await.record.state, State::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_place_that_the_store_does_not_take_back_is_given_back_later() {
    // [DUR-5] [QUEUE-6]
    let gate = Gate::new();
    let goes_back = gate.clone();
    let tools = Functions::new().with(spec("fickle"), move |attempt, context| {
        let gate = goes_back.clone();
        async move {
            if gate.n_begun() == 0 {
                gate.note(attempt.record.id());
                context.protocol().not_delivered().await.expect("a store that works");
                gate.pass().await;
            }
            text("at last")
        }
    });
    let store = Gated::new();
    let tools = options(gate.tool(tools, spec("gate"))).with_store(store.clone());
    let world = World::with(tools);
    let first = world.call("fickle").await;
    gate.begun(1).await;
    world.reaches(first, State::Queued).await;
    store.break_down();
    gate.open(1);
    tokio::time::sleep(5 * SECOND).await;
    store.mend();
    let view = world.handle.wait_end(&Scope::local(), first, 5 * SECOND).await.expect("a task");
    assert_eq!(view.record.state, State::Succeeded, "its place was free again");
}

#[tokio::test(start_paused = true)]
async fn a_call_in_place_looks_at_once_when_the_store_fails_under_it() {
    // [DUR-5] [CALL-1]: its task may be lost, and nothing else would wake it before its budget ends.
    let gate = Gate::new();
    let (world, store) = world(&gate);
    world.handle.lanes().await.expect("open");
    store.hold_commits();
    let inline = Request { is_inline: true, ..request("gate") };
    let submit = world.handle.submit(inline);
    let mut submit = std::pin::pin!(submit);
    assert!(tokio::time::timeout(SECOND, &mut submit).await.is_err());
    store.break_down();
    store.commit();
    let Ok(Submission::Task(accepted)) = submit.await else { panic!("accepted") };
    let waited = world.handle.wait_accepted(accepted, LONG);
    let view = tokio::time::timeout(60 * SECOND, waited).await.expect("it looked");
    assert!(!view.expect("a task").record.state.is_terminal());
}

/// Makes an inline call, and waits for its answer while no end is committed.
async fn answered_meanwhile(request: Request) -> Waited {
    let gate = Gate::new();
    let (world, store) = world(&gate);
    let accepted = world.submit(Request { is_inline: true, ..request }).await;
    let id = accepted.record.id();
    gate.begun(1).await;
    world.reaches(id, State::Running).await;
    store.hold_commits();
    gate.open(1);
    let waited = world.handle.wait_result(accepted, LONG).await.expect("an answer");
    store.commit();
    assert_eq!(world.end(id).await.record.state, State::Succeeded, "it is recorded all the same");
    waited
}

#[tokio::test(start_paused = true)]
async fn only_the_result_of_a_call_without_a_handle_and_a_key_passes_the_store_by() {
    // [DUR-1] [CALL-1]: what is read from the store waits there for its commit.
    let waited = answered_meanwhile(request("gate")).await;
    assert!(matches!(waited, Waited::Result(_)), "{waited:?}");
    let keyed = Request { key: Some("again".into()), ..request("gate") };
    let waited = answered_meanwhile(keyed).await;
    assert!(matches!(waited, Waited::View(_)), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn work_that_could_not_be_leased_is_looked_for_again() {
    // [DUR-5]
    let gate = Gate::new();
    let (world, store) = world(&gate);
    world.handle.lanes().await.expect("open");
    let lane = raincheck_core::ids::LaneId::from("one");
    world.handle.hold(lane.clone(), Some(WaitReason::new("busy"))).await.expect("held");
    world.call("gate").await;
    store.break_down();
    world.handle.hold(lane, None).await.expect("let go");
    tokio::time::sleep(5 * SECOND).await;
    store.mend();
    let begun = tokio::time::timeout(5 * SECOND, gate.begun(1)).await;
    assert!(begun.is_ok(), "it stands in line beside a free place");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_task_the_store_lost_is_told_so_at_its_end() {
    // [LEASE-4] [DUR-6]
    let gate = Gate::new();
    let (world, store) = world(&gate);
    let inline = Request { is_inline: true, ..request("gate") };
    let accepted = world.submit(inline).await;
    gate.begun(1).await;
    store.lose();
    gate.open(1);
    let before = world.handle.now();
    let error = world.handle.wait_accepted(accepted, 600 * SECOND).await.expect_err("lost");
    assert_eq!((error.kind, error.guarantee()), (Kind::WorkerLost, Some(Guarantee::Unknown)));
    assert_eq!(world.handle.now(), before, "nothing more was to be waited for");
}
