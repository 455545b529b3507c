//! A client whose process is attached to an owner that the tests play [ATTACH-2, ATTACH-5, ATTACH-6].

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use raincheck_core::content::Json;
use raincheck_core::scope::Scope;
use raincheck_mcp::{Found, Layer, Link, Notices, Options, Owners};
use raincheck_runtime::Request;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
    duplex, split,
};
use tokio::time::{sleep, timeout};

use crate::session::{Session, store_name};

/// The store of the process itself.
fn kept() -> Option<Arc<str>> {
    Some(store_name())
}

/// What is found, one after the other.
#[derive(Debug)]
struct Script(Mutex<Vec<Found>>);

#[async_trait]
impl Owners for Script {
    async fn find(&self) -> Found {
        let mut left = self.0.lock().expect("no panic");
        assert!(!left.is_empty(), "it looks once too often");
        left.remove(0)
    }
}

fn script(found: impl IntoIterator<Item = Found>) -> Arc<Script> {
    Arc::new(Script(Mutex::new(found.into_iter().collect())))
}

/// The owner's end of a connection.
struct Far {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Far {
    fn new(store: Option<Arc<str>>) -> (Self, Found) {
        Self::with_room(store, 1 << 20)
    }

    /// Makes a connection that holds so many bytes each way.
    fn with_room(store: Option<Arc<str>>, n_bytes: usize) -> (Self, Found) {
        let (near, far) = duplex(n_bytes);
        let (reader, writer) = split(near);
        let link = Link { reader: Box::new(reader), writer: Box::new(writer), store };
        let (reader, writer) = split(far);
        (Self { lines: BufReader::new(reader).lines(), writer }, Found::Theirs(link))
    }

    async fn hear(&mut self) -> String {
        self.lines.next_line().await.expect("readable").expect("a line")
    }

    async fn say(&mut self, line: &str) {
        self.writer.write_all(format!("{line}\n").as_bytes()).await.expect("a reader");
    }

    /// Hears how the client introduces itself.
    async fn meet(&mut self) {
        let hello: Value = serde_json::from_str(&self.hear().await).expect("JSON");
        assert_eq!(hello["params"]["clientInfo"]["name"], "case", "{hello}");
        self.say(r#"{"jsonrpc":"2.0","id":"h0","result":{}}"#).await;
        assert_eq!(self.hear().await, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }
}

#[tokio::test(start_paused = true)]
async fn lines_pass_unchanged_and_an_owner_that_sleeps_is_waited_for() {
    // [ATTACH-2] [LEASE-8]
    let (mut far, theirs) = Far::new(kept());
    let mut session = Session::shared(script([theirs])).await;
    far.meet().await;
    let odd = r#"{"jsonrpc":"2.0", "id":7 ,"method":"tools/call","params":{"name":"x","arguments":{"b":1.0,"a":1e2}}}"#;
    session.send(odd).await;
    assert_eq!(far.hear().await, format!("1 {odd}"));
    sleep(Duration::from_secs(3600)).await;
    let answer = r#"{"jsonrpc":"2.0","id":7,"result":{"z":1.0,  "y":[]}}"#;
    far.say(answer).await;
    assert_eq!(session.answer(&json!(7)).await["result"]["y"], json!([]));
    assert_eq!(session.last, answer);
    // A request that was cancelled is answered to nobody.
    session.send(&odd.replace('7', "8")).await;
    session
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}"#)
        .await;
    assert!(far.hear().await.starts_with("2 "));
    assert!(far.hear().await.contains("notifications/cancelled"));
    far.say(r#"{"jsonrpc":"2.0","id":8,"result":{}}"#).await;
    let pinged = session.request("ping", "{}").await;
    assert_eq!(pinged["result"], json!({}), "by its own process, and nothing before it");
    assert!(session.line_is_pending().await);
}

#[tokio::test(start_paused = true)]
async fn what_was_open_is_asked_of_the_next_owner_and_then_of_the_process_itself() {
    // [ATTACH-5] [ATTACH-6]
    let ((mut one, first), (mut two, second)) = (Far::new(kept()), Far::new(kept()));
    let mut session = Session::shared(script([first, second, Found::Ours])).await;
    one.meet().await;
    let id = session.begin_call("echo", r#"{"n":1}"#).await;
    let asked = one.hear().await;
    drop(one);
    two.meet().await;
    let again = two.hear().await;
    let (head, line) = again.split_once(' ').expect("a number");
    assert_eq!(Some(line), asked.strip_prefix("1 "), "the same bytes, once more");
    assert!(head.starts_with("1!") && head.ends_with(&format!("/{}", store_name())), "{head}");
    drop(two);
    let answer = session.answer(&id).await;
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert_eq!(session.good("echo", r#"{"n":2}"#).await, json!({"n": 2}), "it owns the store");
}

#[tokio::test(start_paused = true)]
async fn a_call_of_an_owner_whose_store_is_gone_says_that_nobody_knows() {
    // [ATTACH-6] [LEASE-9]
    let (mut far, theirs) = Far::new(None);
    let ours = Found::Ours;
    let mut session = Session::shared(script([theirs, ours])).await;
    far.meet().await;
    let (call, list) = (
        session.begin_call("nap", r#"{"ms":1}"#).await,
        session.begin_call("list_tasks", "{}").await,
    );
    assert!(far.hear().await.contains("nap"));
    assert!(far.hear().await.contains("list_tasks"));
    drop(far);
    let told = session.answer(&call).await;
    let text = told["result"]["content"][0]["text"].as_str().expect("words");
    let error: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(error["error"]["code"], "worker_lost", "{told}");
    assert_eq!(error["error"]["guarantee"], "unknown", "{told}");
    let read = session.answer(&list).await;
    assert_eq!(read["result"]["isError"], false, "a read is made again: {read}");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_client_is_the_end_of_its_session_at_the_owner() {
    // [ATTACH-2] [CANCEL-7]
    let (mut far, theirs) = Far::new(kept());
    let mut session = Session::shared(script([theirs])).await;
    far.meet().await;
    let id = session.begin_call("nap", "{}").await;
    far.hear().await;
    session.close_stdin();
    assert!(far.lines.next_line().await.expect("readable").is_none(), "it hears the end");
    let last = json!({"jsonrpc": "2.0", "id": id, "result": {"last": true}});
    far.say(&last.to_string()).await;
    drop(far);
    assert_eq!(session.answer(&id).await["result"]["last"], true, "the last answer arrives");
    assert!(session.line().await.is_none());
}

/// Returns a line of the client that no connection of these tests holds.
fn large_call(id: u32) -> String {
    let params = json!({"name": "nap", "arguments": {"text": "x".repeat(8 << 10)}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

#[tokio::test(start_paused = true)]
async fn what_an_owner_answered_before_it_went_is_read_although_it_hears_nothing_any_more() {
    // [ATTACH-6]
    let (near, far) = duplex(1 << 20);
    let (ears, deaf) = duplex(4 << 10);
    let (reader, _) = split(near);
    let link = Link { reader: Box::new(reader), writer: Box::new(ears), store: None };
    let (_, writer) = split(far);
    let (hearing, _) = split(deaf);
    let mut far = Far { lines: BufReader::with_capacity(64, hearing).lines(), writer };
    let ours = Found::Ours;
    let mut session = Session::shared(script([Found::Theirs(link), ours])).await;
    far.meet().await;
    let id = session.begin_call("nap", "{}").await;
    assert!(far.hear().await.contains("nap"));
    session.send(&large_call(77)).await;
    // The next line is on its way, and waits.
    sleep(Duration::from_secs(1)).await;
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"last": true}});
    let Far { lines, mut writer } = far;
    writer.write_all(format!("{answer}\n").as_bytes()).await.expect("a reader");
    drop((lines, writer));
    assert_eq!(session.answer(&id).await["result"]["last"], true, "it was said");
    let lost = session.answer(&json!(77)).await;
    assert!(lost.to_string().contains("worker_lost"), "{lost}");
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_an_owner_that_does_not_read_goes_with_its_cancel() {
    // [CALL-7] [ATTACH-8]
    let (mut far, theirs) = Far::with_room(kept(), 4 << 10);
    let mut session = Session::shared(script([theirs])).await;
    far.meet().await;
    for id in 100..103 {
        session.send(&large_call(id)).await;
    }
    sleep(Duration::from_secs(1)).await;
    for id in 100..103 {
        let cancelled = json!({"requestId": id});
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled});
        session.send(&cancelled.to_string()).await;
    }
    sleep(Duration::from_secs(1)).await;
    session.begin_call("nap", "{}").await;
    assert_eq!(far.hear().await, format!("1 {}", large_call(100)), "it had begun");
    let cancel = far.hear().await;
    assert!(cancel.contains("notifications/cancelled") && cancel.contains("100"), "{cancel}");
    let next = far.hear().await;
    assert!(next.starts_with("4 "), "neither the others nor their cancels: {next}");
}

#[tokio::test(start_paused = true)]
async fn a_call_is_not_made_anew_by_an_owner_whose_store_is_another_or_that_is_asked_too_late() {
    // [ATTACH-6] [LEASE-9]
    for (store, pause) in
        [(Some("another".into()), 0), (kept(), 24 * 3600 + 1), (kept(), 24 * 3600 - 60)]
    {
        let (mut far, theirs) = Far::new(store.clone());
        let mut session = Session::shared(script([theirs, Found::Ours])).await;
        far.meet().await;
        let id = session.begin_call("echo", r#"{"n":1}"#).await;
        far.hear().await;
        sleep(Duration::from_secs(pause)).await;
        drop(far);
        let told = session.answer(&id).await;
        let text = told["result"]["content"][0]["text"].as_str().expect("words");
        let text: Value = serde_json::from_str(text).expect("JSON");
        if store == kept() && pause < 24 * 3600 {
            assert_eq!(text, json!({"n": 1}), "it is certain that it was not begun");
        } else {
            assert_eq!(text["error"]["guarantee"], "unknown", "{told}");
            let listed = session.good("list_tasks", "{}").await;
            assert_eq!(listed["tasks"], json!([]), "nothing was begun");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_call_became_is_found_although_it_could_not_be_made_now() {
    // [ATTACH-6]
    let inputs = Json::parse(r#"{"ms":1,"as":"before"}"#).expect("JSON");
    let request = |tool: &str| Request {
        key: Some("\u{1}window/1".into()),
        ..Request::new(tool, inputs.clone(), Scope::local())
    };
    for (tool, arguments) in [("echo", "[1]"), ("no_such_tool", "{}")] {
        let (mut far, theirs) = Far::new(kept());
        let before = vec![request("echo")];
        let mut session = Session::shared_after(script([theirs, Found::Ours]), before).await;
        far.meet().await;
        let id = session.begin_call(tool, arguments).await;
        far.hear().await;
        drop(far);
        let told = session.answer(&id).await;
        assert!(told.to_string().contains("before"), "{told}");
    }
}

/// A layer whose resources come and go.
#[derive(Debug, Default)]
struct Shelf(Notices);

#[async_trait]
impl Layer for Shelf {
    fn has_resources(&self) -> bool {
        true
    }

    fn notices(&self) -> Option<Notices> {
        Some(self.0.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_change_of_the_owner_the_client_reads_its_lists_again() {
    // [ATTACH-5]
    let (mut far, theirs) = Far::new(kept());
    let options = Options::new("0.0.0").wrap(Shelf::default());
    let mut session = Session::shared_with(script([theirs, Found::Ours]), options).await;
    far.meet().await;
    drop(far);
    let told = timeout(Duration::from_secs(60), session.line()).await.expect("a notice in time");
    let told = told.expect("a notice");
    assert!(told.contains("notifications/resources/list_changed"), "{told}");
    assert!(session.line_is_pending().await, "no other list changes");
}
