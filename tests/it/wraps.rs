//! What wrapped servers keep, seen from a terminal.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use crate::durable::serve;
use crate::server::{PATIENCE, Server, binary, folder as tests};

/// Puts a second server of ours behind the gateway, whose state is in memory, and which keeps no answers.
fn wrap(folder: &TempDir, name: &str) -> Command {
    let home = folder.path();
    let config = home.join(format!("{name}.toml"));
    let echo = json!(["sh", tests().join("tools/echo.sh")]);
    let text = format!(
        "[cache]\nenabled = false\n[tools.echo]\ndescription = \"Echo\"\nwait_s = 20\ncommand = {echo}\n"
    );
    std::fs::write(&config, text).expect("written");
    let mut command = raincheck(folder);
    command.args(["wrap", "--wait-s", "20", "--"]).arg(binary()).arg("serve");
    command.arg("--config").arg(config).args(["--store", "memory", "--scope", name]);
    command.arg("--state-dir").arg(home.join(name));
    command.arg("--runtime-dir").arg(home.join(name).join("run"));
    command
}

fn raincheck(folder: &TempDir) -> Command {
    let mut command = Command::new(binary());
    command.env_remove("RAINCHECK_STORE").env_remove("RAINCHECK_CONFIG");
    command.env("RAINCHECK_STATE_DIR", folder.path().join("state"));
    command.env("RAINCHECK_RUNTIME_DIR", folder.path().join("run"));
    command
}

/// Runs a command of the terminal, which must do what it is asked, and returns what it printed.
async fn said(folder: &TempDir, arguments: &[&str]) -> String {
    let mut command = raincheck(folder);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.expect("it runs");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {complaints}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

async fn read(folder: &TempDir, arguments: &[&str]) -> Value {
    let said = said(folder, &[arguments, &["--json"]].concat()).await;
    serde_json::from_str(&said).unwrap_or_else(|_| panic!("no JSON: {said}"))
}

/// Makes a task of the wrapped tool, and waits for its end.
async fn echo(server: &mut Server, inputs: Value) -> String {
    let submit = json!({"tool_name": "echo", "inputs": inputs});
    let task = server.data("submit_task", submit).await;
    let ended = server.ended(&task).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    task["task_id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn tasks_of_every_wrapped_server_are_seen_beside_it_and_after_it() {
    // [GATE-8] [TOOL-8]
    let folder = TempDir::new().expect("a folder");
    let mut one = Server::of(wrap(&folder, "one")).shake_hands().await;
    let first = echo(&mut one, json!({"a": 1})).await;
    let listed = read(&folder, &["tasks", "list"]).await;
    assert_eq!(listed["tasks"][0]["task_id"], json!(first), "{listed}");
    assert!(listed["tasks"][0].get("server").is_none(), "there is no other: {listed}");

    let mut two = Server::of(wrap(&folder, "two")).shake_hands().await;
    let second = echo(&mut two, json!({"b": 2})).await;
    let mut own = serve(&folder).await;
    let third = echo(&mut own, json!({"c": 3})).await;
    let status = read(&folder, &["status"]).await;
    let running = status["servers"].as_array().expect("servers");
    let commands: Vec<&str> =
        running.iter().filter_map(|server| server["server"]["wraps"].as_str()).collect();
    assert_eq!((running.len(), commands.len()), (3, 2), "{status}");
    assert!(commands.iter().all(|command| command.contains("serve --config")), "{status}");

    for servers in [Some([one, two, own]), None] {
        let listed = read(&folder, &["tasks", "list"]).await;
        let rows = listed["tasks"].as_array().expect("tasks");
        let of = |row: &Value| (row["task_id"].clone(), row["server"].clone());
        let ids: Vec<Value> = rows.iter().map(|row| of(row).0).collect();
        assert_eq!(ids, [&third, &second, &first].map(|id| json!(id)), "newest first: {listed}");
        assert_eq!(of(&rows[0]).1, "serve", "{listed}");
        assert_ne!(of(&rows[1]).1, of(&rows[2]).1, "{listed}");
        let table = said(&folder, &["tasks", "list", "--limit", "2"]).await;
        assert!(table.contains("SERVER") && table.contains("more than 2"), "{table}");
        assert!(!table.contains(&first), "{table}");
        let shown = read(&folder, &["tasks", "show", &second]).await;
        assert_eq!(shown["task_id"], json!(second), "{shown}");
        let asked = read(&folder, &["tasks", "cancel", &first]).await;
        assert_eq!(asked["acknowledged"], false, "it had ended: {asked}");
        let store = folder.path().join("state/raincheck/store.db");
        let named = ["tasks", "list", "--store", path(&store)];
        assert_eq!(read(&folder, &named).await["tasks"][0]["task_id"], json!(third));
        for server in servers.into_iter().flatten() {
            assert!(server.close().await.success());
        }
    }
}

#[tokio::test]
async fn a_rule_for_a_tool_that_is_not_there_is_told_once_the_tools_are_known() {
    // [GATE-11]
    let folder = TempDir::new().expect("a folder");
    let rules = folder.path().join("rules.toml");
    std::fs::write(&rules, "[wrapped.ehco]\nwait_s = 1\n[wrapped.echo]\nwait_s = 2\n")
        .expect("written");
    let check = ["config", "check", path(&rules)];
    let before = said(&folder, &check).await;
    assert!(before.contains("for 2 tools by name") && !before.contains("warning"), "{before}");
    let mut command = wrap(&folder, "one");
    command.env("RAINCHECK_CONFIG", &rules).stderr(Stdio::piped());
    let mut server = Server::of(command);
    let errors = server.child.stderr.take().expect("a pipe");
    let mut server = server.shake_hands().await;
    assert_eq!(server.data("echo", json!({"a": 1})).await, json!({"a": 1}));
    let told = async {
        let mut lines = BufReader::new(errors).lines();
        loop {
            let line = lines.next_line().await.expect("UTF-8").expect("it is told");
            if line.contains("[wrapped.") {
                return line;
            }
        }
    };
    let told = timeout(PATIENCE, told).await.expect("in time");
    assert!(told.contains("[wrapped.ehco]") && told.contains("did you mean `echo`?"), "{told}");
    assert!(server.close().await.success());
    let after = said(&folder, &check).await;
    assert!(after.contains("warning: [wrapped.ehco]") && after.contains("`echo`?"), "{after}");
    assert!(!after.contains("[wrapped.echo]"), "{after}");
}

#[tokio::test]
async fn large_answers_of_a_wrapped_server_are_found_by_their_handles() {
    // [CACHE-9] [GATE-8]
    let folder = TempDir::new().expect("a folder");
    let mut own = serve(&folder).await;
    let mut one = Server::of(wrap(&folder, "one")).shake_hands().await;
    let inputs = json!({"pad": "x".repeat(200_000)});
    let mut ids = Vec::new();
    for server in [&mut own, &mut one] {
        let result = server.call("echo", inputs.clone()).await;
        let text = result["content"][0]["text"].as_str().expect("a text");
        let told: Value = serde_json::from_str(text).expect("JSON");
        ids.push(told["cache_id"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned());
    }
    for servers in [Some([own, one]), None] {
        let listed = read(&folder, &["cache", "list"]).await;
        let servers_of: Vec<&Value> =
            listed["items"].as_array().expect("items").iter().map(|item| &item["server"]).collect();
        assert!(servers_of.len() == 2 && servers_of[0] == "serve", "{listed}");
        for id in &ids {
            let shown = read(&folder, &["cache", "show", id]).await;
            assert_eq!(shown["metadata"]["tool"], "echo", "{shown}");
        }
        for server in servers.into_iter().flatten() {
            assert!(server.close().await.success());
        }
    }
    assert!(said(&folder, &["cache", "clear", &ids[1]]).await.starts_with("1 cached response"));
    assert!(said(&folder, &["cache", "clear"]).await.starts_with("1 cached response"));
}

fn path(path: &Path) -> &str {
    path.to_str().expect("text")
}
