//! Files of tasks that the store does not have.

use serde_json::json;
use tempfile::TempDir;

use crate::durable::serve;

#[tokio::test]
async fn a_folder_that_no_row_knows_is_removed_at_the_next_opening_and_no_other() {
    // [SWEEP-1]
    let folder = TempDir::new().expect("a folder");
    let mut server = serve(&folder).await;
    let submit = json!({"tool_name": "artifact", "inputs": {"token": "hush-hush"}});
    let task = server.data("submit_task", submit).await;
    let ended = server.ended(&task).await;
    assert_eq!(ended["artifacts"][0]["name"], "frames.txt", "{ended}");
    server.child.kill().await.expect("killed");

    let known = task["task_id"].as_str().expect("an id");
    let last = if known.ends_with('0') { "1" } else { "0" };
    let stray = format!("{}{last}", &known[..known.len() - 1]);
    let of = |id: &str| folder.path().join("state/raincheck/tasks").join(id);
    assert!(of(known).join("artifacts").exists());
    std::fs::create_dir_all(of(&stray).join("artifacts/one")).expect("made");
    std::fs::create_dir_all(of("notes")).expect("made");

    let mut server = serve(&folder).await;
    while of(&stray).exists() {
        server.data("list_tasks", json!({})).await;
    }
    let read = server.data("get_task_result", json!({"task_id": known})).await;
    let sum = |told: &serde_json::Value| told["artifacts"][0]["sha256"].clone();
    assert_eq!(sum(&read), sum(&ended), "{read}");
    assert!(of(known).join("artifacts").exists() && of("notes").exists());
    assert!(server.close().await.success());
}
