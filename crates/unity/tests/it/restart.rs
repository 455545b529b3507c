//! Servers that are killed or ended with calls under way.

use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::lifecycle::State;
use raincheck_testkit::editor::Who;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::world::{SECOND, World, who};

fn running(call: &Value) -> Value {
    json!([{ "request_id": call["request_id"], "fence": call["fence"] }])
}

#[tokio::test(start_paused = true)]
async fn a_call_that_outlives_its_server_is_taken_up_by_the_next_one() {
    // [DUR-3] [LEASE-6]
    for is_killed in [true, false] {
        let world = World::new();
        let mut editor = world.editor().await;
        let id = world.menu("A").await;
        let next = world.menu("B").await;
        let call = editor.accept().await.expect("a call");
        world.until(id, State::Running).await;
        let world = if is_killed { world.killed().await } else { world.restarted().await };
        sleep(SECOND).await;
        let mut who = who();
        who.running = running(&call);
        let mut editor = world.editor_of(&who).await;
        sleep(SECOND).await;
        assert_eq!(world.state(id).await, State::Running);
        editor.end(&call, "ok", json!("once")).await;
        assert_eq!(world.result(id).await, "once");
        let call = editor.accept().await.expect("the next call");
        editor.end(&call, "ok", json!("next")).await;
        assert_eq!(world.result(next).await, "next");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ended_while_no_server_ran_is_taken_from_the_outbox() {
    // [DUR-3] [LEASE-6]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    let call = editor.accept().await.expect("a call");
    world.until(id, State::Running).await;
    let world = world.killed().await;
    sleep(5 * SECOND).await;
    let mut who = who();
    who.finished = json!([call["request_id"]]);
    let mut editor = world.editor_of(&who).await;
    editor.end(&call, "ok", json!("kept")).await;
    assert_eq!(world.result(id).await, "kept");
    editor.socket.hear_of("result_ack").await.expect("an acknowledgement");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_no_editor_speaks_of_any_more_is_lost_after_the_grace() {
    // [LEASE-3] [LEASE-6]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.submit("run_tests", json!({ "mode": "EditMode" })).await.id();
    editor.accept().await.expect("a call");
    world.until(id, State::Running).await;
    let world = world.killed().await;
    let error = world.failure(id).await;
    assert_eq!((error.kind, error.guarantee()), (Kind::PeerLost, Some(Guarantee::Unknown)));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_not_have_arrived_before_a_kill_is_sent_again_if_its_editor_never_had_it() {
    // [LEASE-5] [LEASE-9]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    editor.call().await.expect("a call");
    let world = world.killed().await;
    let mut editor = world.editor().await;
    let again = editor.accept().await.expect("the call again");
    assert!(again["request_id"].as_str().expect("a name").ends_with(".2"), "{again}");
    editor.end(&again, "ok", json!(1)).await;
    assert_eq!(world.result(id).await, 1);
}

#[tokio::test(start_paused = true)]
async fn what_another_editor_may_have_had_before_a_kill_is_not_sent_again() {
    // [LEASE-9]
    let world = World::new();
    let id = world.menu("A").await;
    let mut other = world.editor_of(&Who::new("/projects/other", "Other")).await;
    other.call().await.expect("a call that was made while no editor was known");
    let world = world.killed().await;
    let mut own = world.editor().await;
    let call = timeout(10 * SECOND, own.call()).await;
    assert!(call.is_err(), "it may be running in the other: {call:?}");
    let error = world.failure(id).await;
    assert_eq!((error.kind, error.guarantee()), (Kind::PeerLost, Some(Guarantee::Unknown)));
}

#[tokio::test(start_paused = true)]
async fn an_editor_may_have_been_compiling_when_its_server_was_killed() {
    // [LEASE-6]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.submit("refresh_and_compile", json!({})).await.id();
    let call = editor.accept().await.expect("a call");
    world.until(id, State::Running).await;
    let world = world.killed().await;
    sleep(60 * SECOND).await;
    let mut who = who();
    who.finished = json!([call["request_id"]]);
    let mut editor = world.editor_of(&who).await;
    editor.end(&call, "ok", json!("compiled")).await;
    assert_eq!(world.result(id).await, "compiled");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_joined_a_lost_run_and_made_its_own_outlives_its_server_too() {
    // [UNITY-11] [DUR-3]
    let world = World::new();
    let mut editor = world.editor().await;
    let inputs = json!({ "mode": "EditMode" });
    let first = world.submit("run_tests", inputs.clone()).await.id();
    editor.accept().await.expect("a call");
    drop(editor);
    sleep(SECOND).await;
    let second = world.submit("run_tests", inputs).await.id();
    let mut editor = world.editor().await;
    assert_eq!(world.failure(first).await.kind, Kind::PeerLost);
    let call = editor.accept().await.expect("a run of its own");
    world.until(second, State::Running).await;
    let world = world.killed().await;
    let mut who = who();
    who.running = running(&call);
    let mut editor = world.editor_of(&who).await;
    editor.end(&call, "ok", json!("passed")).await;
    assert_eq!(world.result(second).await, "passed");
}
