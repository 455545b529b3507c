//! Calls that nothing happens to: their order, their answers, what they wait for.

use raincheck_core::error::Kind;
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_runtime::Submission;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::world::{SECOND, World, who};

#[tokio::test(start_paused = true)]
async fn a_call_goes_to_the_editor_once_and_its_result_is_acknowledged_once_kept() {
    // [UNITY-8] [LEASE-1] [DUR-1]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.submit("execute_menu_item", json!({ "path": "Kit/A" })).await.id();
    let call = editor.accept().await.expect("a call");
    assert_eq!(call["type"], "execute");
    assert_eq!(call["request_id"], format!("{}.1", id.spell(raincheck_core::ids::Spelling::Uuid)));
    assert_eq!(
        (&call["tool_name"], &call["params"]),
        (&json!("execute_menu_item"), &json!({ "path": "Kit/A" }))
    );
    assert_eq!(call["timeout_ms"], 30_000);
    assert!(call["fence"].is_u64() && call["submitted_at"].is_string(), "{call}");
    editor.about("started", &call).await;
    editor.end(&call, "ok", json!({ "done": true })).await;
    let ack = editor.socket.hear_of("result_ack").await.expect("an acknowledgement");
    assert_eq!(ack["request_id"], call["request_id"]);
    assert_eq!(world.state(id).await, State::Succeeded);
    assert_eq!(world.result(id).await, json!({ "done": true }));
}

#[tokio::test(start_paused = true)]
async fn one_call_at_a_time_in_the_order_of_arrival() {
    // [QUEUE-1] [QUEUE-6]
    let world = World::new();
    let mut editor = world.editor().await;
    let mut ids = Vec::new();
    for n in 0..4 {
        ids.push(world.menu(&n.to_string()).await);
    }
    ids.push(world.submit("run_tests", json!({ "mode": "EditMode" })).await.id());
    for (n, id) in ids.into_iter().enumerate() {
        let call = editor.accept().await.expect("a call");
        let expected = if n == 4 { json!("run_tests") } else { json!("execute_menu_item") };
        assert_eq!(call["tool_name"], expected);
        sleep(SECOND).await;
        let waits = tokio::time::timeout(SECOND / 10, editor.call()).await;
        assert!(waits.is_err(), "another call came: {waits:?}");
        editor.end(&call, "ok", json!(n)).await;
        assert_eq!(world.result(id).await, n);
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_lane_refuses_at_once() {
    // [QUEUE-2]
    let world = World::new();
    let mut editor = world.editor().await;
    world.menu("0").await;
    editor.accept().await.expect("a call");
    for n in 1..=32 {
        world.menu(&n.to_string()).await;
    }
    let refused = world.try_submit("execute_menu_item", json!({ "path": "x" })).await;
    assert_eq!(refused.expect_err("full").kind, Kind::QueueFull);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_an_editor_says_so_and_runs_once_when_one_comes() {
    // [QUEUE-5] [UNITY-7]
    let world = World::new();
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(world.menu(&n.to_string()).await);
    }
    for id in &ids {
        let record = world.view(*id).await.record;
        assert_eq!(record.state, State::Waiting);
        assert_eq!(record.waiting.expect("a reason").as_str(), "disconnected");
    }
    sleep(10 * SECOND).await;
    let mut editor = world.editor().await;
    for (n, id) in ids.into_iter().enumerate() {
        let call = editor.accept().await.expect("a call");
        assert_eq!(call["params"]["path"], n.to_string());
        editor.end(&call, "ok", json!(n)).await;
        assert_eq!(world.result(id).await, n);
    }
}

#[tokio::test(start_paused = true)]
async fn without_an_editor_a_call_fails_in_the_end_and_surely_did_not_run() {
    // [QUEUE-5] [STATE-5]
    let world = World::new();
    let begin = Instant::now();
    let error = world.failure(world.menu("A").await).await;
    assert_eq!(error.kind, Kind::PeerNotReady);
    assert_eq!(error.guarantee().expect("known").as_str(), "not_executed");
    assert_eq!(begin.elapsed().as_secs(), 45);
    let state = world.answer("get_editor_state", json!({})).await;
    assert_eq!((&state["connected"], &state["state"]), (&json!(false), &json!("disconnected")));
}

#[tokio::test(start_paused = true)]
async fn while_the_editor_compiles_calls_wait_in_order_and_control_tools_do_not() {
    // [QUEUE-4] [QUEUE-5] [UNITY-10]
    let world = World::new();
    let mut editor = world.editor().await;
    editor.state("compiling").await;
    sleep(SECOND / 10).await;
    let ids = [world.menu("0").await, world.menu("1").await];
    sleep(5 * SECOND).await;
    assert_eq!(world.state(ids[0]).await, State::Waiting);
    assert_eq!(world.answer("get_editor_state", json!({})).await["state"], "compiling");
    let console = world.submit("read_console", json!({ "limit": 5 })).await.id();
    let call = editor.accept().await.expect("a call");
    assert_eq!(call["tool_name"], "read_console");
    editor.end(&call, "ok", json!([])).await;
    assert_eq!(world.result(console).await, json!([]));
    for _ in 0..6 {
        sleep(10 * SECOND).await;
        editor.state("compiling").await;
    }
    editor.state("ready").await;
    for (n, id) in ids.into_iter().enumerate() {
        let call = editor.accept().await.expect("a call");
        assert_eq!(call["params"]["path"], n.to_string());
        editor.end(&call, "ok", json!(n)).await;
        assert_eq!(world.result(id).await, n);
    }
}

#[tokio::test(start_paused = true)]
async fn control_tools_work_while_a_call_holds_the_main_thread() {
    // [QUEUE-4] [UNITY-10]
    let world = World::new();
    let mut editor = world.editor().await;
    let held = world.menu("0").await;
    let call = editor.accept().await.expect("a call");
    let console = world.submit("read_console", json!({})).await.id();
    let beside = editor.accept().await.expect("a call beside it");
    editor.end(&beside, "ok", json!("beside")).await;
    assert_eq!(world.result(console).await, "beside");
    editor.end(&call, "ok", json!("held")).await;
    assert_eq!(world.result(held).await, "held");
}

#[tokio::test(start_paused = true)]
async fn progress_is_the_latest_and_never_an_older_one() {
    // [RESULT-2] Case unity-odd-test-names.
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.submit("run_tests", json!({ "mode": "EditMode" })).await.id();
    let call = editor.accept().await.expect("a call");
    for (seq, n) in [(1, 3), (3, 15), (2, 7)] {
        let names: Vec<String> = (0..n).map(|n| format!("T(\u{1}{n})")).collect();
        let progress = json!({
            "type": "progress", "request_id": call["request_id"], "fence": call["fence"], "seq": seq,
            "current": n, "total": 42, "message": format!("{n}/42\u{1b}[2J"),
            "partial": { "completed_tests": names, "total_tests": 42, "completed_count": n },
        });
        editor.socket.say(progress).await;
    }
    sleep(SECOND).await;
    let view = world.view(id).await;
    assert_eq!(view.record.state, State::Running);
    let progress = view.progress.expect("progress");
    assert_eq!((progress.step, progress.step_total), (Some(15), Some(42)));
    assert_eq!(progress.message.as_deref(), Some("15/42\\x1b[2J"));
    let partial: Value = view.partial.expect("a partial result").read().expect("JSON");
    assert_eq!(partial["completed_count"], 15);
}

#[tokio::test(start_paused = true)]
async fn a_result_in_chunks_is_put_together_and_large_params_are_cut() {
    // [UNITY-6]
    let world = World::new();
    let mut editor = world.editor().await;
    let big = "x".repeat(3 * 1024 * 1024);
    let id = world.submit("execute_menu_item", json!({ "path": big })).await.id();
    let chunk = editor.socket.hear_of("chunk").await.expect("the first of some");
    let total = chunk["total"].as_u64().expect("a number");
    for _ in 1..total {
        editor.socket.hear_of("chunk").await.expect("the next");
    }
    let request = chunk["request_id"].clone();
    let call = json!({ "request_id": request, "fence": null });
    editor.about("accepted", &call).await;
    let result = raincheck_testkit::editor::ended(&call, "ok", json!({ "text": big })).to_string();
    let pieces: Vec<&[u8]> = result.as_bytes().chunks(400_000).collect();
    for (index, piece) in pieces.iter().enumerate() {
        let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, piece);
        let chunk = json!({ "type": "chunk", "request_id": request, "index": index, "total": pieces.len(), "data": data });
        editor.socket.say(chunk).await;
    }
    assert_eq!(world.result(id).await["text"].as_str().expect("text").len(), big.len());
}

#[tokio::test(start_paused = true)]
async fn jobs_are_submitted_as_such_where_the_editor_says_that_they_are() {
    let world = World::new();
    let mut who = who();
    who.tools = json!([{ "name": "run_tests", "execution_mode": "job", "supports_cancel": true }]);
    let mut editor = world.editor_of(&who).await;
    let id = world.submit("run_tests", json!({ "mode": "EditMode" })).await.id();
    let call = editor.accept().await.expect("a call");
    assert_eq!(call["type"], "submit_job");
    editor.socket.say(json!({ "type": "submit_job_result", "request_id": call["request_id"], "status": "accepted", "job_id": "j1" })).await;
    let progress =
        json!({ "type": "progress", "job_id": "j1", "seq": 1, "current": 1, "total": 2 });
    editor.socket.say(progress).await;
    sleep(SECOND).await;
    assert_eq!(world.view(id).await.progress.expect("progress").step, Some(1));
    let status = json!({ "type": "job_status", "job_id": "j1", "state": "succeeded", "result": { "passed": 2 } });
    editor.socket.say(status).await;
    assert_eq!(world.result(id).await["passed"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_command_of_the_project_s_own_is_called_by_its_name() {
    // [UNITY-12]
    let world = World::new();
    let mut who = who();
    who.tools = json!([{ "name": "kit_echo", "default_timeout_ms": 7000, "read_only": true, "description": "e" }]);
    let mut editor = world.editor_of(&who).await;
    let listed = world.answer("list_unity_commands", json!({})).await;
    assert_eq!(listed["commands"][0]["name"], "kit_echo");
    let inputs = json!({ "name": "kit_echo", "params": { "deep": { "n": [1, 2.5, null] } } });
    let id = world.submit("unity_call", inputs).await.id();
    let call = editor.accept().await.expect("a call");
    assert_eq!((&call["tool_name"], &call["timeout_ms"]), (&json!("kit_echo"), &json!(7000)));
    assert_eq!(call["params"], json!({ "deep": { "n": [1, 2.5, null] } }));
    editor.end(&call, "ok", json!(1)).await;
    assert_eq!(world.result(id).await, 1);
    let unknown = world.try_submit("unity_call", json!({ "name": "no_such" })).await;
    assert_eq!(unknown.expect_err("unknown").kind, Kind::UnknownTool);
}

#[tokio::test(start_paused = true)]
async fn code_is_run_only_where_that_was_allowed() {
    // [UNITY-12]
    let world = World::new();
    let _editor = world.editor().await;
    for (tool, inputs) in [
        ("execute_code", json!({ "code": "1" })),
        ("unity_call", json!({ "name": "execute_code", "params": { "code": "1" } })),
    ] {
        let refused = world.try_submit(tool, inputs).await.expect_err("refused");
        assert_eq!(refused.kind, Kind::InvalidRequest, "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_editor_is_an_error_of_the_call() {
    // [CALL-5]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    let call = editor.accept().await.expect("a call");
    editor.end(&call, "error", json!({ "code": "X", "message": "no menu item" })).await;
    let error = world.failure(id).await;
    assert_eq!(error.kind, Kind::ToolFailed);
    assert_eq!(error.quoted.expect("quoted").text.as_ref(), "no menu item");
    let id = world.menu("B").await;
    let call = editor.call().await.expect("a call");
    let refusal = json!({ "code": "ERR_UNKNOWN_COMMAND", "message": "m", "details": { "execution_guarantee": "not_executed" } });
    editor
        .socket
        .say(json!({ "type": "error", "request_id": call["request_id"], "error": refusal }))
        .await;
    let error = world.failure(id).await;
    assert_eq!(error.kind, Kind::UnknownTool);
    assert_eq!(error.guarantee().expect("known").as_str(), "not_executed");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_result_is_acknowledged_again_and_changes_nothing() {
    // [LEASE-6] [RESULT-1] [STATE-2]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    let call = editor.accept().await.expect("a call");
    editor.end(&call, "ok", json!("first")).await;
    editor.socket.hear_of("result_ack").await.expect("an acknowledgement");
    editor.end(&call, "ok", json!("forged")).await;
    editor.socket.hear_of("result_ack").await.expect("another one");
    assert_eq!(world.result(id).await, "first");
    let mut stale = call.clone();
    let older = world.menu("B").await;
    let call = editor.accept().await.expect("a call");
    stale["request_id"] = call["request_id"].clone();
    stale["fence"] = json!(call["fence"].as_u64().expect("a fence") - 1);
    editor.end(&stale, "ok", json!("forged")).await;
    sleep(SECOND).await;
    assert_eq!(world.state(older).await, State::Running, "[LEASE-1]");
    editor.end(&call, "ok", json!("second")).await;
    assert_eq!(world.result(older).await, "second");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_too_long_is_timed_out_and_its_place_stays_taken() {
    // [TIME-3] [QUEUE-6] [LEASE-10]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    let next = world.menu("B").await;
    let call = editor.accept().await.expect("a call");
    let keep = async {
        for _ in 0..60 {
            sleep(SECOND).await;
            editor.state("ready").await;
        }
    };
    keep.await;
    assert_eq!(world.state(id).await, State::TimedOut);
    assert_eq!(world.state(next).await, State::Queued, "the editor is still at it");
    editor.end(&call, "ok", json!("late")).await;
    let call = editor.accept().await.expect("the next call");
    editor.end(&call, "ok", json!("next")).await;
    assert_eq!(world.result(next).await, "next");
    assert!(crate::world::late(&world.view(id).await).is_some(), "[LEASE-7]");
}

#[tokio::test(start_paused = true)]
async fn foreign_scopes_share_the_editor_and_nothing_else() {
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    let call = editor.accept().await.expect("a call");
    editor.end(&call, "ok", json!(1)).await;
    world.end(id).await;
    let stranger = Scope::new("somebody");
    assert!(world.handle.view(&stranger, id).await.is_err());
    let Ok(Submission::Answer(_)) = world.try_submit("get_editor_state", json!({})).await else {
        panic!("answered from memory")
    };
}

#[tokio::test(start_paused = true)]
async fn calls_from_before_the_editor_came_go_before_those_from_after() {
    // [QUEUE-1] [QUEUE-5]
    let world = World::new();
    let first = world.menu("1").await;
    let second = world.menu("2").await;
    let mut editor = world.editor().await;
    let mut call = editor.accept().await.expect("a call");
    let third = world.menu("3").await;
    sleep(SECOND).await;
    for (id, path) in [(first, "1"), (second, "2"), (third, "3")] {
        assert_eq!(call["params"]["path"], path);
        editor.end(&call, "ok", json!(path)).await;
        assert_eq!(world.result(id).await, path);
        if path != "3" {
            call = editor.accept().await.expect("a call");
        }
    }
}
