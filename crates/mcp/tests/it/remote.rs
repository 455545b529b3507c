//! A server behind a URL: a scripted one that speaks HTTP, so that its bytes and its end are known.

use std::sync::{Arc, Mutex};

use raincheck_mcp::gateway::{Gateway, Remote, Settings};
use raincheck_runtime::Options;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::session::{Session, Setup};

/// A request as it came: its first line, its headers and its body.
#[derive(Clone, Debug)]
struct Asked {
    line: String,
    headers: String,
    body: String,
}

impl Asked {
    fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

type Script = dyn Fn(&Asked) -> String + Send + Sync;

/// Answers with JSON.
fn answer(headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
}

/// Answers with events, and closes.
fn events(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{text}")
}

fn status(line: &str) -> String {
    format!("HTTP/1.1 {line}\r\ncontent-length: 0\r\n\r\n")
}

/// Answers what comes before calls.
fn usual(asked: &Asked) -> Option<String> {
    if asked.line.starts_with("GET") {
        return Some(status("405 Method Not Allowed"));
    }
    if asked.line.starts_with("DELETE") {
        return Some(status("200 OK"));
    }
    let message = asked.message();
    let result = match message["method"].as_str()? {
        "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "far", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "work"}]}),
        "notifications/initialized" => return Some(status("202 Accepted")),
        _ => return None,
    };
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    Some(answer("mcp-session-id: s1\r\n", &body))
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    if stream.read_line(&mut line).await.ok()? == 0 {
        return None;
    }
    let (mut headers, mut length) = (String::new(), 0);
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await.ok()?;
        let header = header.trim_end().to_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(n_bytes) = header.strip_prefix("content-length: ") {
            length = n_bytes.parse().expect("a length");
        }
        headers.push_str(&header);
        headers.push('\n');
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Asked { line, headers, body: String::from_utf8(body).expect("UTF-8") })
}

/// Serves connections, each until it says that it closes.
async fn serve(listener: TcpListener, script: Arc<Script>, seen: Arc<Mutex<Vec<Asked>>>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
        connections.spawn(async move {
            let mut stream = BufReader::new(stream);
            while let Some(asked) = read(&mut stream).await {
                seen.lock().expect("no panic").push(asked.clone());
                let said = script(&asked);
                if stream.write_all(said.as_bytes()).await.is_err() || said.contains("close") {
                    return;
                }
            }
        });
    }
}

struct Far {
    session: Session,
    seen: Arc<Mutex<Vec<Asked>>>,
    _running: JoinSet<()>,
}

impl Far {
    async fn of(script: impl Fn(&Asked) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp?x=1", listener.local_addr().expect("an address"));
        let seen: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let mut running = JoinSet::new();
        running.spawn(serve(listener, Arc::new(script), Arc::clone(&seen)));
        let remote = Remote::new(&url).expect("a URL");
        let remote = remote.header("authorization", "Bearer s3cr3t").expect("a header");
        let gateway = Gateway::remote(remote, Settings::default());
        let engine = Options::in_memory().with_tools(Arc::new(gateway.clone()));
        let setup = Setup { engine: Some(engine), ..Setup::default() };
        let session = Session::open_with(setup).await;
        running.spawn(gateway.run(session.handle.clone(), CancellationToken::new()));
        Self { session, seen, _running: running }
    }

    fn asked(&self, method: &str) -> Vec<Asked> {
        let seen = self.seen.lock().expect("no panic");
        seen.iter().filter(|asked| asked.message()["method"] == method).cloned().collect()
    }
}

#[tokio::test]
async fn bytes_headers_and_the_session_reach_a_server_behind_a_url() {
    // [GATE-13] [GATE-2]
    let mut far = Far::of(|asked| {
        usual(asked).unwrap_or_else(|| {
            let id = asked.message()["id"].clone();
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":{{"z":1.0,"a":1e2}}}}}}"#);
            answer("", &body)
        })
    })
    .await;
    let reply = far.session.call("work", r#"{ "b":1.0,"a":1e2 }"#).await;
    assert_eq!(reply.text, r#"{"z":1.0,"a":1e2}"#);
    let calls = far.asked("tools/call");
    assert!(calls[0].body.contains(r#""arguments":{ "b":1.0,"a":1e2 }"#), "{calls:?}");
    assert!(calls[0].line.starts_with("POST /mcp?x=1 "), "{calls:?}");
    for header in
        ["authorization: bearer s3cr3t", "mcp-session-id: s1", "mcp-protocol-version: 2025-06-18"]
    {
        assert!(calls[0].headers.contains(header), "{header}: {}", calls[0].headers);
    }
    let greeting = &far.asked("initialize")[0].headers;
    assert!(!greeting.contains("mcp-session-id"), "{greeting}");
}

#[tokio::test]
async fn a_stream_that_ends_before_its_answer_is_taken_up_where_it_ended() {
    // [GATE-13] [GATE-4]
    let call: Mutex<Value> = Mutex::default();
    let mut far = Far::of(move |asked| {
        let mut call = call.lock().expect("no panic");
        if asked.headers.contains("last-event-id: 7") {
            let body = json!({"jsonrpc": "2.0", "id": call["id"],
                "result": {"content": [{"type": "text", "text": "late"}]}});
            return events(&format!("id: 8\ndata: {body}\n\n"));
        }
        if asked.message()["method"] == "tools/call" {
            *call = asked.message();
            let token = &call["params"]["_meta"]["progressToken"];
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 1}});
            return events(&format!("id: 7\ndata: {progress}\n\n"));
        }
        usual(asked).expect("a usual request")
    })
    .await;
    assert_eq!(far.session.call("work", "{}").await.text, "late");
    assert_eq!(far.asked("tools/call").len(), 1, "it is not asked again");
}

#[tokio::test]
async fn a_session_that_ended_is_begun_again_and_its_call_is_lost() {
    // [GATE-13] [GATE-7]
    let n_calls: Mutex<u32> = Mutex::default();
    let mut far = Far::of(move |asked| {
        if asked.message()["method"] != "tools/call" {
            return usual(asked).expect("a usual request");
        }
        let mut n_calls = n_calls.lock().expect("no panic");
        *n_calls += 1;
        if *n_calls == 1 {
            return status("404 Not Found");
        }
        let body = json!({"jsonrpc": "2.0", "id": asked.message()["id"],
            "result": {"content": [{"type": "text", "text": "again"}]}});
        answer("", &body.to_string())
    })
    .await;
    let error = far.session.refused("work", "{}").await;
    assert_eq!((&error["code"], &error["guarantee"]), (&json!("peer_lost"), &json!("unknown")));
    assert_eq!(far.session.call("work", "{}").await.text, "again");
    assert_eq!(far.asked("initialize").len(), 2, "one for each session");
}

#[tokio::test]
async fn a_refusal_of_the_server_says_its_status_and_no_secret() {
    // [GATE-13] [SEC-11]
    let mut far = Far::of(|asked| {
        if asked.message()["method"] == "tools/call" {
            return status("500 Internal Server Error");
        }
        usual(asked).expect("a usual request")
    })
    .await;
    let answer = far.session.call("work", "{}").await;
    assert_eq!(answer.data["error"]["code"], "peer_lost", "{}", answer.text);
    assert!(!answer.text.contains("s3cr3t"), "{}", answer.text);
}
