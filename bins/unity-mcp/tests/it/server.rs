//! A server between a real MCP client and an editor whose end of the wire the tests play.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use raincheck::mcp::client::Client;
use raincheck_loopback::{Secret, endpoint};
use raincheck_testkit::editor::{Editor, Who};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, Command};

use crate::{command, folder, project};

/// A running server and its client. Dropping it kills the process.
pub(crate) struct Server {
    child: Child,
    client: Client,
    log: BufReader<ChildStderr>,
    root: PathBuf,
}

impl Server {
    /// Starts a server on a project.
    pub(crate) async fn start(root: &Path, arguments: &[&str]) -> Self {
        let folder = root.parent().expect("a folder");
        let shown = root.to_str().expect("text");
        let arguments = [&["serve", "--log-level", "info", "--project", shown], arguments].concat();
        let mut command: Command = command(folder, &arguments).into();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().expect("it runs");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let log = BufReader::new(child.stderr.take().expect("a pipe"));
        let streams = (output.expect("a pipe"), input.expect("a pipe"));
        let client = Client::connect(streams.0, streams.1, "it").await.expect("a session");
        Self { child, client, log, root: root.to_owned() }
    }

    /// Starts a server on a project, and waits until it listens for editors.
    pub(crate) async fn listening(root: &Path) -> Self {
        let mut server = Self::start(root, &[]).await;
        server.until_logged("listening for editors").await;
        server
    }

    /// Reads the log up to a line with these words.
    pub(crate) async fn until_logged(&mut self, words: &str) {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            let n_read = self.log.read_line(&mut line).await.expect("readable");
            assert!(n_read > 0, "the server never said `{words}`");
        }
    }

    /// Connects the editor of the project.
    pub(crate) async fn editor(&self, who: &Who) -> Editor<TcpStream> {
        let file = self.root.join("Library").join("Raincheck").join("endpoint.json");
        let found = endpoint::read(&file).expect("readable").expect("a server listens");
        let secret = Secret::from_text(&found.secret).expect("a secret");
        let io = TcpStream::connect(("127.0.0.1", found.port)).await.expect("a listener");
        Editor::connect(io, found.port, &secret, who).await.expect("both ends are proved")
    }

    pub(crate) fn who(&self) -> Who {
        Who::new(&self.root.to_string_lossy(), "Game")
    }

    /// Calls a tool, and returns the text of its answer.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let Value::Object(arguments) = arguments else { panic!("no object: {arguments}") };
        self.client.call(tool, arguments).await.expect("an answer").text
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let text = self.text(tool, arguments).await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    pub(crate) async fn menu(&self, timeout: f64) -> Value {
        self.call("execute_menu_item", json!({ "path": "Kit/A", "timeout": timeout })).await
    }

    pub(crate) async fn end(&self, answer: &Value) -> Value {
        let read = json!({ "log_id": answer["log_id"], "wait": true, "timeout": 15 });
        self.call("get_operation_result", read).await
    }

    pub(crate) async fn kill(mut self) {
        self.child.kill().await.expect("killed");
        self.client.close().await;
    }

    pub(crate) async fn close(mut self) {
        self.client.close().await;
        let status = self.child.wait().await.expect("it ends");
        assert!(status.success(), "{status}");
    }
}

#[tokio::test]
async fn a_call_is_answered_by_the_editor_and_reads_the_same_later() {
    // [CALL-1] [RESULT-1]
    let folder = folder();
    let server = Server::listening(&project(folder.path(), "game", "2022.3.1f1")).await;
    let mut editor = server.editor(&server.who()).await;
    let play = async {
        let call = editor.accept().await.expect("a call");
        assert_eq!(
            (&call["tool_name"], &call["params"]["path"]),
            (&json!("execute_menu_item"), &json!("Kit/A"))
        );
        editor.end(&call, "ok", json!({ "did": "Kit/A" })).await;
    };
    let (answer, ()) = tokio::join!(server.menu(15.0), play);
    assert_eq!(
        (&answer["status"], &answer["result"]),
        (&json!("completed"), &json!({"did": "Kit/A"})),
        "{answer}"
    );
    assert_eq!(server.end(&answer).await["result"], answer["result"]);
    server.close().await;
}

#[tokio::test]
async fn a_killed_server_loses_neither_a_result_nor_an_operation_that_runs() {
    // [DUR-3] [LEASE-6]
    let folder = folder();
    let root = project(folder.path(), "game", "2022.3.1f1");
    let server = Server::listening(&root).await;
    let mut editor = server.editor(&server.who()).await;
    let play = async {
        let call = editor.accept().await.expect("a call");
        editor.end(&call, "ok", json!("kept")).await;
    };
    let (ended, ()) = tokio::join!(server.menu(15.0), play);
    assert_eq!(ended["status"], "completed", "{ended}");
    let open = server.menu(0.0).await;
    let call = editor.accept().await.expect("a call");
    editor.about("started", &call).await;
    // It has begun for certain: the server says so.
    while server.call("get_operation_status", json!({ "log_id": open["log_id"] })).await["state"]
        != "running"
    {}
    server.kill().await;

    let server = Server::listening(&root).await;
    let kept = server.end(&ended).await;
    assert_eq!((&kept["status"], &kept["result"]), (&json!("completed"), &json!("kept")), "{kept}");
    let who = Who { running: json!([{ "request_id": call["request_id"] }]), ..server.who() };
    let mut editor = server.editor(&who).await;
    let (end, _) = tokio::join!(server.end(&open), editor.end(&call, "ok", json!("finished")));
    assert_eq!(
        (&end["status"], &end["result"]),
        (&json!("completed"), &json!("finished")),
        "{end}"
    );
    server.close().await;
}

#[tokio::test]
async fn a_second_server_of_a_project_has_its_editor_and_takes_it_over() {
    // [ATTACH-1] [ATTACH-2] [ATTACH-5]
    let folder = folder();
    let root = project(folder.path(), "game", "2022.3.1f1");
    let first = Server::listening(&root).await;
    let mut editor = first.editor(&first.who()).await;
    let mut second = Server::start(&root, &["--store", "memory"]).await;
    let play = async {
        let call = editor.accept().await.expect("a call");
        editor.end(&call, "ok", json!("shared")).await;
    };
    let (ended, ()) = tokio::join!(second.menu(15.0), play);
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(first.end(&ended).await["result"], "shared");
    first.kill().await;
    second.until_logged("listening for editors").await;
    let mut editor = second.editor(&second.who()).await;
    let play = async {
        let call = editor.accept().await.expect("a call");
        editor.end(&call, "ok", json!("mine")).await;
    };
    let (ended, ()) = tokio::join!(second.menu(15.0), play);
    assert_eq!(
        (&ended["status"], &ended["result"]),
        (&json!("completed"), &json!("mine")),
        "{ended}"
    );
    second.close().await;
}

#[tokio::test]
async fn what_one_server_allows_another_one_of_the_project_does_not_get() {
    // [ATTACH-4] [DUR-4]
    let folder = folder();
    let root = project(folder.path(), "game", "2022.3.1f1");
    let first = Server::start(&root, &["--enable-execute-code"]).await;
    assert_eq!(first.menu(0.0).await["status"], "timeout", "it owns the store");
    let second = Server::start(&root, &[]).await;
    let refused = second.menu(5.0).await;
    assert_eq!(refused["error_info"]["code"], "ERR_EDITOR_NOT_READY", "{refused}");
    let details = &refused["error_info"]["details"];
    assert_eq!(details["reason"], "owned_elsewhere", "{refused}");
    assert_eq!(details["pid"].as_u64(), first.child.id().map(u64::from), "{refused}");
    second.close().await;
    first.close().await;
}

#[tokio::test]
async fn the_tasks_lie_in_the_project_and_nothing_is_written_beside_it() {
    // [OPS-11] [QUEUE-5]
    let folder = folder();
    let root = project(folder.path(), "game", "2022.3.1f1");
    let server = Server::listening(&root).await;
    let waiting = server.menu(0.0).await;
    assert_eq!(waiting["queue"]["waiting_reason"], "disconnected", "{waiting}");
    assert!(waiting["message"].as_str().is_some_and(|words| words.contains("No Unity Editor")));
    assert!(root.join("Library").join("Raincheck").join("store.db").is_file());
    server.close().await;
    assert!(!folder.path().join("state").join("unity-mcp").exists());
}

#[tokio::test]
async fn the_list_is_small_whole_and_the_same_with_and_without_an_editor() {
    // [OPS-4]
    let folder = folder();
    let server = Server::listening(&project(folder.path(), "game", "2022.3.1f1")).await;
    let names = server.client.tools().await.expect("a list");
    let editor = server.editor(&server.who()).await;
    assert_eq!(server.client.tools().await.expect("a list"), names);
    drop(editor);
    expect_test::expect![[r"get_operation_result get_operation_status cancel_operation list_operations get_editor_state read_console manage_scene manage_gameobject run_tests execute_code refresh_and_compile control_play_mode execute_menu_item capture_screenshot unity_call list_unity_commands select_editor fetch_cached_response"]]
    .assert_eq(&names.join(" "));
    server.close().await;
}
