//! Another server behind ours: a scripted one, so that its bytes and its end are known.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::scope::Scope;
use raincheck_mcp::gateway::{Gateway, ServerHandler, Settings};
use raincheck_runtime::{Options, Request};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::session::{Session, Setup};

/// What a scripted server does about a message.
enum Act {
    /// Writes a line.
    Say(String),
    /// Ends the connection.
    End,
}

type Script = dyn Fn(&Value, u32) -> Vec<Act> + Send + Sync;

/// What was said to the scripted server, as it was written.
type Seen = Arc<Mutex<Vec<String>>>;

/// Our server with a scripted one behind it.
struct Wrapped {
    session: Session,
    seen: Seen,
    n_connections: Arc<AtomicU32>,
    _running: JoinSet<()>,
}

impl Wrapped {
    async fn of(
        settings: Settings,
        script: impl Fn(&Value, u32) -> Vec<Act> + Send + Sync + 'static,
    ) -> Self {
        Self::of_capable(settings, &json!({}), script).await
    }

    async fn of_capable(
        settings: Settings,
        capabilities: &Value,
        script: impl Fn(&Value, u32) -> Vec<Act> + Send + Sync + 'static,
    ) -> Self {
        let (script, seen): (Arc<Script>, Seen) = (Arc::new(script), Arc::default());
        let n_connections: Arc<AtomicU32> = Arc::default();
        let servers: Arc<Mutex<JoinSet<()>>> = Arc::default();
        let (heard, counted) = (Arc::clone(&seen), Arc::clone(&n_connections));
        let open = move || {
            let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            let serving = serve(theirs, Arc::clone(&script), number, Arc::clone(&heard));
            servers.lock().expect("no panic").spawn(serving);
            std::future::ready(Ok(tokio::io::split(ours)))
        };
        let gateway = Gateway::streams("scripted", open, settings);
        Self::of_client(gateway, seen, n_connections, capabilities).await
    }

    async fn over(gateway: Gateway, seen: Seen, n_connections: Arc<AtomicU32>) -> Self {
        Self::of_client(gateway, seen, n_connections, &json!({})).await
    }

    /// Connects a client with capabilities.
    async fn of_client(
        gateway: Gateway,
        seen: Seen,
        n_connections: Arc<AtomicU32>,
        capabilities: &Value,
    ) -> Self {
        let engine = Options::in_memory().with_tools(Arc::new(gateway.clone()));
        let options = raincheck_mcp::Options::new("0.0.0").wrap(gateway.clone());
        let setup = Setup { engine: Some(engine), options, ..Setup::default() };
        let mut session = Session::raw_with(setup);
        let introduction = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities,
            "clientInfo": {"name": "case", "version": "0"}});
        let agreed = session.request("initialize", &introduction.to_string()).await;
        let capabilities = &agreed["result"]["capabilities"];
        assert_eq!(
            capabilities["completions"],
            json!({}),
            "what is passed on is declared [GATE-10]"
        );
        session.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        let mut running = JoinSet::new();
        running.spawn(gateway.run(session.handle.clone(), CancellationToken::new()));
        Self { session, seen, n_connections, _running: running }
    }

    /// Returns what was said to the server under a method.
    fn said(&self, method: &str) -> Vec<String> {
        let wanted = format!("\"method\":\"{method}\"");
        let seen = self.seen.lock().expect("no panic");
        seen.iter().filter(|line| line.contains(&wanted)).cloned().collect()
    }
}

async fn serve(stream: DuplexStream, script: Arc<Script>, number: u32, seen: Seen) {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).expect("every line is JSON");
        seen.lock().expect("no panic").push(line);
        for act in script(&message, number) {
            match act {
                Act::Say(line) => {
                    if writer.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                        return;
                    }
                }
                Act::End => return,
            }
        }
    }
}

fn say(value: &Value) -> Act {
    Act::Say(value.to_string())
}

/// Answers the handshake, and with one page of tools; `None` for what is not that.
fn usual(message: &Value, tools: &[&str]) -> Option<Vec<Act>> {
    let id = &message["id"];
    let result = match message["method"].as_str()? {
        "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "scripted", "version": "1"}}),
        "tools/list" => {
            let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
            json!({"tools": tools.iter().map(tool).collect::<Vec<_>>()})
        }
        "notifications/initialized" => return Some(Vec::new()),
        _ => return None,
    };
    Some(vec![say(&json!({"jsonrpc": "2.0", "id": id, "result": result}))])
}

fn result(message: &Value, result: &Value) -> Act {
    say(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

#[tokio::test(start_paused = true)]
async fn tools_of_all_pages_are_listed_and_called_with_the_bytes_as_written() {
    // [GATE-1] [GATE-2] [GATE-3] [RESULT-1]
    let mut wrapped = Wrapped::of(Settings::default(), |message, _| {
        let cursor = message["params"]["cursor"].as_str();
        match (message["method"].as_str(), cursor) {
            (Some("tools/list"), None) => vec![result(
                message,
                &json!({"tools": [{"name": "one", "inputSchema": {"type": "object"},
                    "outputSchema": {"type": "object"}}], "nextCursor": "p2"}),
            )],
            (Some("tools/list"), Some("p2")) => {
                let named = json!({"tools": [{"name": "two"}, {"name": "list_tasks"}]});
                vec![result(message, &named)]
            }
            (Some("tools/call"), _) => {
                let id = &message["id"];
                let said = r#"{"content":[],"structuredContent":{"z":1.0,"a":1e2,"e":"\u00e9\/"}}"#;
                vec![Act::Say(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{said}}}"#))]
            }
            _ => usual(message, &[]).unwrap_or_default(),
        }
    })
    .await;
    let list = wrapped.session.request("tools/list", "{}").await;
    let tools = list["result"]["tools"].as_array().expect("a list");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    for name in ["one", "two", "inner_list_tasks", "list_tasks", "submit_task"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(tools.iter().all(|tool| tool.get("outputSchema").is_none()), "{list}");
    let arguments = r#"{ "z":1.0,"a":1e2, "big":123456789012345678901234567890 }"#;
    let answer = wrapped.session.call("one", arguments).await;
    assert_eq!(answer.text, r#"{"z":1.0,"a":1e2,"e":"\u00e9\/"}"#);
    let calls = wrapped.said("tools/call");
    assert!(calls[0].contains(&format!(r#""name":"one","arguments":{arguments}"#)), "{calls:?}");
    wrapped.session.call("inner_list_tasks", "{}").await;
    assert!(wrapped.said("tools/call")[1].contains(r#""name":"list_tasks""#));
}

#[tokio::test(start_paused = true)]
async fn progress_and_messages_of_the_server_are_those_of_the_task() {
    // [GATE-4] [RESULT-2] [LOG-1]
    let mut wrapped = Wrapped::of(Settings::default(), |message, _| {
        if message["method"] != "tools/call" {
            return usual(message, &["slow"]).unwrap_or_default();
        }
        let token = &message["params"]["_meta"]["progressToken"];
        vec![
            say(&json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "warning", "logger": "inner", "data": "hot"}})),
            say(&json!({"jsonrpc": "2.0", "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 3, "total": 4, "message": "three"}})),
            Act::Say("no message at all".to_owned()),
        ]
    })
    .await;
    let task = wrapped.session.submit("slow", "{}").await;
    let read = format!(r#"{{"task_id":"{task}","wait_s":5}}"#);
    wrapped.session.good("tail_task_logs", &read).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let status =
        wrapped.session.good("get_task_status", &format!(r#"{{"task_id":"{task}"}}"#)).await;
    let progress = &status["progress"];
    assert_eq!((&progress["step"], &progress["step_total"]), (&json!(3), &json!(4)), "{status}");
    assert_eq!((&progress["percent"], &progress["message"]), (&json!(75.0), &json!("three")));
    let log = wrapped.session.good("tail_task_logs", &read).await;
    let lines = log["lines"].as_array().expect("lines");
    assert_eq!((&lines[0]["message"], &lines[0]["level"]), (&json!("inner: hot"), &json!("warn")));
    assert_eq!(lines[1]["message"], "no message at all", "{log}");
}

#[tokio::test(start_paused = true)]
async fn one_owner_reads_nothing_of_what_another_does() {
    // [GATE-4] [SCOPE-2]
    let n_calls = AtomicU32::new(0);
    let mut wrapped = Wrapped::of(Settings::default(), move |message, _| {
        if message["method"] != "tools/call" {
            return usual(message, &["slow"]).unwrap_or_default();
        }
        let number = n_calls.fetch_add(1, Ordering::SeqCst) + 1;
        let said = json!({"level": "info", "data": format!("of call {number}")});
        let said =
            say(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": said}));
        vec![said, Act::Say(format!("noise of call {number}"))]
    })
    .await;
    let task = wrapped.session.submit("slow", "{}").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let inputs = Json::parse("{}").expect("JSON");
    let other = Request::new("slow", inputs, Scope::new("other"));
    wrapped.session.handle.submit(other).await.expect("accepted");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let read = format!(r#"{{"task_id":"{task}"}}"#);
    let log = wrapped.session.good("tail_task_logs", &read).await;
    let lines = log["lines"].as_array().expect("lines");
    let lines: Vec<&str> = lines.iter().filter_map(|line| line["message"].as_str()).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[..2], ["of call 1", "noise of call 1"]);
    assert!(lines[2].contains("several owners"), "once: {lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_the_server_and_its_end_is_not_claimed() {
    // [GATE-6] [CANCEL-2] [LEASE-10]
    let mut wrapped = Wrapped::of(Settings::default(), |message, _| {
        usual(message, &["slow"]).unwrap_or_default()
    })
    .await;
    let task = wrapped.session.submit("slow", "{}").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let id =
        serde_json::from_str::<Value>(&wrapped.said("tools/call")[0]).expect("JSON")["id"].clone();
    wrapped.session.good("cancel_task", &format!(r#"{{"task_id":"{task}"}}"#)).await;
    let end = wrapped.session.end_of(&task).await;
    assert_eq!(end["state"], "cancelled", "{end}");
    assert_eq!(end["error"]["guarantee"], "unknown", "{end}");
    assert!(end["error"]["message"].as_str().expect("words").contains("may still run"), "{end}");
    let cancels = wrapped.said("notifications/cancelled");
    assert_eq!(cancels.len(), 1);
    assert!(cancels[0].contains(&format!(r#""requestId":{id}"#)), "{cancels:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_on_its_way_counts_more_than_the_cancel() {
    // [GATE-6] [CANCEL-5]
    let asked: Mutex<Value> = Mutex::default();
    let mut wrapped =
        Wrapped::of(Settings::default(), move |message, _| match message["method"].as_str() {
            Some("tools/call") => {
                *asked.lock().expect("no panic") = message.clone();
                Vec::new()
            }
            Some("notifications/cancelled") => {
                let asked = asked.lock().expect("no panic");
                vec![result(&asked, &json!({"content": [{"type": "text", "text": "done"}]}))]
            }
            _ => usual(message, &["slow"]).unwrap_or_default(),
        })
        .await;
    let task = wrapped.session.submit("slow", "{}").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    wrapped.session.good("cancel_task", &format!(r#"{{"task_id":"{task}"}}"#)).await;
    let end = wrapped.session.end_of(&task).await;
    assert_eq!((&end["state"], &end["result"]), (&json!("succeeded"), &json!("done")), "{end}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_is_started_again_and_its_call_is_not_made_again() {
    // [GATE-7] [LEASE-3] [LEASE-9]
    let mut wrapped = Wrapped::of(Settings::default(), |message, number| {
        match (message["method"].as_str(), number) {
            (Some("tools/call"), 1) => vec![Act::End],
            (Some("tools/call"), _) => vec![result(message, &json!({"content": []}))],
            _ => usual(message, &["work"]).unwrap_or_default(),
        }
    })
    .await;
    let error = wrapped.session.refused("work", "{}").await;
    assert_eq!((&error["code"], &error["guarantee"]), (&json!("peer_lost"), &json!("unknown")));
    let answer = wrapped.session.call("work", "{}").await;
    assert!(!answer.is_error, "{}", answer.text);
    assert_eq!(wrapped.said("tools/call").len(), 2, "one each");
    assert_eq!(wrapped.n_connections.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_at_once_is_started_a_few_times_and_then_only_by_a_call() {
    // [GATE-7] [LEASE-9]
    let mut wrapped = Wrapped::of(Settings::default(), |message, number| {
        match (message["method"].as_str(), number) {
            (Some("initialize"), 2..) => vec![Act::End],
            (Some("tools/call"), _) => vec![Act::End],
            _ => usual(message, &["work"]).unwrap_or_default(),
        }
    })
    .await;
    wrapped.session.refused("work", "{}").await;
    let error = wrapped.session.refused("work", "{}").await;
    assert_eq!(
        (&error["code"], &error["guarantee"]),
        (&json!("peer_not_ready"), &json!("not_executed"))
    );
    let words = error["message"].as_str().expect("words");
    assert!(words.contains("`scripted`") && words.contains("closed the connection"), "{words}");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let n_before = wrapped.n_connections.load(Ordering::SeqCst);
    let most = Settings::default().restarts + 2;
    assert!(n_before <= most, "{n_before} starts");
    wrapped.session.refused("work", "{}").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(wrapped.n_connections.load(Ordering::SeqCst), n_before + 1, "once for the call");
    assert_eq!(wrapped.said("tools/call").len(), 1, "the first is not made again");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_was_there_is_no_reason_to_call_a_tool_unknown() {
    // [GATE-7]
    let mut wrapped = Wrapped::of(Settings::default(), |_, _| vec![Act::End]).await;
    let list = wrapped.session.request("tools/list", "{}").await;
    assert!(list["result"]["tools"].as_array().is_some_and(|tools| !tools.is_empty()), "{list}");
    let error = wrapped.session.refused("work", "{}").await;
    assert_eq!(
        (&error["code"], &error["guarantee"]),
        (&json!("peer_not_ready"), &json!("not_executed"))
    );
    let submit = r#"{"tool_name":"work","inputs":{}}"#;
    assert_eq!(wrapped.session.refused("submit_task", submit).await["code"], "peer_not_ready");
}

#[tokio::test(start_paused = true)]
async fn a_name_is_not_unknown_because_the_first_start_failed() {
    // [GATE-1] [GATE-7] [LEASE-9]
    let mut wrapped = Wrapped::of(Settings::default(), |message, number| {
        match (message["method"].as_str(), number) {
            (Some("initialize"), 1) => vec![Act::End],
            (Some("tools/call"), _) => vec![result(message, &json!({"content": []}))],
            _ => usual(message, &["work"]).unwrap_or_default(),
        }
    })
    .await;
    let task = wrapped.session.submit("work", "{}").await;
    assert_eq!(wrapped.session.end_of(&task).await["state"], "succeeded");
    let refused = wrapped.session.call("typo", "{}").await;
    assert!(refused.raw["error"].is_object(), "now its tools are known: {}", refused.raw);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_starts_is_said_to_be_away_with_its_reason() {
    // [GATE-7] [CALL-2] [CALL-8]
    let mut wrapped = Wrapped::of(Settings::default(), |message, _| {
        let id = &message["id"];
        let error = json!({"code": -32000, "message": "planted"});
        vec![say(&json!({"jsonrpc": "2.0", "id": id, "error": error}))]
    })
    .await;
    let mut answer = wrapped.session.call("work", "{}").await;
    for _ in 0..2 {
        let from = tokio::time::Instant::now();
        let list = wrapped.session.request("tools/list", "{}").await;
        assert!(list["result"]["tools"].is_array(), "{list}");
        assert!(from.elapsed() < Duration::from_secs(25), "within what a client waits");
        answer = wrapped.session.call("work", "{}").await;
        assert!(from.elapsed() < Duration::from_secs(50), "within what a client waits");
    }
    let error = &answer.data["error"];
    assert_eq!(
        (&error["code"], &error["guarantee"]),
        (&json!("peer_not_ready"), &json!("not_executed"))
    );
    assert!(answer.text.contains("refused the handshake"), "{}", answer.text);
    if let Some(said) = answer.text.find("planted") {
        let begins = answer.text.find("untrusted_begins").expect("a mark");
        let ends = answer.text.find("untrusted_ends").expect("the end of the mark");
        assert!(begins < said && said < ends, "{}", answer.text);
    }
}

#[tokio::test(start_paused = true)]
async fn the_call_that_starts_a_server_again_gets_its_answer() {
    // [GATE-7]
    let is_well = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let mut wrapped =
        Wrapped::of(Settings::default(), move |message, number| match message["method"].as_str() {
            Some("initialize") if number > 1 && !well.load(Ordering::SeqCst) => vec![Act::End],
            Some("tools/call") if number == 1 => vec![Act::End],
            Some("tools/call") => vec![result(message, &json!({"content": []}))],
            _ => usual(message, &["work"]).unwrap_or_default(),
        })
        .await;
    wrapped.session.refused("work", "{}").await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    is_well.store(true, Ordering::SeqCst);
    let n_before = wrapped.n_connections.load(Ordering::SeqCst);
    let answer = wrapped.session.call("work", "{}").await;
    assert!(!answer.is_error, "{}", answer.text);
    assert_eq!(wrapped.n_connections.load(Ordering::SeqCst), n_before + 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_is_no_end_of_cancelled_work() {
    // [GATE-6] [LEASE-10]
    let mut wrapped =
        Wrapped::of(Settings::default(), |message, _| match message["method"].as_str() {
            Some("notifications/cancelled") => vec![Act::End],
            _ => usual(message, &["slow"]).unwrap_or_default(),
        })
        .await;
    let task = wrapped.session.submit("slow", "{}").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    wrapped.session.good("cancel_task", &format!(r#"{{"task_id":"{task}"}}"#)).await;
    let end = wrapped.session.end_of(&task).await;
    assert_eq!(
        (&end["state"], &end["error"]["guarantee"]),
        (&json!("cancelled"), &json!("unknown"))
    );
    assert!(end["error"]["message"].as_str().expect("words").contains("may still run"), "{end}");
}

#[tokio::test(start_paused = true)]
async fn tools_that_change_are_announced_and_listed() {
    // [GATE-5]
    let mut wrapped = Wrapped::of(Settings::default(), |message, _| {
        let has_grown = std::sync::atomic::AtomicBool::new(message["params"]["cursor"] == "never");
        match message["method"].as_str() {
            Some("tools/call") => vec![
                result(message, &json!({"content": []})),
                say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})),
            ],
            // It has another tool with each list.
            Some("tools/list") => {
                has_grown.store(true, Ordering::SeqCst);
                let id = message["id"].as_u64().unwrap_or_default();
                usual(message, &["grow", &format!("tool_{id}")]).unwrap_or_default()
            }
            _ => usual(message, &[]).unwrap_or_default(),
        }
    })
    .await;
    let first = wrapped.session.request("tools/list", "{}").await;
    wrapped.session.call("grow", "{}").await;
    loop {
        let line = wrapped.session.line().await.expect("a notification");
        if line.contains("notifications/tools/list_changed") {
            break;
        }
    }
    let second = wrapped.session.request("tools/list", "{}").await;
    assert_ne!(first["result"], second["result"]);
    let tools = second["result"]["tools"].as_array().expect("a list");
    let late = tools.last().expect("a tool")["name"].as_str().expect("a name").to_owned();
    assert!(late.starts_with("tool_"), "{late}");
    assert!(!wrapped.session.call(&late, "{}").await.is_error);
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_call_said_stands_inside_of_a_mark() {
    // [GATE-2] [CALL-5] [CALL-8]
    let mut wrapped =
        Wrapped::of(Settings::default(), |message, _| match message["method"].as_str() {
            Some("tools/call") => vec![result(
                message,
                &json!({"isError": true, "content": [{"type": "text", "text": "planted"}]}),
            )],
            _ => usual(message, &["work"]).unwrap_or_default(),
        })
        .await;
    let answer = wrapped.session.call("work", "{}").await;
    assert!(answer.is_error);
    let begins = answer.text.find("untrusted_begins").expect("a mark");
    let said = answer.text.find("planted").expect("its words");
    let ends = answer.text.find("untrusted_ends").expect("the end of the mark");
    assert!(begins < said && said < ends, "{}", answer.text);
    assert_eq!(answer.data["error"]["code"], "tool_failed");
}

#[tokio::test(start_paused = true)]
async fn resources_and_prompts_pass_with_their_bytes_and_their_news() {
    // [GATE-10]
    let mut wrapped = Wrapped::of(Settings::default(), |message, _| {
        let id = &message["id"];
        let raw = |result: &str| {
            vec![Act::Say(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))]
        };
        match message["method"].as_str() {
            Some("initialize") => raw(
                r#"{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true},"completions":{}},"serverInfo":{"name":"s","version":"1"}}"#,
            ),
            Some("resources/list") => {
                raw(r#"{"resources":[{"uri":"a:b","name":"n","size":1e2}],"nextCursor":"p2"}"#)
            }
            Some("resources/read") => raw(r#"{"contents":[{"uri":"a:b","text":"\u00e9"}]}"#),
            Some("completion/complete") => {
                let mut acts = raw("{}");
                for method in
                    ["resources/updated", "prompts/list_changed", "resources/list_changed"]
                {
                    let method = format!("notifications/{method}");
                    let params = json!({"uri": "a:b"});
                    acts.push(say(&json!({"jsonrpc": "2.0", "method": method, "params": params})));
                }
                acts
            }
            Some("resources/templates/list") => vec![Act::End],
            Some("prompts/get") => vec![say(&json!({"jsonrpc": "2.0", "id": id,
                "error": {"code": -32602, "message": "no \u{1b}[31msuch prompt"}}))],
            _ => usual(message, &[]).unwrap_or_default(),
        }
    })
    .await;
    wrapped.session.request("resources/list", r#"{"cursor":"p1"}"#).await;
    let listed =
        r#""result":{"resources":[{"uri":"a:b","name":"n","size":1e2}],"nextCursor":"p2"}"#;
    assert!(wrapped.session.last.contains(listed), "{}", wrapped.session.last);
    assert!(wrapped.said("resources/list")[0].contains(r#"{"cursor":"p1"}"#));
    wrapped.session.request("resources/read", r#"{"uri":"a:b"}"#).await;
    assert!(wrapped.session.last.contains(r#""text":"\u00e9""#), "{}", wrapped.session.last);
    let prompts = wrapped.session.request("prompts/list", "{}").await;
    assert_eq!(prompts["result"]["prompts"], json!([]), "it has none");
    assert!(wrapped.said("prompts/list").is_empty());
    let refused = wrapped.session.request("prompts/get", r#"{"name":"x"}"#).await;
    assert!(refused["error"]["message"].as_str().is_some_and(|words| words.contains("no prompts")));
    let refused = wrapped.session.request("resources/subscribe", r#"{"uri":"a:b"}"#).await;
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    wrapped.session.request("completion/complete", r#"{"ref":{}}"#).await;
    let mut news = wrapped.session.beside();
    while news.len() < 2 {
        let line = wrapped.session.line().await.expect("news");
        news.push(serde_json::from_str(&line).expect("JSON"));
    }
    let changed = |what: &str| json!(format!("notifications/{what}/list_changed"));
    let methods: Vec<&Value> = news.iter().map(|one| &one["method"]).collect();
    assert_eq!(methods, [&changed("prompts"), &changed("resources")], "no one subscribed to a:b");

    // What was sent may have been done, whatever it was.
    let lost = wrapped.session.request("resources/templates/list", r#"{"cursor":"p1"}"#).await;
    let data = &lost["error"]["data"];
    assert_eq!((&data["code"], &data["guarantee"]), (&json!("peer_lost"), &json!("unknown")));
}

#[tokio::test(start_paused = true)]
async fn what_the_configuration_says_of_a_tool_holds() {
    // [GATE-11]
    let mut settings = Settings::default();
    settings.hidden.insert("rm".to_owned());
    let adjust: raincheck_mcp::gateway::Adjust = Arc::new(|spec| spec.wait = Duration::ZERO);
    settings.adjust.insert("slow".to_owned(), adjust);
    let mut wrapped =
        Wrapped::of(settings, |message, _| usual(message, &["rm", "slow"]).unwrap_or_default())
            .await;
    let list = wrapped.session.request("tools/list", "{}").await.to_string();
    assert!(list.contains("\"slow\"") && !list.contains("\"rm\""), "{list}");
    let answer = wrapped.session.good("slow", "{}").await;
    assert_eq!(answer["status"], "running", "it does not wait");
    let refused = wrapped.session.call("rm", "{}").await;
    assert!(refused.raw["error"].is_object(), "{}", refused.raw);
}

#[tokio::test(start_paused = true)]
async fn a_question_passes_to_the_client_while_its_call_is_open() {
    // [GATE-12]
    let calls: Mutex<Vec<Value>> = Mutex::default();
    let capabilities = json!({"elicitation": {"form": {}}});
    let mut wrapped = Wrapped::of_capable(Settings::default(), &capabilities, move |message, _| {
        let mut calls = calls.lock().expect("no panic");
        match message["method"].as_str() {
            Some("tools/call") => {
                calls.push(message.clone());
                let params = json!({"message": "Sure?", "requestedSchema": {"type": "object"}});
                let question = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
                    "params": params});
                vec![say(&question)]
            }
            None => {
                let said = format!("{} {}", message["result"], message["error"]["message"]);
                let call = calls.pop().expect("a call");
                vec![result(&call, &json!({"content": [{"type": "text", "text": said}]}))]
            }
            Some(_) => usual(message, &["ask"]).unwrap_or_default(),
        }
    })
    .await;
    let id = wrapped.session.begin_call("ask", "{}").await;
    let question = loop {
        let line = wrapped.session.line().await.expect("a question");
        let message: Value = serde_json::from_str(&line).expect("JSON");
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    assert_eq!(question["params"]["message"], "Sure?", "{question}");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    wrapped.session.send(&answer.to_string()).await;
    let answered = wrapped.session.answer(&id).await;
    let said = answered["result"]["content"][0]["text"].as_str().expect("a text");
    assert_eq!(said, r#"{"action":"accept"} null"#, "{answered}");
    assert!(wrapped.said("initialize")[0].contains(r#""elicitation":{"form":{}}"#));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_no_client_can_be_asked_is_the_tasks_own() {
    // [GATE-12] [TASKS-6]
    let calls: Mutex<Vec<Value>> = Mutex::default();
    let mut wrapped = Wrapped::of(Settings::default(), move |message, _| {
        let mut calls = calls.lock().expect("no panic");
        match message["method"].as_str() {
            Some("tools/call") => {
                calls.push(message.clone());
                let params = json!({"message": "Sure?", "requestedSchema": {"type": "object"}});
                let question = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
                    "params": params});
                vec![say(&question)]
            }
            None => {
                let said = message["result"].to_string();
                let call = calls.pop().expect("a call");
                vec![result(&call, &json!({"content": [{"type": "text", "text": said}]}))]
            }
            Some(_) => usual(message, &["ask"]).unwrap_or_default(),
        }
    })
    .await;
    let task = wrapped.session.submit("ask", "{}").await;
    let read = format!(r#"{{"task_id":"{task}"}}"#);
    let mut status = Value::Null;
    while status["state"] != "input_required" {
        tokio::time::sleep(Duration::from_millis(100)).await;
        status = wrapped.session.good("get_task_status", &read).await;
    }
    let asked = &status["input_request"];
    assert_eq!(asked["request"]["params"]["message"], "Sure?", "{status}");
    let answer = json!({"task_id": task, "key": asked["key"], "response": {"action": "accept"}});
    wrapped.session.good("give_task_input", &answer.to_string()).await;
    let end = wrapped.session.end_of(&task).await;
    assert_eq!(end["result"], json!({"action": "accept"}), "{end}");

    // [TASKS-9] A client that is asked by the answer of its call, whatever other clients can do.
    let options = raincheck_mcp::Options::new("0.0.0");
    let mut session = wrapped.session.of_scope_with(Scope::local().as_str(), options);
    let client = json!({"elicitation": {}});
    let asked = session.ask_as(&client, "ask", json!({})).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let requests = asked["inputRequests"].as_object().expect("questions");
    let (key, request) = requests.iter().next().expect("a question");
    assert_eq!(request["params"]["message"], "Sure?", "{asked}");
    let mut answers = json!({});
    answers[key] = json!({"action": "decline"});
    let retry = json!({"requestState": asked["requestState"], "inputResponses": answers});
    let end = session.ask_as(&client, "ask", retry).await;
    assert_eq!(end["result"]["content"][0]["text"], r#"{"action":"decline"}"#, "{end}");
}

/// A handler as others write them.
struct Existing;

impl ServerHandler for Existing {
    async fn list_tools(
        &self,
        _: Option<rmcp::model::PaginatedRequestParams>,
        _: rmcp::service::RequestContext<rmcp::RoleServer>,
    ) -> Result<rmcp::model::ListToolsResult, rmcp::ErrorData> {
        let schema = Arc::new(serde_json::Map::new());
        let tool = rmcp::model::Tool::new("double", "Doubles", schema);
        Ok(rmcp::model::ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        request: rmcp::model::CallToolRequestParams,
        _: rmcp::service::RequestContext<rmcp::RoleServer>,
    ) -> Result<rmcp::model::CallToolResponse, rmcp::ErrorData> {
        let n = request.arguments.unwrap_or_default()["n"].as_i64().unwrap_or_default();
        let words = rmcp::model::ContentBlock::text(format!("{}", 2 * n));
        Ok(rmcp::model::CallToolResult::success(vec![words]).into())
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_this_process_is_wrapped_as_it_is() {
    // [GATE-9]
    let gateway = Gateway::handler(Existing, Settings::default());
    let mut wrapped = Wrapped::over(gateway, Arc::default(), Arc::default()).await;
    assert_eq!(wrapped.session.call("double", r#"{"n":21}"#).await.text, "42");
    let task = wrapped.session.submit("double", r#"{"n":2}"#).await;
    assert_eq!(wrapped.session.end_of(&task).await["result"], "4");
}

#[tokio::test(start_paused = true)]
async fn the_trace_of_a_call_reaches_the_other_server() {
    // [TRACE-3]
    let script = |message: &Value, _: u32| {
        usual(message, &["work"]).unwrap_or_else(|| {
            let id = &message["id"];
            let result = match message["method"].as_str() {
                Some("tools/call") => json!({"content": [{"type": "text", "text": "done"}]}),
                _ => json!({"messages": []}),
            };
            vec![say(&json!({"jsonrpc": "2.0", "id": id, "result": result}))]
        })
    };
    let mut wrapped = Wrapped::of(Settings::default(), script).await;
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let trace = json!({"traceparent": parent, "tracestate": "a=1", "baggage": "user=7"});
    let mut meta = trace.clone();
    meta["progressToken"] = json!("mine");
    meta["other/thing"] = json!(1);
    let call = json!({"name": "work", "arguments": {}, "_meta": meta});
    let answer = wrapped.session.request("tools/call", &call.to_string()).await;
    assert!(answer["result"]["content"].to_string().contains("done"), "{answer}");
    let said: Value =
        serde_json::from_str(&wrapped.said("tools/call").pop().expect("a call")).expect("JSON");
    let mut told = said["params"]["_meta"].clone();
    assert_ne!(told["progressToken"], json!("mine"), "tokens are the gateway's own: {told}");
    told.as_object_mut().expect("an object").remove("progressToken");
    assert_eq!(told, trace);
    let plain = json!({"name": "work", "arguments": {}});
    wrapped.session.request("tools/call", &plain.to_string()).await;
    let said = wrapped.said("tools/call").pop().expect("a call");
    assert!(!said.contains("traceparent"), "{said}");
}
