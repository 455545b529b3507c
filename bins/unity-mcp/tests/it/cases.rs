//! What went wrong for others, played here against the real server.

use serde_json::{Value, json};

use crate::server::Server;
use crate::{folder, project};

/// Answers one call as the editor, with a result as it is written.
async fn playing(server: &Server, tool: &str, arguments: Value, result: &str) -> (String, Value) {
    let mut editor = server.editor(&server.who()).await;
    let play = async {
        let call = editor.accept().await.expect("a call");
        let ended = format!(
            r#"{{"type":"result","request_id":{},"fence":{},"status":"ok","result":{result}}}"#,
            call["request_id"], call["fence"]
        );
        editor.socket.say(ended).await;
        call
    };
    tokio::join!(server.text(tool, arguments), play)
}

#[tokio::test]
async fn integers_keep_every_digit_both_ways() {
    // Case unity-64-bit-ids. [RESULT-1]
    let folder = folder();
    let server = Server::listening(&project(folder.path(), "game", "2022.3.1f1")).await;
    let scene = r#"{"roots":[{"name":"Crate","entityId":9007199254740993},{"name":"Lid","entityId":18446744073709551615},{"name":"Crate","entityId":-9223372036854775808,"scale":[1.0,1e0,0.10]}]}"#;
    let call = json!({ "action": "get_hierarchy", "timeout": 15 });
    let (text, _) = playing(&server, "manage_scene", call, scene).await;
    assert!(text.contains(scene), "{text}");
    let call = json!({ "action": "get", "id": 9_007_199_254_740_993_u64, "timeout": 15 });
    let (_, sent) = playing(&server, "manage_gameobject", call, "{}").await;
    assert_eq!(sent["params"]["id"].as_u64(), Some(9_007_199_254_740_993), "{sent}");
    server.close().await;
}

#[tokio::test]
async fn arguments_that_became_strings_are_taken_or_refused_by_name() {
    // Case unity-stringified-arguments. [OPS-3] [TIME-2]
    let folder = folder();
    let server = Server::listening(&project(folder.path(), "game", "2022.3.1f1")).await;
    let call = json!({
        "mode": "EditMode", "filter": "[\"Demo.Tests.WaveTests\",\"Demo.Tests.HudTests\"]", "timeout": 15,
    });
    let (_, sent) = playing(&server, "run_tests", call, "{}").await;
    assert_eq!(sent["params"]["filter"], json!(["Demo.Tests.WaveTests", "Demo.Tests.HudTests"]));
    let (_, sent) =
        playing(&server, "read_console", json!({ "limit": "10", "timeout": 15 }), "{}").await;
    assert_eq!(sent["params"]["limit"], 10, "{sent}");
    for (arguments, name) in [
        (json!({ "mode": "EditMode", "timeout": "5" }), "timeout"),
        (json!({ "mode": "EditMode", "timeout": 2, "fliter": "Demo" }), "fliter"),
    ] {
        let refused = server.call("run_tests", arguments).await;
        assert_eq!(refused["error_info"]["code"], "ERR_INVALID_PARAMS", "{refused}");
        assert!(refused["error"].as_str().is_some_and(|words| words.contains(name)), "{refused}");
    }
    server.close().await;
}

#[tokio::test]
async fn odd_names_of_tests_are_data_and_progress_never_goes_back() {
    // Case unity-odd-test-names. [RESULT-2] [SEC-10]
    let folder = folder();
    let server = Server::listening(&project(folder.path(), "game", "2022.3.1f1")).await;
    let mut editor = server.editor(&server.who()).await;
    let first = server.call("run_tests", json!({ "mode": "EditMode", "timeout": 0 })).await;
    let call = editor.accept().await.expect("a call");
    editor.about("started", &call).await;
    let progress = |seq: u32, n: u32, tests: Value| {
        json!({
            "type": "progress", "request_id": call["request_id"], "seq": seq, "current": n, "total": 7,
            "partial": {
                "completed_tests": tests, "total_tests": 7, "completed_count": n, "test_run_status": "running",
            },
        })
    };
    let odd =
        json!(["Demo.Tests.ParseTests.Reads(\"\u{1}\")", "Demo.Tests.ParseTests.Reads(\"<a&b>\")"]);
    editor.socket.say(progress(1, 2, odd.clone())).await;
    editor.socket.say(progress(3, 7, json!(["Twice", "Twice"]))).await;
    editor.socket.say(progress(2, 3, json!([]))).await;
    let status = json!({ "log_id": first["log_id"] });
    let late = loop {
        let now = server.call("get_operation_status", status.clone()).await;
        match now["partial_result"]["completed_count"].as_u64() {
            Some(2) => assert_eq!(now["partial_result"]["completed_tests"], odd, "{now}"),
            Some(7) => break now,
            Some(n) => panic!("{n}: {now}"),
            None => {}
        }
    };
    assert_eq!(late["partial_result"]["completed_tests"], json!(["Twice", "Twice"]), "{late}");
    editor.end(&call, "ok", json!({ "total_tests": 7 })).await;
    assert_eq!(server.end(&first).await["status"], "completed");
    let after = server.call("get_operation_status", status).await;
    assert_eq!(after["status"], "completed", "{after}");
    server.close().await;
}

#[tokio::test]
async fn a_dialog_in_the_editor_is_named_to_whoever_waits_for_it() {
    // Case unity-dialog-blocks-save. [CALL-8] [QUEUE-4]
    let folder = folder();
    let server = Server::listening(&project(folder.path(), "game", "2022.3.1f1")).await;
    let mut editor = server.editor(&server.who()).await;
    let begun = server.call("manage_scene", json!({ "action": "save", "timeout": 0 })).await;
    let call = editor.accept().await.expect("a call");
    let blocked = json!({
        "type": "editor_status", "state": "blocked", "seq": 7, "focused": false,
        "main_thread_lag_ms": 4200, "dialog": { "title": "Save \u{202e}Scene" },
    });
    editor.socket.say(blocked).await;
    while !server.text("get_editor_state", json!({})).await.contains("\"blocked\"") {}
    let read = json!({ "log_id": begun["log_id"] });
    let first = server.call("get_operation_result", read).await;
    let second = server.call("manage_scene", json!({ "action": "get_active", "timeout": 0 })).await;
    for held in [&first, &second] {
        let words = held["message"].as_str().expect("words");
        let lines: Vec<&str> = words.lines().collect();
        let [ours, begins, title, ends] = lines.as_slice() else { panic!("{words}") };
        assert!(ours.contains("do not repeat the call"), "{words}");
        assert_eq!(*title, "Save ?Scene", "{words}");
        assert!(begins.starts_with(ends) && begins.contains("the editor"), "{words}");
    }
    let ready = json!({ "type": "editor_status", "state": "ready", "seq": 8 });
    editor.socket.say(ready).await;
    let failure = json!({ "code": "scene_has_no_path", "message": "give `path` to save it" });
    editor.end(&call, "error", failure).await;
    let end = server.end(&begun).await;
    assert_eq!(
        (&end["status"], &end["error_info"]["guarantee"]),
        (&json!("error"), &json!("executed")),
        "{end}"
    );
    let next = editor.accept().await.expect("the next call");
    editor.end(&next, "ok", json!({})).await;
    assert_eq!(server.end(&second).await["status"], "completed");
    server.close().await;
}
