//! Calls that are asked to end.

use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::lifecycle::State;
use serde_json::json;
use tokio::time::sleep;

use crate::world::{SECOND, World, late};

#[tokio::test(start_paused = true)]
async fn a_queued_call_is_cancelled_at_once_and_never_sent() {
    // [CANCEL-1]
    let world = World::new();
    let mut editor = world.editor().await;
    let first = world.menu("0").await;
    let second = world.menu("1").await;
    let call = editor.accept().await.expect("a call");
    assert_eq!(world.cancel(second).await, State::Cancelled);
    editor.end(&call, "ok", json!(0)).await;
    world.result(first).await;
    let third = world.menu("2").await;
    let call = editor.accept().await.expect("a call");
    assert_eq!(call["params"]["path"], "2");
    editor.end(&call, "ok", json!(2)).await;
    assert_eq!(world.result(third).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_running_call_that_can_stop_is_told_to_and_ends_when_the_editor_says_so() {
    // [CANCEL-2]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.submit("run_tests", json!({ "mode": "EditMode" })).await.id();
    let call = editor.accept().await.expect("a call");
    world.until(id, State::Running).await;
    assert_eq!(world.cancel(id).await, State::CancelRequested);
    let cancel = editor.socket.hear_of("cancel").await.expect("told");
    assert_eq!(cancel["target_request_id"], call["request_id"]);
    for _ in 0..20 {
        sleep(SECOND).await;
        editor.state("running_tests").await;
    }
    assert_eq!(world.state(id).await, State::CancelRequested, "[LEASE-10] it still runs");
    editor.end(&call, "cancelled", json!(null)).await;
    assert_eq!(world.end(id).await.record.state, State::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_stop_runs_on_and_its_outcome_stands() {
    // [CANCEL-3]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    let call = editor.accept().await.expect("a call");
    world.until(id, State::Running).await;
    assert_eq!(world.cancel(id).await, State::CancelRequested);
    sleep(10 * SECOND).await;
    editor.state("ready").await;
    let told = tokio::time::timeout(SECOND, editor.socket.hear_of("cancel")).await;
    assert!(told.is_err(), "{told:?}");
    editor.end(&call, "ok", json!("done")).await;
    assert_eq!(world.result(id).await, "done");
    assert!(world.view(id).await.record.cancel.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_result_that_was_there_first_wins() {
    // [CANCEL-5]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.submit("run_tests", json!({ "mode": "EditMode" })).await.id();
    let call = editor.accept().await.expect("a call");
    world.until(id, State::Running).await;
    world.cancel(id).await;
    editor.socket.hear_of("cancel").await.expect("told");
    editor.end(&call, "ok", json!("first")).await;
    let rejected = json!({ "type": "cancel_result", "target_request_id": call["request_id"], "status": "rejected" });
    editor.socket.say(rejected).await;
    assert_eq!(world.result(id).await, "first");
}

#[tokio::test(start_paused = true)]
async fn once_the_editor_has_committed_to_end_it_a_late_result_is_kept_beside() {
    // [CANCEL-5] [LEASE-7]
    for ends_first in [true, false] {
        let world = World::new();
        let mut editor = world.editor().await;
        let id = world.submit("run_tests", json!({ "mode": "EditMode" })).await.id();
        let call = editor.accept().await.expect("a call");
        world.until(id, State::Running).await;
        world.cancel(id).await;
        editor.socket.hear_of("cancel").await.expect("told");
        let told = json!({ "type": "cancel_result", "target_request_id": call["request_id"], "status": "cancelled" });
        editor.socket.say(told).await;
        sleep(SECOND / 10).await;
        assert_eq!(world.state(id).await, State::Cancelling);
        if ends_first {
            editor.end(&call, "cancelled", json!(null)).await;
            sleep(SECOND / 10).await;
        }
        editor.end(&call, "ok", json!({ "late": true })).await;
        let record = world.end(id).await.record;
        assert_eq!((record.state, record.has_stopped), (State::Cancelled, true), "[CANCEL-2]");
        sleep(SECOND).await;
        assert!(late(&world.view(id).await).is_some(), "ends first: {ends_first}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_was_lost_is_said_again_when_the_editor_comes_back() {
    // [CANCEL-2] [LEASE-6]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.submit("run_tests", json!({ "mode": "EditMode" })).await.id();
    let call = editor.accept().await.expect("a call");
    world.until(id, State::Running).await;
    drop(editor);
    sleep(SECOND).await;
    world.cancel(id).await;
    let mut who = crate::world::who();
    who.running = json!([{ "request_id": call["request_id"], "fence": call["fence"] }]);
    let mut editor = world.editor_of(&who).await;
    editor.socket.hear_of("cancel").await.expect("told again");
    editor.end(&call, "cancelled", json!(null)).await;
    assert_eq!(world.end(id).await.record.state, State::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_editor_does_not_know_any_more_frees_its_main_thread() {
    // [CANCEL-4] [LEASE-9]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.submit("run_tests", json!({ "mode": "EditMode" })).await.id();
    let next = world.menu("next").await;
    let call = editor.accept().await.expect("a call");
    world.until(id, State::Running).await;
    world.cancel(id).await;
    editor.socket.hear_of("cancel").await.expect("told");
    let rejected = json!({ "type": "cancel_result", "target_request_id": call["request_id"], "status": "rejected" });
    editor.socket.say(rejected).await;
    let error = world.failure(id).await;
    assert_eq!((error.kind, error.guarantee()), (Kind::PeerLost, Some(Guarantee::Unknown)));
    let call = editor.accept().await.expect("the next call");
    editor.end(&call, "ok", json!(1)).await;
    world.result(next).await;
}
