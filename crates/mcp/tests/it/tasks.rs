//! Looking at tasks, listing them and cancelling them [ID-1, SCOPE-2, CANCEL-1..4].

use raincheck_core::ids::{Spelling, TaskId};
use raincheck_core::task::WaitReason;
use serde_json::{Value, json};

use crate::session::Session;

#[tokio::test(start_paused = true)]
async fn a_status_carries_every_field_of_the_contract() {
    // [TIME-7]
    let mut session = Session::open().await;
    let arguments = r#"{"tool_name":"nap","inputs":{"s":30},"priority":7,"tags":["project:a"]}"#;
    let id = session.good("submit_task", arguments).await["task_id"].clone();
    tokio::time::sleep(std::time::Duration::from_secs(20)).await;
    let status = session.good("get_task_status", &json!({"task_id": id}).to_string()).await;
    let fields = ["submitted_at", "started_at", "updated_at", "timeout_at", "worker_id"];
    for field in fields {
        assert!(status[field].is_string(), "{field}: {status}");
    }
    assert_eq!(status["state"], "running");
    assert_eq!((&status["tool_name"], &status["queue"]), (&json!("nap"), &json!("cpu_small")));
    assert_eq!((&status["attempt"], &status["priority"]), (&json!(1), &json!(7)));
    assert_eq!(status["cancel_requested"], false);
    assert_eq!(status["partial_result"], json!({"dreams": 1}));
    let poll = status["poll_after_ms"].as_u64().expect("a pause");
    assert!((2000..2100).contains(&poll), "the older the task, the later: {poll}");
    let live = session.good("get_task_result", &json!({"task_id": id}).to_string()).await;
    assert_eq!(live["state"], "running", "a live task is answered with its status");
    assert!(live.get("result").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_status_tells_why_a_task_waits_in_the_word_of_whoever_holds_its_lane() {
    // [QUEUE-5]
    let mut session = Session::open().await;
    let reason = WaitReason::new("warming_up_gpu_0");
    session.handle.hold("cpu_small".into(), Some(reason)).await.expect("held");
    let id = session.submit("nap", r#"{"s":1}"#).await;
    let status = session.good("get_task_status", &json!({"task_id": id}).to_string()).await;
    assert_eq!(
        (&status["state"], &status["waiting_reason"]),
        (&json!("queued"), &json!("warming_up_gpu_0"))
    );
    session.handle.hold("cpu_small".into(), None).await.expect("let go");
    assert_eq!(session.end_of(&id).await["state"], "succeeded");
}

#[tokio::test(start_paused = true)]
async fn every_spelling_of_an_id_is_read_and_anything_else_is_nobody_s() {
    // [ID-1, SCOPE-2]
    let mut session = Session::open().await;
    let text = session.submit("echo", "{}").await;
    session.end_of(&text).await;
    let id: TaskId = text.parse().expect("an id");
    for spelling in [Spelling::Task, Spelling::Uuid, Spelling::Job, Spelling::Correlation] {
        let arguments = json!({"task_id": id.spell(spelling)}).to_string();
        assert_eq!(session.good("get_task_status", &arguments).await["task_id"], text);
    }
    let never = TaskId::from_parts(1, [1; 10]).to_string();
    let odd = ["", "tsk_", "x", "../../etc/passwd", "' OR 1=1 --", "\0", &text[..29], &never];
    for tool in ["get_task_status", "get_task_result", "cancel_task", "tail_task_logs"] {
        let mut answers: Vec<String> = Vec::new();
        for odd in odd {
            let answer = session.call(tool, &json!({"task_id": odd}).to_string()).await;
            assert!(answer.is_error, "{tool} {odd:?}");
            answers.push(answer.text);
        }
        answers.dedup();
        assert_eq!(answers.len(), 1, "{tool} answers byte for byte the same: {answers:?}");
        assert!(answers[0].contains(r#""code":"not_found""#));
    }
}

#[tokio::test(start_paused = true)]
async fn a_foreign_task_is_answered_as_one_that_never_was() {
    // [SCOPE-2]
    let mut owner = Session::open().await;
    let id = owner.submit("chatter", r#"{"n":3}"#).await;
    owner.end_of(&id).await;
    let mut other = owner.of_scope("other");
    other.shake_hands("2025-06-18", "case").await;
    let never = TaskId::from_parts(1, [1; 10]);
    for tool in ["get_task_status", "get_task_result", "cancel_task", "tail_task_logs"] {
        let foreign = other.call(tool, &json!({"task_id": id}).to_string()).await;
        let never = other.call(tool, &json!({"task_id": never}).to_string()).await;
        assert!(foreign.is_error, "{tool}");
        assert_eq!(foreign.text, never.text, "{tool}");
    }
    assert_eq!(other.good("list_tasks", "{}").await["tasks"], json!([]));
    assert_eq!(owner.end_of(&id).await["state"], "succeeded");
}

#[tokio::test(start_paused = true)]
async fn another_session_of_the_same_scope_finds_the_task() {
    // [SCOPE-1]
    let mut first = Session::open().await;
    let id = first.submit("echo", "{}").await;
    first.end_of(&id).await;
    let mut second = first.of_scope("local");
    second.shake_hands("2025-06-18", "case").await;
    assert_eq!(second.end_of(&id).await["state"], "succeeded");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_is_answered_by_where_the_task_stood() {
    // [CANCEL-1, CANCEL-2, CANCEL-3, CANCEL-4]
    let mut session = Session::open().await;
    let running = session.submit("nap_one", r#"{"s":60}"#).await;
    let queued = session.submit("nap_one", r#"{"s":60}"#).await;
    let cancelled = |state: &str, acknowledged: bool, id: &str| json!({"task_id": id, "state": state, "acknowledged": acknowledged});
    let of = |id: &str| json!({"task_id": id, "reason": "not needed"}).to_string();
    let answer = session.good("cancel_task", &of(&queued)).await;
    assert_eq!(answer, cancelled("cancelled", true, &queued));
    let answer = session.good("cancel_task", &of(&running)).await;
    assert_eq!(answer["acknowledged"], true);
    let end = session.end_of(&running).await;
    assert_eq!(end["state"], "cancelled");
    assert_eq!(end["error"]["code"], "cancelled");
    assert_eq!(
        end["error"]["message"], "the task was cancelled: not needed",
        "it said that it ended"
    );
    let late = session.good("cancel_task", &of(&running)).await;
    assert_eq!(late, cancelled("cancelled", false, &running));

    let stubborn = session.submit("stubborn", r#"{"s":3}"#).await;
    session.good("cancel_task", &of(&stubborn)).await;
    assert_eq!(session.end_of(&stubborn).await["result"], json!({"s": 3}));
    let status = session.good("get_task_status", &json!({"task_id": stubborn}).to_string()).await;
    assert_eq!(
        (&status["state"], &status["cancel_requested"]),
        (&json!("succeeded"), &json!(true))
    );
}

#[tokio::test(start_paused = true)]
async fn every_waiter_is_answered_when_the_task_is_cancelled() {
    // Case mcp-result-of-a-cancelled-task.
    let mut session = Session::open().await;
    let id = session.submit("nap", r#"{"s":600}"#).await;
    let arguments = json!({"task_id": id, "wait_s": 18}).to_string();
    let first = session.begin_call("get_task_result", &arguments).await;
    let second = session.begin_call("tail_task_logs", &arguments).await;
    session.good("cancel_task", &json!({"task_id": id}).to_string()).await;
    let answer = crate::session::Answer::of(session.answer(&first).await);
    assert_eq!(answer.data["state"], "cancelled");
    assert!(session.answer(&second).await["result"].is_object());
    let again = session.call("get_task_result", &arguments).await;
    assert_eq!(again.text, answer.text, "[RESULT-1]");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_says_why_and_whether_its_task_ran() {
    // [LEASE-4]. Case mcp-result-of-a-cancelled-task.
    let mut session = Session::open().await;
    session.submit("nap_one", r#"{"s":600}"#).await;
    for (tool, guarantee) in [("nap_one", "not_executed"), ("held", "unknown")] {
        let call = session.begin_call(tool, r#"{"s":600}"#).await;
        let ids = listed(&mut session, &json!({"tool_name": tool})).await;
        let cancel = json!({"task_id": ids[0], "reason": "not needed"});
        session.good("cancel_task", &cancel.to_string()).await;
        let answer = crate::session::Answer::of(session.answer(&call).await);
        assert_eq!(answer.data["status"], "cancelled");
        assert_eq!(answer.data["error"]["guarantee"], guarantee);
        assert_eq!(answer.data["error"], session.end_of(&ids[0]).await["error"], "as it is read");
    }
}

async fn listed(session: &mut Session, arguments: &Value) -> Vec<String> {
    let page = session.good("list_tasks", &arguments.to_string()).await;
    let rows = page["tasks"].as_array().expect("rows").clone();
    rows.iter().map(|record| record["task_id"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_filters_and_pages_newest_first() {
    // Case task-list-pages-through-ties.
    let mut session = Session::open().await;
    let mut ids = Vec::new();
    for n in 0..7 {
        let arguments = json!({"tool_name": "nap_one", "inputs": {"s": 50}, "tags": ["all", format!("n:{}", n % 2)]});
        let answer = session.call("submit_task", &arguments.to_string()).await;
        ids.extend(answer.data["task_id"].as_str().map(str::to_owned));
    }
    ids.reverse();
    assert_eq!(ids.len(), 5, "one runs, four stand in line, two were refused");
    assert_eq!(listed(&mut session, &json!({"tool_name": "nap_one"})).await, ids);
    assert_eq!(listed(&mut session, &json!({"states": ["queued"]})).await, ids[..4]);
    assert_eq!(listed(&mut session, &json!({"states": ["waiting"]})).await, Vec::<String>::new());
    assert_eq!(listed(&mut session, &json!({"tags_any": ["n:0", "other"]})).await.len(), 3);
    for odd in ["%", "_ap", "*"] {
        assert!(listed(&mut session, &json!({"tool_name": odd})).await.is_empty(), "{odd}");
    }
    let mut seen = Vec::new();
    let mut arguments = json!({"limit": 2});
    loop {
        let page = session.good("list_tasks", &arguments.to_string()).await;
        let rows = page["tasks"].as_array().expect("rows");
        seen.extend(
            rows.iter().map(|record| record["task_id"].as_str().expect("an id").to_owned()),
        );
        match page.get("next_cursor") {
            Some(cursor) => arguments["cursor"] = cursor.clone(),
            None => break,
        }
    }
    assert_eq!(seen, ids);
}

#[tokio::test(start_paused = true)]
async fn a_list_refuses_what_it_does_not_know() {
    // [TOOL-2]. Case task-list-pages-through-ties.
    let mut session = Session::open().await;
    let cases = [
        (json!({"cursor": "garbage"}), "bad_cursor"),
        (json!({"cursor": ""}), "bad_cursor"),
        (json!({"limit": 0}), "invalid_params"),
        (json!({"limit": 201}), "invalid_params"),
        (json!({"states": []}), "invalid_params"),
        (json!({"tags_any": []}), "invalid_params"),
        (json!({"states": ["no_such_state"]}), "invalid_params"),
        (json!({"states": "queued"}), "invalid_params"),
        (json!({"submitted_after": "yesterday"}), "invalid_params"),
        (json!({"submitted_after": "2026-02-30T00:00:00Z"}), "invalid_params"),
    ];
    for (arguments, code) in cases {
        let error = session.refused("list_tasks", &arguments.to_string()).await;
        assert_eq!(error["code"], code, "{arguments}");
    }
    assert!(
        listed(&mut session, &json!({"submitted_after": "2026-02-05T13:00:00+01:00"}))
            .await
            .is_empty()
    );
}
