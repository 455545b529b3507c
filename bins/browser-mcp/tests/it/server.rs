//! A server between a real MCP client and a browser whose end of the wire the tests play.

use std::path::Path;
use std::process::Stdio;

use raincheck::mcp::client::Client;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};

use crate::fake::Fake;
use crate::{browser_mcp, code, command, err, folder, out};

/// A running server and its client. Dropping it kills the process.
pub(crate) struct Server {
    child: Child,
    client: Client,
    log: BufReader<ChildStderr>,
}

impl Server {
    /// Starts a server on the folders in `folder`.
    pub(crate) async fn start(folder: &Path) -> Self {
        Self::of(command(folder, &["serve", "--log-level", "info"])).await
    }

    /// Starts a server by a command line.
    pub(crate) async fn of(command: std::process::Command) -> Self {
        let mut command: Command = command.into();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().expect("it runs");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let log = BufReader::new(child.stderr.take().expect("a pipe"));
        let streams = (output.expect("a pipe"), input.expect("a pipe"));
        let client = Client::connect(streams.0, streams.1, "it").await.expect("a session");
        Self { child, client, log }
    }

    /// Starts a server, and waits until it listens for the extension.
    pub(crate) async fn listening(folder: &Path) -> Self {
        let mut server = Self::start(folder).await;
        server.until_logged("listening for the extension").await;
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

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let Value::Object(arguments) = arguments else { panic!("no object: {arguments}") };
        let reply = self.client.call(tool, arguments).await.expect("an answer");
        serde_json::from_str(&reply.text).expect("JSON")
    }

    pub(crate) async fn script(&self, wait_ms: u64) -> Value {
        let call = json!({ "action": "execute_js", "script": "1 + 1", "wait_ms": wait_ms });
        self.call("interact", call).await
    }

    async fn read(&self, id: &Value) -> Value {
        let read = json!({ "what": "command_result", "correlation_id": id, "wait_ms": 10_000 });
        self.call("observe", read).await
    }

    /// Returns the number of its process.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
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

/// Tells whether a call was answered with a handle; on a busy machine its command is still in line.
pub(crate) fn is_live(answer: &Value) -> bool {
    ["queued", "pending"].map(Value::from).contains(&answer["status"])
}

#[tokio::test]
async fn a_fast_command_is_answered_in_the_call_itself() {
    // [CALL-1]
    let folder = folder();
    let server = Server::listening(folder.path()).await;
    let mut fake = Fake::connect(&folder.path().join("run")).await;
    let play = async {
        let command = fake.accept().await;
        assert_eq!(command["params"]["script"], "1 + 1", "{command}");
        fake.complete(&command, json!({ "sum": 2 })).await;
        command
    };
    let (answer, command) = tokio::join!(server.script(10_000), play);
    assert_eq!((&answer["status"], &answer["result"]["sum"]), (&json!("complete"), &json!(2)));
    assert_eq!(answer["correlation_id"], command["correlation_id"]);
    server.close().await;
}

#[tokio::test]
async fn health_waits_for_a_browser_when_it_is_asked_to() {
    let folder = folder();
    let server = Server::listening(folder.path()).await;
    let health = |more: Value| {
        let mut call = json!({ "what": "health" });
        if let (Value::Object(call), Value::Object(more)) = (&mut call, more) {
            call.extend(more);
        }
        server.call("observe", call)
    };
    let at_once = health(json!({})).await;
    assert_eq!(at_once["ok"], false, "{at_once}");
    let in_vain = health(json!({ "wait_for_browser_ms": 20_000, "wait_ms": 1 })).await;
    assert_eq!(in_vain["ok"], false, "{in_vain}");
    let play = async {
        let mut fake = Fake::connect(&folder.path().join("run")).await;
        fake.take().await
    };
    let seen = tokio::select! {
        seen = health(json!({ "wait_for_browser_ms": 20_000 })) => seen,
        command = play => panic!("there is no command: {command}"),
    };
    assert_eq!(seen["ok"], true, "{seen}");
    server.close().await;
}

#[tokio::test]
async fn a_slow_command_is_answered_with_a_handle_and_read_later() {
    // [CALL-1] [CALL-2]
    let folder = folder();
    let server = Server::listening(folder.path()).await;
    let mut fake = Fake::connect(&folder.path().join("run")).await;
    // The call waits for a little while only; the browser says nothing of the end until it is back.
    let (handle, command) = tokio::join!(server.script(500), fake.accept());
    assert!(is_live(&handle), "{handle}");
    assert_eq!(handle["next"]["arguments"]["correlation_id"], command["correlation_id"]);
    let (end, ()) =
        tokio::join!(server.read(&handle["correlation_id"]), fake.complete(&command, json!("tea")));
    assert_eq!((&end["status"], &end["result"]), (&json!("complete"), &json!("tea")), "{end}");
    server.close().await;
}

#[tokio::test]
async fn a_killed_server_loses_neither_a_result_nor_a_command_that_runs() {
    // [DUR-3] [LEASE-6]
    let folder = folder();
    let run = folder.path().join("run");
    let server = Server::listening(folder.path()).await;
    let mut fake = Fake::connect(&run).await;
    let play = async {
        let command = fake.accept().await;
        fake.complete(&command, json!("kept")).await;
    };
    let (ended, ()) = tokio::join!(server.script(10_000), play);
    assert_eq!(ended["status"], "complete", "{ended}");
    let (open, command) = tokio::join!(server.script(500), fake.accept());
    assert!(is_live(&open), "{open}");
    server.kill().await;

    let server = Server::listening(folder.path()).await;
    let kept = server.read(&ended["correlation_id"]).await;
    assert_eq!((&kept["status"], &kept["result"]), (&json!("complete"), &json!("kept")), "{kept}");
    let mut fake = Fake::connect(&run).await;
    let (end, ()) = tokio::join!(
        server.read(&open["correlation_id"]),
        fake.complete(&command, json!("finished"))
    );
    assert_eq!((&end["status"], &end["result"]), (&json!("complete"), &json!("finished")), "{end}");
    server.close().await;
}

#[tokio::test]
async fn a_second_server_drives_the_browser_of_the_first_and_takes_it_over() {
    // [ATTACH-1] [ATTACH-2] [ATTACH-5]
    let folder = folder();
    let run = folder.path().join("run");
    let first = Server::listening(folder.path()).await;
    let mut fake = Fake::connect(&run).await;
    let mut second = Server::start(folder.path()).await;
    let play = async {
        let command = fake.accept().await;
        fake.complete(&command, json!("shared")).await;
    };
    let (ended, ()) = tokio::join!(second.script(10_000), play);
    assert_eq!((&ended["status"], &ended["result"]), (&json!("complete"), &json!("shared")));
    assert_eq!(first.read(&ended["correlation_id"]).await["result"], "shared");
    // A command that runs when the owner is killed.
    let (open, command) = tokio::join!(second.script(500), fake.accept());
    assert!(is_live(&open), "{open}");
    first.kill().await;
    second.until_logged("listening for the extension").await;
    let mut fake = Fake::connect(&run).await;
    let (end, ()) = tokio::join!(
        second.read(&open["correlation_id"]),
        fake.complete(&command, json!("finished"))
    );
    assert_eq!((&end["status"], &end["result"]), (&json!("complete"), &json!("finished")), "{end}");
    assert_eq!(second.read(&ended["correlation_id"]).await["result"], "shared");
    second.close().await;
}

#[tokio::test]
async fn a_client_that_cancels_all_ends_what_it_gave_and_is_told_of_the_rest() {
    // [BROWSER-71]
    let folder = folder();
    let first = Server::listening(folder.path()).await;
    let mut second = Server::start(folder.path()).await;
    let give = async |server: &Server, tab: i64| {
        let script = json!({
            "action": "execute_js", "script": "1", "tab_id": tab, "wait_ms": 0,
            "wait_for_browser_ms": 600_000,
        });
        server.call("interact", script).await["correlation_id"].clone()
    };
    let ids = |told: &Value| -> Vec<Value> {
        let commands = told["commands"].as_array().expect("a list").iter();
        commands.map(|one| one["correlation_id"].clone()).collect()
    };
    let own = give(&second, 1).await;
    let others = give(&first, 2).await;
    let told = second.call("cancel", json!({ "all": true })).await;
    assert_eq!((ids(&told), &told["left_to_others"]), (vec![own], &json!(1)), "{told}");
    assert!(told["message"].to_string().contains("what other clients gave goes on"), "{told}");
    // What was given under an earlier server is ended by whoever asks for all.
    first.kill().await;
    second.until_logged("listening for the extension").await;
    let told = second.call("cancel", json!({ "all": true })).await;
    assert_eq!((ids(&told), &told["left_to_others"]), (vec![others], &Value::Null), "{told}");
    second.close().await;
}

#[tokio::test]
async fn the_next_owner_tells_the_browser_of_each_client_by_the_name_that_it_had() {
    // [BROWSER-19] [ATTACH-5] By that name the browser knows whose its tabs are.
    let folder = folder();
    let run = folder.path().join("run");
    let first = Server::listening(folder.path()).await;
    let mut fake = Fake::connect(&run).await;
    let mut second = Server::start(folder.path()).await;
    let (_, before) = tokio::join!(second.script(500), fake.accept());
    fake.complete(&before, json!(1)).await;
    let (_, other) = tokio::join!(first.script(500), fake.accept());
    assert!(before["caller"]["connection"].is_string(), "{before}");
    assert_ne!(before["caller"], other["caller"]);
    first.kill().await;
    second.until_logged("listening for the extension").await;
    let mut fake = Fake::connect(&run).await;
    let (_, after) = tokio::join!(second.script(500), fake.accept());
    assert_eq!(after["caller"], before["caller"]);
    fake.complete(&after, json!(1)).await;
    second.close().await;
}

#[tokio::test]
async fn a_running_server_is_seen_and_keeps_its_secret() {
    let folder = folder();
    let written = browser_mcp(folder.path(), &["extension", "install", "extension"]);
    assert_eq!(code(&written), Some(0), "{}", err(&written));
    let server = Server::listening(folder.path()).await;
    let status = browser_mcp(folder.path(), &["status", "--json"]);
    let report: Value = serde_json::from_str(&out(&status)).expect("JSON");
    let pid = report["servers"][0]["server"]["pid"].as_u64();
    assert_eq!(pid, server.child.id().map(u64::from), "{report}");
    let refused = browser_mcp(folder.path(), &["extension", "rotate"]);
    assert_eq!(code(&refused), Some(1));
    assert!(err(&refused).contains("a server runs"), "{}", err(&refused));
    server.close().await;
}

#[tokio::test]
async fn a_key_that_is_taken_names_the_command_by_the_id_that_its_caller_knows() {
    // [IDEM-1, BROWSER-1]
    let folder = folder();
    let server = Server::listening(folder.path()).await;
    let script = |script: &str| json!({ "action": "execute_js", "script": script, "wait_ms": 0, "idempotency_key": "k" });
    let first = server.call("interact", script("1")).await;
    let other = server.call("interact", script("2")).await;
    let id = first["correlation_id"].as_str().expect("an id");
    assert_eq!(other["error_info"]["code"], "idempotency_conflict", "{other}");
    assert_eq!(other["error_info"]["details"]["correlation_id"], id, "{other}");
    assert!(other["message"].as_str().is_some_and(|words| words.contains(id)), "{other}");
    assert!(!other.to_string().contains("tsk_"), "{other}");
    server.close().await;
}

#[tokio::test]
async fn a_command_that_a_reload_ended_says_so_when_it_is_read() {
    // [BROWSER-23]
    let folder = folder();
    let server = Server::listening(folder.path()).await;
    let mut fake = Fake::connect(&folder.path().join("run")).await;
    let play = async {
        let command = fake.accept().await;
        let error = json!({ "code": "execution_timeout", "goes_on": true });
        fake.post(&command, "timeout", json!({ "error": error })).await;
    };
    let (ended, ()) = tokio::join!(server.script(10_000), play);
    assert_eq!(ended["status"], "timeout", "{ended}");
    let id = &ended["correlation_id"];
    let before = server.read(id).await;
    assert!(before["reload_ended_at"].is_null(), "{before}");
    assert!(before["message"].to_string().contains("reload: true"), "{before}");
    let play = async {
        let command = fake.accept().await;
        assert_eq!(command["params"]["of"], *id, "{command}");
        fake.complete(&command, json!({ "ended": true, "reloaded": true })).await;
    };
    let cancel = server.call("cancel", json!({ "correlation_id": id, "reload": true }));
    let (cancelled, ()) = tokio::join!(cancel, play);
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    let after = server.read(id).await;
    assert!(after["reload_ended_at"].is_string(), "{after}");
    let words = after["message"].as_str().expect("words");
    assert!(words.starts_with("It has come to its end since"), "{after}");
    assert!(!after.to_string().contains("reload: true"), "{after}");
    assert_eq!(after["status"], "timeout", "an end is final: {after}");
    server.close().await;
}

#[tokio::test]
async fn what_an_older_extension_does_not_know_is_refused_at_once_and_the_rest_is_done() {
    // [BROWSER-66]
    let folder = folder();
    let server = Server::listening(folder.path()).await;
    let mut fake = Fake::of_revision(&folder.path().join("run"), "1").await;
    let play = async {
        // It polls, and is handed what it knows alone.
        let command = fake.accept().await;
        assert_eq!(command["params"]["action"], "execute_js", "{command}");
        fake.complete(&command, json!(2)).await;
    };
    let calls = async {
        for mut call in [
            json!({ "action": "click", "ref": "e1", "changes": true }),
            json!({ "action": "page_tools" }),
        ] {
            call["wait_ms"] = json!(30_000);
            let refused = server.call("interact", call).await;
            let info = &refused["error_info"];
            let told = (&info["code"], &info["guarantee"], &info["details"]["reason"]);
            let wanted =
                [json!("peer_incompatible"), json!("not_executed"), json!("old_extension")];
            assert_eq!(told, (&wanted[0], &wanted[1], &wanted[2]), "{refused}");
            assert!(info["hint"].to_string().contains("extension install"), "{refused}");
        }
        server.script(30_000).await
    };
    let (done, ()) = tokio::join!(calls, play);
    assert_eq!(done["status"], "complete", "{done}");
    let health = server.call("observe", json!({ "what": "health" })).await;
    assert_eq!(health["browsers"][0]["outdated"], true, "{health}");
    assert!(health["message"].to_string().contains("extension install"), "{health}");
    server.close().await;
}
