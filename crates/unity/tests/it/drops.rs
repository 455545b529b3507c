//! Connections that are lost with calls under way.

use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::lifecycle::State;
use serde_json::{Value, json};
use tokio::time::{Instant, advance, sleep, timeout};

use crate::world::{SECOND, World, late, who};

fn running(call: &Value) -> Value {
    json!([{ "request_id": call["request_id"], "fence": call["fence"] }])
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_editor_never_had_is_sent_again_as_another_attempt() {
    // [LEASE-5] [LEASE-1]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    let first = editor.call().await.expect("a call");
    drop(editor);
    sleep(SECOND).await;
    let mut editor = world.editor().await;
    let second = editor.accept().await.expect("the call again");
    let number = |call: &Value| {
        call["request_id"].as_str().expect("a name").rsplit('.').next().map(str::to_owned)
    };
    assert_eq!((number(&first).as_deref(), number(&second).as_deref()), (Some("1"), Some("2")));
    assert!(second["fence"].as_u64() > first["fence"].as_u64());
    editor.end(&second, "ok", json!(1)).await;
    assert_eq!(world.result(id).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_acceptance_was_lost_goes_on_if_the_editor_has_it() {
    // [LEASE-5] [LEASE-6]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    let call = editor.call().await.expect("a call");
    drop(editor);
    sleep(SECOND).await;
    let mut who = who();
    who.running = running(&call);
    let mut editor = world.editor_of(&who).await;
    sleep(SECOND).await;
    editor.end(&call, "ok", json!("once")).await;
    assert_eq!(world.result(id).await, "once");
    editor.socket.hear_of("result_ack").await.expect("an acknowledgement");
}

#[tokio::test(start_paused = true)]
async fn what_ended_while_the_connection_was_down_is_taken_from_the_outbox() {
    // [LEASE-6]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    let call = editor.accept().await.expect("a call");
    drop(editor);
    sleep(20 * SECOND).await;
    let mut who = who();
    who.finished = json!([call["request_id"]]);
    let mut editor = world.editor_of(&who).await;
    editor.end(&call, "ok", json!("kept")).await;
    assert_eq!(world.result(id).await, "kept");
    editor.socket.hear_of("result_ack").await.expect("an acknowledgement");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_editor_had_and_lost_is_lost_and_never_sent_again() {
    // [LEASE-3] [LEASE-4]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    let call = editor.accept().await.expect("a call");
    drop(editor);
    sleep(SECOND).await;
    let mut editor = world.editor().await;
    let error = world.failure(id).await;
    assert_eq!((error.kind, error.guarantee()), (Kind::PeerLost, Some(Guarantee::Unknown)));
    assert_eq!(error.recovery().as_str(), "inspect_then_retry");
    editor.end(&call, "ok", json!({ "late": true })).await;
    editor.socket.hear_of("result_ack").await.expect("an acknowledgement");
    assert!(late(&world.view(id).await).is_some(), "[LEASE-7]");
    let next = world.menu("B").await;
    let call = editor.accept().await.expect("the next call");
    assert_eq!(call["params"]["path"], "B");
    editor.end(&call, "ok", json!(1)).await;
    world.result(next).await;
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_stays_away_is_waited_for_as_long_as_was_promised() {
    // [LEASE-6]
    for (state, grace) in [("ready", 45), ("compiling", 90)] {
        let world = World::new();
        let mut editor = world.editor().await;
        let id = world.submit("refresh_and_compile", json!({})).await.id();
        editor.accept().await.expect("a call");
        editor.state(state).await;
        sleep(SECOND).await;
        drop(editor);
        let begin = Instant::now();
        let error = world.failure(id).await;
        assert_eq!((error.kind, error.guarantee()), (Kind::PeerLost, Some(Guarantee::Unknown)));
        assert_eq!(begin.elapsed().as_secs(), grace, "{state}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reload_with_three_calls_loses_none() {
    // [LEASE-6] [QUEUE-5]
    let world = World::new();
    let mut editor = world.editor().await;
    let ids = [world.menu("0").await, world.menu("1").await, world.menu("2").await];
    let call = editor.accept().await.expect("a call");
    editor.state("reloading").await;
    editor.socket.say(json!({ "type": "bye", "reason": "reload", "expected_back_ms": 400 })).await;
    drop(editor);
    sleep(SECOND).await;
    assert_eq!(world.state(ids[1]).await, State::Waiting);
    let mut who = who();
    who.finished = json!([call["request_id"]]);
    let mut editor = world.editor_of(&who).await;
    editor.end(&call, "ok", json!(0)).await;
    for (n, id) in ids.into_iter().enumerate() {
        if n > 0 {
            let call = editor.accept().await.expect("a call");
            assert_eq!(call["params"]["path"], n.to_string());
            editor.end(&call, "ok", json!(n)).await;
        }
        assert_eq!(world.result(id).await, n);
    }
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_does_not_say_that_it_has_a_call_may_have_it() {
    // [LEASE-9]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    editor.call().await.expect("a call");
    let begin = Instant::now();
    let error = world.failure(id).await;
    assert_eq!((error.kind, error.guarantee()), (Kind::AcceptTimeout, Some(Guarantee::Unknown)));
    assert!(!error.is_retryable());
    assert_eq!(begin.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_stopped_hears_its_editor_before_it_judges() {
    // [LEASE-8]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.submit("run_tests", json!({ "mode": "EditMode" })).await.id();
    let call = editor.accept().await.expect("a call");
    for _ in 0..3 {
        sleep(4 * SECOND).await;
        editor.state("running_tests").await;
        advance(25 * SECOND).await;
        sleep(SECOND / 2).await;
        assert!(
            editor.state("running_tests").await,
            "a stop of the server is no silence of the editor"
        );
    }
    editor.end(&call, "ok", json!("done")).await;
    assert_eq!(world.result(id).await, "done");
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_is_away_is_still_expected_after_a_stop_of_the_server() {
    // [LEASE-8]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.submit("run_tests", json!({ "mode": "EditMode" })).await.id();
    let call = editor.accept().await.expect("a call");
    drop(editor);
    sleep(20 * SECOND).await;
    advance(25 * SECOND).await;
    advance(25 * SECOND).await;
    sleep(SECOND).await;
    let mut who = who();
    who.finished = json!([call["request_id"]]);
    let mut editor = world.editor_of(&who).await;
    editor.end(&call, "ok", json!("done")).await;
    assert_eq!(world.result(id).await, "done");
}

#[tokio::test(start_paused = true)]
async fn twenty_reloads_lose_nothing_and_run_nothing_twice() {
    // [LEASE-6]
    let world = World::new();
    let mut who = who();
    let mut expected = Vec::new();
    for n in 0..20 {
        let mut editor = world.editor_of(&who).await;
        let ids = [world.menu(&format!("{n}a")).await, world.menu(&format!("{n}b")).await];
        for id in ids {
            let call = editor.accept().await.expect("a call");
            editor.end(&call, "ok", call["params"]["path"].clone()).await;
            expected.push((id, call["params"]["path"].clone()));
        }
        if n % 2 == 0 {
            editor.state("reloading").await;
            editor.socket.say(json!({ "type": "bye", "reason": "reload" })).await;
        }
        who.finished = json!([]);
    }
    for (id, path) in expected {
        assert_eq!(world.result(id).await, path);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_an_editor_took_and_surely_never_began_is_sent_again() {
    // [LEASE-5] [LEASE-9]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    let call = editor.accept().await.expect("a call");
    world.until(id, State::Running).await;
    let error = json!({ "code": "ERR_UNITY_DISCONNECTED", "message": "the editor ended before it began", "details": { "execution_guarantee": "not_executed" } });
    let declined = json!({ "type": "error", "request_id": call["request_id"], "error": error });
    editor.socket.say(declined).await;
    let again = editor.accept().await.expect("the call again");
    editor.end(&again, "ok", json!(1)).await;
    assert_eq!(world.result(id).await, 1);
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_has_stopped_is_handed_one_call_and_no_more() {
    // [LEASE-9]
    let world = World::new();
    let mut editor = world.editor().await;
    let first = world.menu("0").await;
    let second = world.menu("1").await;
    editor.call().await.expect("a call");
    assert_eq!(world.failure(first).await.kind, Kind::AcceptTimeout);
    let call = timeout(9 * SECOND, editor.call()).await;
    assert!(call.is_err(), "it has said nothing since: {call:?}");
    editor.state("ready").await;
    let call = editor.accept().await.expect("the second call");
    editor.end(&call, "ok", json!(1)).await;
    assert_eq!(world.result(second).await, 1);
}

/// A call that does not fit into what a socket takes without being read.
fn long() -> String {
    "x".repeat(700 * 1024)
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_does_not_read_is_away_when_it_has_been_silent_too_long() {
    // [UNITY-4]
    let world = World::new();
    let _editor = world.editor().await;
    world.menu(&long()).await;
    sleep(20 * SECOND).await;
    assert!(!world.bridge.editors().iter().any(|editor| editor.is_connected));
}

#[tokio::test(start_paused = true)]
async fn what_was_posted_to_a_connection_that_another_took_the_place_of_goes_to_that_one() {
    // [LEASE-5] [UNITY-3]
    let world = World::new();
    let mut old = world.editor().await;
    world.menu(&long()).await;
    sleep(SECOND).await;
    let id = world.submit("read_console", json!({})).await.id();
    sleep(SECOND).await;
    let mut new = world.editor().await;
    while let Some(message) = old.socket.hear().await {
        assert_ne!(message["tool_name"], "read_console", "nobody listens there any more");
    }
    let call = loop {
        let call = new.accept().await.expect("a call");
        if call["tool_name"] == "read_console" {
            break call;
        }
    };
    new.end(&call, "ok", json!("lines")).await;
    assert_eq!(world.result(id).await, "lines");
}

#[tokio::test(start_paused = true)]
async fn how_a_job_stands_is_asked_under_a_name_of_its_own() {
    // [UNITY-8]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.submit("run_tests", json!({ "mode": "EditMode" })).await.id();
    let call = editor.accept().await.expect("a call");
    drop(editor);
    let mut who = who();
    who.running = json!([{ "request_id": call["request_id"], "job_id": "j-1" }]);
    let mut editor = world.editor_of(&who).await;
    let asked = editor.socket.hear_of("get_job_status").await.expect("asked");
    let error = json!({ "code": "ERR_JOB_NOT_FOUND", "message": "none" });
    let unknown = json!({ "type": "error", "request_id": asked["request_id"], "error": error });
    editor.socket.say(unknown).await;
    editor.end(&call, "ok", json!("passed")).await;
    assert_eq!(world.result(id).await, "passed");
}
