//! The task tools over the real binary.

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::server::{self, Server, text};

fn code(data: &Value) -> &str {
    data["error"]["code"].as_str().unwrap_or_else(|| panic!("no error code: {data}"))
}

#[tokio::test]
async fn the_tools_are_listed_with_what_a_client_needs() {
    // [TOOL-1]
    let mut server = Server::start().await;
    let answer = server.request("tools/list", json!({})).await;
    let tools = answer["result"]["tools"].as_array().expect("tools");
    let task_tools = [
        "submit_task",
        "get_task_status",
        "tail_task_logs",
        "list_tasks",
        "cancel_task",
        "get_task_result",
        "give_task_input",
    ];
    let mut size = 0;
    for name in task_tools.iter().chain(&["echo", "artifact"]) {
        let tool = tools.iter().find(|tool| tool["name"] == **name);
        let tool = tool.unwrap_or_else(|| panic!("`{name}` is not listed"));
        assert!(tool["description"].as_str().is_some_and(|text| text.len() < 400), "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        if task_tools.contains(name) {
            size += tool.to_string().len();
            assert!(tool["title"].is_string(), "{tool}");
            assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{tool}");
            assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        }
    }
    assert!(size <= 6 * 1024, "the task tools take {size} bytes");
}

#[tokio::test]
async fn inputs_and_results_keep_their_bytes() {
    // [TOOL-6, RESULT-1, CALL-1]: the tool writes back what it was given.
    let mut server = Server::start().await;
    let inputs = r#"{"z":1.0,"a":12345678901234567890.5,"e":1e2,"é":"\u00e9"}"#;
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":"own","method":"tools/call","params":{{"name":"echo","arguments":{inputs}}}}}"#
    );
    server.send_bytes(format!("{call}\n").as_bytes()).await;
    let answer = server.read().await;
    assert_eq!(answer["id"], "own");
    assert_eq!(text(&answer["result"]), inputs);

    let submit = format!(
        r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"name":"submit_task","arguments":{{"tool_name":"echo","inputs":{inputs}}}}}}}"#
    );
    server.send_bytes(format!("{submit}\n").as_bytes()).await;
    let answer = server.read().await;
    let task: Value = serde_json::from_str(text(&answer["result"])).expect("JSON");
    server.ended(&task).await;
    let first = server.call("get_task_result", json!({"task_id": task["task_id"]})).await;
    let second = server.call("get_task_result", json!({"task_id": task["task_id"]})).await;
    assert!(text(&first).contains(&format!("\"result\":{inputs}")), "{}", text(&first));
    let same = |answer: &Value| -> Value {
        let mut answer: Value = serde_json::from_str(text(answer)).expect("JSON");
        let members = answer.as_object_mut().expect("an object");
        // A mark is drawn for each answer [CALL-8].
        members.retain(|name, _| !name.starts_with("untrusted_"));
        answer
    };
    assert_eq!(same(&first), same(&second));
}

#[tokio::test]
async fn a_call_past_its_budget_hands_out_a_task_that_can_be_cancelled() {
    // [CALL-1, TOOL-5, CANCEL-2, CANCEL-4, TIME-1]
    let mut server = Server::start().await;
    let result = server.call("slow", json!({})).await;
    assert_ne!(result["isError"], true, "{result}");
    let slow: Value = serde_json::from_str(text(&result)).expect("JSON");
    assert_eq!(slow["status"], "running", "{slow}");
    assert_eq!(slow["next"]["tool"], "get_task_result", "{slow}");
    assert_eq!(slow["next"]["arguments"]["task_id"], slow["task_id"], "{slow}");

    let id = json!({"task_id": slow["task_id"]});
    let cancelled = server.data("cancel_task", id.clone()).await;
    assert_eq!(cancelled["acknowledged"], true, "{cancelled}");
    let ended = server.ended(&slow).await;
    assert_eq!(ended["state"], "cancelled", "{ended}");
    let again = server.data("cancel_task", id).await;
    assert_eq!((&again["acknowledged"], &again["state"]), (&json!(false), &json!("cancelled")));
}

#[tokio::test]
async fn a_failed_tool_says_why_and_reading_it_is_no_error() {
    // [CALL-5, CMD-5, LEASE-4, TOOL-4]
    let mut server = Server::start().await;
    let result = server.call("broken", json!({})).await;
    assert_eq!(result["isError"], true, "{result}");
    let data: Value = serde_json::from_str(text(&result)).expect("JSON");
    assert_eq!(code(&data), "tool_failed");
    assert_eq!(data["error"]["guarantee"], "executed", "{data}");
    assert_eq!(data["error"]["details"]["exit_code"], 3, "{data}");
    assert!(data.to_string().contains("no such frame"), "{data}");
    let read = server.call("get_task_result", json!({"task_id": data["task_id"]})).await;
    assert_ne!(read["isError"], true, "{read}");
}

#[tokio::test]
async fn a_wrong_argument_is_named() {
    // [TOOL-2, TOOL-3, SEC-11]
    let mut server = Server::start().await;
    for (tool, arguments, named) in [
        ("submit_task", json!({"tool_name": "echo"}), "inputs"),
        ("submit_task", json!({"tool_name": "echo", "inputs": {}, "colour": "red"}), "colour"),
        ("get_task_status", json!({"task_id": 7}), "task_id"),
        ("list_tasks", json!({"limit": 201}), "limit"),
        ("submit_task", json!({"tool_name": "artifact", "inputs": {}}), "token"),
    ] {
        let result = server.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        let data: Value = serde_json::from_str(text(&result)).expect("JSON");
        assert_eq!(code(&data), "invalid_params", "{data}");
        let message = data["error"]["message"].as_str().expect("a message");
        assert!(message.contains(named), "`{named}` is not named: {message}");
    }
    let short = json!({"tool_name": "artifact", "inputs": {"token": "hu"}});
    let refused = server.call("submit_task", short).await;
    assert!(!text(&refused).contains("\"hu\""), "the secret is repeated: {refused}");
}

#[tokio::test]
async fn unknown_foreign_and_malformed_ids_are_told_apart_by_nobody() {
    // [SCOPE-2, ID-1]
    let mut server = Server::start().await;
    let mut answers = std::collections::BTreeSet::new();
    for id in ["tsk_01KBTC2E8Z3V9K6Q4H1N7W5X0R", "job-7", "no id", ""] {
        let result = server.call("get_task_status", json!({"task_id": id})).await;
        answers.insert(text(&result).to_owned());
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
    let only = answers.first().expect("an answer");
    assert!(only.contains("not_found"), "{only}");
}

#[tokio::test]
async fn every_spelling_of_an_id_finds_the_task() {
    // [ID-1]
    let mut server = Server::start().await;
    let slow = server.data("slow", json!({})).await;
    let task = slow["task_id"].as_str().expect("an id");
    let log_id = slow["log_id"].as_str().expect("the other spelling");
    let job = task.replace("tsk_", "job-");
    for spelling in [task, log_id, &job] {
        let status = server.data("get_task_status", json!({"task_id": spelling})).await;
        assert_eq!(status["task_id"], task, "{status}");
    }
}

#[tokio::test]
async fn a_key_finds_the_first_task_and_refuses_other_inputs() {
    // [IDEM-1]
    let mut server = Server::start().await;
    let submit =
        |inputs: Value| json!({"tool_name": "echo", "inputs": inputs, "idempotency_key": "k"});
    let first = server.data("submit_task", submit(json!({"a": 1, "b": 2}))).await;
    let same = server.data("submit_task", submit(json!({"b": 2, "a": 1}))).await;
    assert_eq!(same["task_id"], first["task_id"], "{same}");
    assert_eq!(same["existing"], true, "{same}");
    let other = server.data("submit_task", submit(json!({"a": 1}))).await;
    assert_eq!(code(&other), "idempotency_conflict", "{other}");
}

#[tokio::test]
async fn a_full_lane_refuses_and_a_cancel_in_line_never_runs() {
    // [QUEUE-1, QUEUE-2, QUEUE-3, CANCEL-1]
    let mut server = Server::start().await;
    let submit = json!({"tool_name": "queued", "inputs": {}});
    let mut tasks = Vec::new();
    for _ in 0..4 {
        tasks.push(server.data("submit_task", submit.clone()).await);
    }
    assert_eq!(tasks[3]["position"], 2, "{}", tasks[3]);
    let full = server.data("submit_task", submit).await;
    assert_eq!(code(&full), "queue_full", "{full}");
    assert!(full["error"]["retry_after_ms"].is_u64(), "{full}");
    let cancelled = server.data("cancel_task", json!({"task_id": tasks[2]["task_id"]})).await;
    assert_eq!(cancelled["state"], "cancelled", "{cancelled}");
    let status = server.data("get_task_status", json!({"task_id": tasks[2]["task_id"]})).await;
    assert_eq!(status["attempt"], 0, "{status}");
    assert_eq!(status.get("started_at"), None, "{status}");
}

#[tokio::test]
async fn a_burst_of_submits_is_answered_and_listed_whole() {
    // [CALL-3, QUEUE-4]: one line after the other, without reading in between.
    let mut server = Server::start().await;
    let mut wanted = std::collections::BTreeSet::new();
    for n in 0..200 {
        let arguments = json!({"tool_name": "echo", "inputs": {"n": n}, "tags": ["burst"]});
        wanted.insert(
            server
                .begin("tools/call", json!({"name": "submit_task", "arguments": arguments}))
                .await,
        );
    }
    let mut ids = std::collections::BTreeSet::new();
    while !wanted.is_empty() {
        let answer = server.read().await;
        assert!(wanted.remove(&answer["id"].as_u64().expect("an id")), "{answer}");
        let data: Value = serde_json::from_str(text(&answer["result"])).expect("JSON");
        ids.insert(data["task_id"].as_str().expect("an id").to_owned());
    }
    assert_eq!(ids.len(), 200);
    let mut listed = std::collections::BTreeSet::new();
    let mut cursor = Value::Null;
    loop {
        let page = server
            .data("list_tasks", json!({"tags_any": ["burst"], "limit": 60, "cursor": cursor}))
            .await;
        for record in page["tasks"].as_array().expect("rows") {
            assert!(
                listed.insert(record["task_id"].as_str().expect("an id").to_owned()),
                "{record}"
            );
        }
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(listed, ids);
}

#[tokio::test]
async fn an_unknown_tool_is_a_protocol_error() {
    // [CALL-5]
    let mut server = Server::start().await;
    let answer =
        server.request("tools/call", json!({"name": "no_such_tool", "arguments": {}})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[tokio::test]
async fn nothing_answers_a_call_that_was_cancelled() {
    // [CALL-3, CANCEL-7]: the call is given up, the next answer belongs to the next request.
    let mut server = Server::start().await;
    let id = server.begin("tools/call", json!({"name": "count", "arguments": {}})).await;
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    server.send(&cancelled).await;
    let pong = server.request("ping", json!({})).await;
    assert_eq!(pong["result"], json!({}), "{pong}");
    assert!(server.close().await.success());
}

#[tokio::test]
async fn no_tool_of_a_configuration_takes_the_name_of_one_that_the_server_has() {
    let folder = TempDir::new().expect("a folder");
    let config = folder.path().join("raincheck.toml");
    let mut command = Command::new(server::binary());
    std::fs::write(&config, "[tools.bare]\ncommand = [\"true\"]\n").expect("written");
    command.arg("serve").arg("--config").arg(&config).env("RAINCHECK_STORE", "memory");
    command.env("RAINCHECK_STATE_DIR", folder.path().join("state"));
    command.env("RAINCHECK_RUNTIME_DIR", folder.path().join("run"));
    let mut server = Server::of(command).shake_hands().await;
    let listed = server.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().expect("a list");
    let names = tools.iter().filter_map(|tool| tool["name"].as_str()).filter(|one| *one != "bare");
    let names: Vec<String> = names.map(str::to_owned).collect();
    assert!(names.iter().any(|name| name == "give_task_input"), "{names:?}");
    for name in names {
        std::fs::write(&config, format!("[tools.{name}]\ncommand = [\"true\"]\n"))
            .expect("written");
        let check = Command::new(server::binary())
            .args(["config", "check"])
            .arg("--config")
            .arg(&config)
            .output();
        let found = check.await.expect("it runs");
        let words = String::from_utf8_lossy(&[found.stdout, found.stderr].concat()).into_owned();
        assert!(
            !found.status.success() && words.contains(&format!("`{name}` is the name of one")),
            "{words}"
        );
    }
    assert!(server.close().await.success());
}
