//! Programs as tools over the real binary.

use serde_json::{Value, json};

use crate::server::{Server, text};

#[tokio::test]
async fn lines_progress_and_partial_results_are_seen() {
    // [CMD-2, CMD-3, CMD-4, LOG-1, RESULT-2]
    let mut server = Server::start().await;
    let params = json!({"name": "count", "arguments": {}, "_meta": {"progressToken": 0}});
    let answer = server.request("tools/call", params).await;
    let result: Value = serde_json::from_str(text(&answer["result"])).expect("JSON");
    assert_eq!(result["exit_code"], 0, "{result}");
    assert!(result["stdout_tail"].as_str().is_some_and(|tail| tail.contains("step 3")), "{result}");
    let told: Vec<f64> = server
        .notifications
        .iter()
        .filter(|one| one["method"] == "notifications/progress")
        .map(|one| one["params"]["progress"].as_f64().expect("a number"))
        .collect();
    assert!(!told.is_empty() && told.is_sorted_by(|a, b| a < b), "{told:?}");

    let listed = server.data("list_tasks", json!({"tool_name": "count"})).await;
    let id = json!({"task_id": listed["tasks"][0]["task_id"]});
    let logs = server.data("tail_task_logs", id.clone()).await;
    let lines = logs["lines"].as_array().expect("lines");
    let steps: Vec<&str> = lines
        .iter()
        .filter(|line| line["stream"] == "stdout")
        .filter_map(|line| line["message"].as_str())
        .collect();
    assert_eq!(steps, ["step 1", "step 2", "step 3"]);
    for (place, line) in lines.iter().enumerate() {
        assert_eq!(line["seq"], place + 1, "{line}");
    }
    assert!(lines.iter().any(|line| line["level"] == "warn"), "the bad control line: {logs}");
    let read = server.data("get_task_result", id).await;
    assert_eq!(read["partial_result"], json!({"reached": 3}), "{read}");
}

#[tokio::test]
async fn files_become_artifacts_and_links_do_not() {
    // [CMD-6, ART-1, SEC-9, SEC-10, SEC-11]
    let mut server = Server::start().await;
    let submit = json!({"tool_name": "artifact", "inputs": {"token": "hush-hush"}});
    let task = server.data("submit_task", submit).await;
    let ended = server.ended(&task).await;
    let artifacts = ended["artifacts"].as_array().expect("artifacts");
    assert_eq!(artifacts.len(), 1, "{ended}");
    assert_eq!(artifacts[0]["name"], "frames.txt");
    assert_eq!(artifacts[0]["size_bytes"], 9);
    assert_eq!(
        artifacts[0]["sha256"],
        "da4a2335501236bf6ad093c3a82da5f88b2b0880894ee09caf840394c45044f5"
    );
    let logs = server.data("tail_task_logs", json!({"task_id": task["task_id"]})).await;
    assert!(!logs.to_string().contains("\\u001b["), "an escape sequence: {logs}");
    let listed = server.data("list_tasks", json!({})).await;
    for answer in [&ended, &logs, &listed] {
        assert!(!answer.to_string().contains("hush-hush"), "the secret shows: {answer}");
    }
}

#[tokio::test]
async fn a_program_is_given_its_own_environment_and_nothing_else() {
    // [SEC-8, CMD-1]
    let mut server = Server::start().await;
    let given = server.data("environment", json!({})).await;
    let names: Vec<&str> =
        given["names"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
    assert!(!names.contains(&"A_SECRET_OF_THE_SERVER"), "{names:?}");
    assert!(!names.contains(&"RAINCHECK_STATE_DIR"), "{names:?}");
    for name in ["PATH", "RAINCHECK_TASK_ID", "RAINCHECK_ATTEMPT", "RAINCHECK_RESULT_FILE"] {
        assert!(names.contains(&name), "`{name}` is missing: {names:?}");
    }
    let control = given["control"].as_i64().expect("a number");
    for open in given["open"].as_array().expect("descriptors") {
        let open = open.as_i64().expect("a number");
        // The shell keeps its script open under a number from 10 on.
        assert!(open <= 2 || open == control || open >= 10, "{open} is open: {given}");
    }
}

#[tokio::test]
async fn a_cancelled_program_leaves_no_process_behind() {
    // [CMD-7, CANCEL-6]: the program waits for a child of its own.
    let mut server = Server::start().await;
    let slow = server.data("slow", json!({})).await;
    server.data("cancel_task", json!({"task_id": slow["task_id"]})).await;
    let ended = server.ended(&slow).await;
    assert_eq!(ended["state"], "cancelled", "{ended}");
    // The slot is free only when everything is gone, so the lane can say so.
    assert!(server.close().await.success());
    let task = slow["task_id"].as_str().expect("an id");
    assert_eq!(crate::manners::processes_of(task), Vec::<String>::new());
}
