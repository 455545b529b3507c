//! Several editors, and several who ask for the same.

use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::lifecycle::State;
use raincheck_testkit::editor::Who;
use raincheck_unity::Settings;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::world::{OWN, SECOND, World, settings, who};

#[tokio::test(start_paused = true)]
async fn with_two_editors_a_call_needs_a_choice_and_then_goes_to_that_one() {
    // [UNITY-7]
    let world = World::new();
    let mut own = world.editor().await;
    let mut other = world.editor_of(&Who::new("/projects/other", "Other")).await;
    let error =
        world.try_submit("execute_menu_item", json!({ "path": "A" })).await.expect_err("ambiguous");
    assert_eq!(error.kind, Kind::InvalidParams);
    let quoted = error.quoted.as_ref().expect("the editors' own words [CALL-8]");
    assert!(quoted.text.contains("Own") && quoted.text.contains("Other"), "{error}");
    assert!(!error.message.contains("Own"), "{error}");
    for instance in ["Other", "/projects/other", "/projects/other/"] {
        let chosen = world.answer("select_editor", json!({ "instance": instance })).await;
        assert_eq!(chosen["project_path"], "/projects/other");
    }
    let id = world.menu("B").await;
    let call = other.accept().await.expect("a call");
    other.end(&call, "ok", json!("other")).await;
    assert_eq!(world.result(id).await, "other");
    let unknown = world.try_submit("select_editor", json!({ "instance": "nobody" })).await;
    assert_eq!(unknown.expect_err("unknown").kind, Kind::InvalidParams);
    world.answer("select_editor", json!({ "instance": "Own" })).await;
    let id = world.menu("C").await;
    let call = own.accept().await.expect("a call");
    own.end(&call, "ok", json!("own")).await;
    assert_eq!(world.result(id).await, "own");
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_comes_back_by_another_spelling_of_its_path_is_the_same() {
    // [UNITY-7] [LEASE-6]
    for (before, after) in [
        (r"C:\Games\Trolley", "c:/games/trolley/"),
        ("//games/Trolley", "//games/Trolley/"),
        (OWN, "/projects/own/"),
    ] {
        let world = World::new();
        let mut editor = world.editor_of(&Who::new(before, "Trolley")).await;
        let id = world.menu("A").await;
        let call = editor.accept().await.expect("a call");
        editor.end(&call, "ok", json!("one")).await;
        assert_eq!(world.result(id).await, "one");
        drop(editor);
        sleep(SECOND).await;
        let begun = tokio::time::Instant::now();
        let id = world.menu("B").await;
        let mut editor = world.editor_of(&Who::new(after, "Trolley")).await;
        let call = editor.accept().await.expect("a call");
        assert!(begun.elapsed() < SECOND * 2, "it waited {:?}", begun.elapsed());
        editor.end(&call, "ok", json!("two")).await;
        assert_eq!(world.result(id).await, "two");
        let shown = world.answer("get_editor_state", json!({})).await;
        assert_eq!(shown["editors"].as_array().map(Vec::len), Some(1), "{shown}");
        let chosen = world.answer("select_editor", json!({ "instance": before })).await;
        assert_eq!(chosen["project_name"], "Trolley");
    }
}

#[tokio::test(start_paused = true)]
async fn without_an_editor_none_can_be_selected() {
    let error = World::new().try_submit("select_editor", json!({ "instance": "Own" })).await;
    let error = error.expect_err("there is none");
    assert!(error.message.contains("no editor is connected") && error.quoted.is_none(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_call_beside_the_lanes_waits_for_its_editor_once_and_was_not_executed() {
    // [QUEUE-5] [LEASE-9]
    let world = World::with(Settings { ready: SECOND * 20, ..settings() });
    let own = world.editor().await;
    let _other = world.editor_of(&Who::new("/projects/other", "Other")).await;
    world.answer("select_editor", json!({ "instance": "Own" })).await;
    drop(own);
    sleep(SECOND).await;
    let begun = tokio::time::Instant::now();
    let id = world.submit("read_console", json!({})).await.id();
    let error = world.failure(id).await;
    let known = (error.kind, error.guarantee());
    assert_eq!(known, (Kind::PeerNotReady, Some(Guarantee::NotExecuted)));
    assert_eq!(world.view(id).await.record.attempt, 1);
    assert!(begun.elapsed() >= SECOND * 20, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn one_busy_editor_does_not_hold_up_another() {
    // [UNITY-7]
    let world = World::new();
    let mut own = world.editor().await;
    let mut other = world.editor_of(&Who::new("/projects/other", "Other")).await;
    world.answer("select_editor", json!({ "instance": "Own" })).await;
    let held = world.menu("held").await;
    let call = own.accept().await.expect("a call");
    world.answer("select_editor", json!({ "instance": "Other" })).await;
    let id = world.menu("free").await;
    let free = other.accept().await.expect("a call");
    other.end(&free, "ok", json!("free")).await;
    assert_eq!(world.result(id).await, "free");
    own.end(&call, "ok", json!("held")).await;
    assert_eq!(world.result(held).await, "held");
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_quit_is_nobody_s_choice_any_more() {
    // [UNITY-7]
    let world = World::new();
    let _own = world.editor().await;
    let mut other = world.editor_of(&Who::new("/projects/other", "Other")).await;
    other.socket.say(json!({ "type": "bye", "reason": "quit" })).await;
    drop(other);
    sleep(SECOND).await;
    world.menu("A").await;
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_what_runs_already_gets_its_result_too() {
    // [UNITY-11]
    let world = World::new();
    let mut editor = world.editor().await;
    let first = world.submit("run_tests", json!({ "mode": "EditMode", "filter": "A" })).await.id();
    let call = editor.accept().await.expect("a call");
    let second = world.submit("run_tests", json!({ "filter": "A", "mode": "EditMode" })).await.id();
    let other = world.submit("run_tests", json!({ "mode": "EditMode", "filter": "B" })).await.id();
    world.until(second, State::Running).await;
    assert_eq!(world.state(other).await, State::Queued, "another filter is another run");
    let progress = json!({ "type": "progress", "request_id": call["request_id"], "seq": 1, "current": 1, "total": 2 });
    editor.socket.say(progress).await;
    sleep(SECOND).await;
    assert_eq!(world.view(second).await.progress.expect("progress").step, Some(1));
    editor.end(&call, "ok", json!({ "passed": 2 })).await;
    assert_eq!(world.result(first).await["passed"], 2);
    assert_eq!(world.result(second).await["passed"], 2);
    let mut heard = Vec::new();
    for _ in 0..2 {
        let message = editor.socket.hear().await.expect("a message");
        heard.push(message["type"].as_str().expect("a type").to_owned());
        if heard.last().is_some_and(|kind| kind == "execute") {
            assert_eq!(message["params"]["filter"], "B");
        }
    }
    heard.sort_unstable();
    assert_eq!(heard, ["execute", "result_ack"], "one acknowledgement for both, and the other run");
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_early_only_when_the_last_one_asks_for_that() {
    // [UNITY-11] [CANCEL-2]
    let world = World::new();
    let mut editor = world.editor().await;
    let inputs = json!({ "mode": "EditMode" });
    let first = world.submit("run_tests", inputs.clone()).await.id();
    let call = editor.accept().await.expect("a call");
    let second = world.submit("run_tests", inputs.clone()).await.id();
    world.until(second, State::Running).await;
    world.cancel(first).await;
    assert_eq!(world.end(first).await.record.state, State::Cancelled);
    let told = timeout(SECOND, editor.socket.hear_of("cancel")).await;
    assert!(told.is_err(), "another one still waits: {told:?}");
    let next = world.menu("next").await;
    sleep(SECOND).await;
    let waits = timeout(SECOND, editor.call()).await;
    assert!(waits.is_err(), "the main thread is still taken: {waits:?}");
    assert_eq!(world.cancel(second).await, State::CancelRequested);
    editor.socket.hear_of("cancel").await.expect("told");
    editor.end(&call, "cancelled", json!(null)).await;
    assert_eq!(world.end(second).await.record.state, State::Cancelled);
    let call = editor.accept().await.expect("the next call");
    editor.end(&call, "ok", json!(1)).await;
    world.result(next).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_changes_something_joins_nothing_and_lets_nothing_join_past_it() {
    // [UNITY-11]
    let world = World::new();
    let mut editor = world.editor().await;
    let read = json!({ "action": "get_hierarchy" });
    let first = world.submit("manage_scene", read.clone()).await.id();
    let call = editor.accept().await.expect("a call");
    let change = world.menu("change").await;
    let again = world.menu("change").await;
    let later = world.submit("manage_scene", read).await.id();
    editor.end(&call, "ok", json!("before")).await;
    assert_eq!(world.result(first).await, "before");
    for id in [change, again] {
        let call = editor.accept().await.expect("each change");
        assert_eq!(call["tool_name"], "execute_menu_item");
        editor.end(&call, "ok", json!("changed")).await;
        world.result(id).await;
    }
    let call = editor.accept().await.expect("the later read");
    editor.end(&call, "ok", json!("after")).await;
    assert_eq!(world.result(later).await, "after");
}

#[tokio::test(start_paused = true)]
async fn a_lost_run_is_lost_for_all_who_asked() {
    // [UNITY-11] [LEASE-3]
    let world = World::new();
    let mut editor = world.editor().await;
    let inputs = json!({ "mode": "EditMode" });
    let first = world.submit("run_tests", inputs.clone()).await.id();
    editor.accept().await.expect("a call");
    let second = world.submit("run_tests", inputs).await.id();
    world.until(second, State::Running).await;
    drop(editor);
    let _editor = world.editor_of(&who()).await;
    for id in [first, second] {
        assert_eq!(world.failure(id).await.kind, Kind::PeerLost);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_for_an_editor_that_does_not_come_back_is_never_run_by_another() {
    // [UNITY-7]
    let world = World::new();
    drop(world.editor().await);
    sleep(10 * SECOND).await;
    let id = world.menu("delete").await;
    sleep(10 * SECOND).await;
    let mut other = world.editor_of(&Who::new("/projects/other", "Other")).await;
    for _ in 0..12 {
        let call = timeout(5 * SECOND, other.call()).await;
        assert!(call.is_err(), "it was made while its own editor was expected back: {call:?}");
        other.state("ready").await;
    }
    let error = world.failure(id).await;
    assert_eq!((error.kind, error.guarantee()), (Kind::PeerNotReady, Some(Guarantee::NotExecuted)));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_told_to_stop_is_joined_by_nobody() {
    // [UNITY-11] [CANCEL-2]
    let world = World::new();
    let mut editor = world.editor().await;
    let inputs = json!({ "mode": "EditMode" });
    let first = world.submit("run_tests", inputs.clone()).await.id();
    let call = editor.accept().await.expect("a call");
    world.until(first, State::Running).await;
    world.cancel(first).await;
    editor.socket.hear_of("cancel").await.expect("told");
    let second = world.submit("run_tests", inputs).await.id();
    sleep(SECOND).await;
    editor.end(&call, "cancelled", json!(null)).await;
    let call = editor.accept().await.expect("a run of its own");
    editor.end(&call, "ok", json!("passed")).await;
    assert_eq!(world.result(second).await, "passed");
}

#[tokio::test(start_paused = true)]
async fn nobody_joins_a_run_that_was_asked_for_before_a_change_that_is_still_queued() {
    // [UNITY-11]
    for (tool, inputs, change) in [
        ("manage_scene", json!({ "action": "get_hierarchy" }), "execute_menu_item"),
        ("run_tests", json!({ "mode": "EditMode" }), "refresh_and_compile"),
    ] {
        let world = World::new();
        let mut editor = world.editor().await;
        let first = world.menu("first").await;
        let call = editor.accept().await.expect("a call");
        let before = world.submit(tool, inputs.clone()).await.id();
        let path = if change == "execute_menu_item" { json!({ "path": "A" }) } else { json!({}) };
        let changing = world.submit(change, path).await.id();
        editor.end(&call, "ok", json!(1)).await;
        world.result(first).await;
        let call = editor.accept().await.expect("the first read");
        sleep(2 * SECOND).await;
        let after = world.submit(tool, inputs).await.id();
        sleep(SECOND).await;
        editor.end(&call, "ok", json!("before")).await;
        assert_eq!(world.result(before).await, "before");
        for (id, said) in [(changing, "changed"), (after, "after")] {
            let call = editor.accept().await.expect("a call");
            editor.end(&call, "ok", json!(said)).await;
            assert_eq!(world.result(id).await, said, "{tool}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_the_main_thread_no_longer_than_it_may_queue() {
    // [STATE-5] [LEASE-9]
    let world = World::with(Settings { queue_timeout: 60 * SECOND, ..settings() });
    world.menu("hangs").await;
    let mut editor = world.editor().await;
    editor.accept().await.expect("the call of the default lane");
    let id = world.menu("waits").await;
    for _ in 0..13 {
        sleep(5 * SECOND).await;
        editor.state("ready").await;
    }
    let error = world.failure(id).await;
    assert_eq!((error.kind, error.guarantee()), (Kind::QueueTimeout, Some(Guarantee::NotExecuted)));
}

#[tokio::test(start_paused = true)]
async fn an_editor_is_chosen_by_the_name_that_its_project_really_has() {
    // [UNITY-7]
    let world = World::new();
    let _own = world.editor().await;
    let _other = world.editor_of(&Who::new("/projects/rd", "R&D")).await;
    let chosen = world.answer("select_editor", json!({ "instance": "R&D" })).await;
    assert_eq!(chosen["project_path"], "/projects/rd");
}

#[tokio::test(start_paused = true)]
async fn each_window_has_a_choice_of_its_own_that_outlives_the_server() {
    // [UNITY-7] [ATTACH-5]
    let folder = tempfile::tempdir().expect("a folder");
    let choices = Some(folder.path().join("choices.json"));
    let world = World::with(Settings { choices, ..settings() });
    let who_else = Who::new("/projects/other", "Other");
    let (own, mut other) = (world.editor().await, world.editor_of(&who_else).await);
    for (window, instance) in [("two", "Other"), ("one", "Own")] {
        world.ask_by(window, "select_editor", json!({ "instance": instance })).await;
    }
    let id = world.submit_by("two", "execute_menu_item", json!({ "path": "A" })).await;
    let call = other.accept().await.expect("the call of the window that chose it");
    other.end(&call, "ok", json!("other")).await;
    assert_eq!(world.result(id).await, "other");
    drop((own, other));
    let world = world.killed().await;
    // The first that comes back is no other window's.
    let mut own = world.editor().await;
    let calls = [
        world.submit_by("two", "execute_menu_item", json!({ "path": "B" })).await,
        world.submit_by("two", "read_console", json!({})).await,
    ];
    sleep(SECOND * 5).await;
    let id = world.submit_by("one", "execute_menu_item", json!({ "path": "C" })).await;
    let call = own.accept().await.expect("a call");
    assert_eq!(call["params"]["path"], "C", "{call}");
    own.end(&call, "ok", json!("own")).await;
    assert_eq!(world.result(id).await, "own");
    let mut other = world.editor_of(&who_else).await;
    for _ in &calls {
        let call = other.accept().await.expect("a call");
        other.end(&call, "ok", json!("other")).await;
    }
    for id in calls {
        assert_eq!(world.result(id).await, "other");
    }
}
