//! What the listener and the handshake let in, and what they answer to everything else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use raincheck_core::error::Kind;
use raincheck_core::lifecycle::State;
use raincheck_testkit::editor::{Editor, Socket, Who, ended};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::world::{PORT, SECOND, World, secret, who};

#[tokio::test(start_paused = true)]
async fn an_editor_that_proves_itself_is_told_what_the_server_can_do() {
    // [UNITY-2] [SEC-4]
    let world = World::new();
    let mut socket = world.socket().await;
    socket.say(who().hello()).await;
    let hello = socket.hear_of("hello").await.expect("a hello");
    for field in
        ["connection_id", "max_message_bytes", "editor_status_interval_ms", "server_version"]
    {
        assert!(!hello[field].is_null(), "{field}: {hello}");
    }
    let nonce = hello["nonce"].as_str().expect("a nonce");
    assert_eq!(hello["mac"], who().proof(&secret(), PORT, nonce));
    assert!(!hello.to_string().contains(secret().text()), "the secret never travels");
    socket.say(who().auth(&secret(), PORT, nonce)).await;
    let capability = socket.hear_of("capability").await.expect("tools");
    let tests =
        capability["tools"].as_array().expect("a list").iter().find(|it| it["name"] == "run_tests");
    let tests = tests.expect("run_tests");
    assert_eq!(tests["execution_mode"], "job");
    assert_eq!(tests["default_timeout_ms"], 300_000);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_proof_is_closed_with_4401_after_its_reason_and_never_served() {
    // [UNITY-2] [UNITY-3]
    let world = World::new();
    for mac in ["", "wrong", &secret().mac("client|x|y|1")] {
        let mut socket = world.socket().await;
        socket.say(who().hello()).await;
        socket.hear_of("hello").await.expect("a hello");
        let mut auth = who().auth(&secret(), PORT, "n");
        auth["mac"] = mac.into();
        socket.say(auth).await;
        let error = socket.hear().await.expect("the reason");
        assert_eq!(error["error"]["code"], "ERR_AUTH", "{error}");
        assert_eq!(socket.closed().await, Some(4401));
    }
    assert!(world.bridge.editors().is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_does_not_speak_in_time_is_closed_with_4408() {
    // [UNITY-3]
    let world = World::new();
    let begin = Instant::now();
    let mut silent = world.socket().await;
    assert_eq!(silent.closed().await, Some(4408));
    assert_eq!(begin.elapsed().as_secs(), 5);
    let begin = Instant::now();
    let mut half = world.socket().await;
    half.say(who().hello()).await;
    assert_eq!(half.closed().await, Some(4408));
    assert_eq!(begin.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn no_page_gets_a_socket_and_no_stranger_s_host() {
    // [SEC-2]
    let world = World::new();
    for origin in ["http://localhost:3000", "https://evil.example", "null", "chrome-extension://a"]
    {
        let refused =
            Socket::knock(world.io(), "/unity", PORT, &format!("Origin: {origin}\r\n")).await;
        assert_eq!(refused.expect_err("refused"), 403, "{origin}");
    }
    let refused = Socket::knock(world.io(), "/unity", PORT + 1, "").await;
    assert_eq!(refused.expect_err("refused"), 403, "another port");
    let refused = Socket::knock(world.io(), "/hub/plugin", PORT, "").await;
    assert_eq!(refused.expect_err("refused"), 404);
}

#[tokio::test(start_paused = true)]
async fn another_version_of_the_protocol_is_told_what_to_install() {
    let world = World::new();
    let mut socket = world.socket().await;
    let mut hello = who().hello();
    hello["protocol_version"] = 2.into();
    socket.say(hello).await;
    let error = socket.hear().await.expect("the reason");
    assert_eq!(error["error"]["code"], "ERR_PROTOCOL_VERSION");
    assert!(error["error"]["message"].as_str().expect("words").contains("unity-mcp install"));
    assert_eq!(socket.closed().await, Some(1008));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_heard_before_both_ends_have_proved_themselves() {
    // [UNITY-2]
    let world = World::new();
    for message in [
        json!({ "type": "editor_status", "state": "ready", "seq": 1 }).to_string(),
        json!({ "type": "chunk", "request_id": "r", "index": 0, "total": 2, "data": "" })
            .to_string(),
        json!({ "type": "kit_nonsense" }).to_string(),
        "{".to_owned(),
    ] {
        let mut socket = world.socket().await;
        socket.say(&message).await;
        assert_eq!(socket.closed().await, Some(1008), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_understood_is_answered_and_harms_nobody() {
    // [UNITY-5]
    let world = World::new();
    let mut editor = world.editor().await;
    editor.socket.say(json!({ "type": "kit_nonsense", "request_id": "k1" })).await;
    let error = editor.socket.hear_of("error").await.expect("an answer");
    assert_eq!(
        (&error["request_id"], &error["error"]["code"]),
        (&json!("k1"), &json!("ERR_UNKNOWN_COMMAND"))
    );
    for text in [
        "{",
        "[]",
        "null",
        "\"x\"",
        "{}",
        r#"{"type":5}"#,
        r#"{"type":"result"}"#,
        &"[".repeat(500),
    ] {
        editor.socket.say(text).await;
        let error = editor.socket.hear_of("error").await.expect("an answer");
        assert_eq!(error["error"]["code"], "ERR_INVALID_REQUEST", "{text}");
    }
    editor.state("kit_unheard_of").await;
    for request in ["", "ghost", "ghost.1"] {
        editor
            .socket
            .say(json!({ "type": "result", "request_id": request, "fence": 1, "status": "ok" }))
            .await;
        editor.socket.say(json!({ "type": "accepted", "request_id": request })).await;
        editor.socket.say(json!({ "type": "progress", "request_id": request, "seq": 1 })).await;
    }
    let id = world.menu("A").await;
    let call = editor.accept().await.expect("a call");
    editor.end(&call, "ok", json!(1)).await;
    assert_eq!(world.result(id).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_over_the_limit_is_closed_with_1009_and_the_editor_may_come_back() {
    // [UNITY-3] [UNITY-6]
    let world = World::new();
    let mut editor = world.editor().await;
    let huge =
        json!({ "type": "editor_status", "state": "ready", "pad": "x".repeat(2 * 1024 * 1024) });
    editor.socket.say(huge).await;
    assert_eq!(editor.socket.closed().await, Some(1009));
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    let call = editor.accept().await.expect("a call");
    editor.end(&call, "ok", json!(1)).await;
    assert_eq!(world.result(id).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_in_many_frames_with_a_ping_between_is_one_message() {
    // Case unity-fragmented-frames.
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    let call = editor.accept().await.expect("a call");
    let text = ended(&call, "ok", json!({ "text": "🎮 läuft" })).to_string();
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let opcode = if at == 0 { Data::Text } else { Data::Continue };
        let is_last = at + 1 == bytes.len();
        let frame = Frame::message(vec![*byte], OpCode::Data(opcode), is_last);
        editor.socket.send(Message::Frame(frame)).await;
        if at == 3 {
            editor.socket.send(Message::Ping("there?".into())).await;
        }
    }
    assert_eq!(world.result(id).await["text"], "🎮 läuft");
}

#[tokio::test(start_paused = true)]
async fn raw_control_characters_in_a_result_are_read_at_once() {
    // Case unity-raw-control-characters.
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    let call = editor.accept().await.expect("a call");
    let text = format!(
        "{{\"type\":\"result\",\"request_id\":{},\"status\":\"ok\",\"result\":{{\"m\":\"a\tb\u{1}\u{1b}[2J\"}}}}",
        call["request_id"]
    );
    editor.socket.say(text).await;
    assert_eq!(world.result(id).await["m"], "a\tb\u{1}\u{1b}[2J");
    let id = world.menu("B").await;
    let call = editor.accept().await.expect("a call");
    let broken = format!(
        "{{\"type\":\"result\",\"request_id\":{},\"status\":\"ok\",\"result\":{{",
        call["request_id"]
    );
    editor.socket.say(broken).await;
    assert_eq!(world.failure(id).await.kind.as_str(), "invalid_response");
}

#[tokio::test(start_paused = true)]
async fn silence_closes_the_connection_and_any_word_keeps_it() {
    // [UNITY-4]
    let world = World::new();
    let mut editor = world.editor().await;
    for _ in 0..6 {
        sleep(14 * SECOND).await;
        editor.state("ready").await;
    }
    let begin = Instant::now();
    assert_eq!(editor.socket.closed().await, Some(1008));
    assert_eq!(begin.elapsed().as_secs(), 15);
    sleep(SECOND).await;
    assert!(!world.bridge.editors()[0].is_connected);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_one_editor_keeps_no_other_waiting() {
    // [UNITY-9]
    let world = World::new();
    let mut flooding = world.editor_of(&Who::new("/projects/other", "Other")).await;
    let mut editor = world.editor().await;
    world.answer("select_editor", json!({ "instance": "Own" })).await;
    let mut floods = JoinSet::new();
    floods.spawn(async move {
        for seq in 0..20_000_u32 {
            let word = match seq % 4 {
                0 => json!({ "type": "editor_status", "state": "ready", "seq": seq }),
                1 => json!({ "type": "result", "request_id": "ghost", "status": "ok" }),
                2 => json!({ "type": "progress", "request_id": "ghost", "seq": seq }),
                _ => json!({ "type": "accepted", "request_id": "ghost" }),
            };
            if !flooding.socket.say(word).await {
                return None;
            }
        }
        Some(flooding)
    });
    for n in 0..20 {
        let id = world.menu(&n.to_string()).await;
        let call = editor.accept().await.expect("a call");
        editor.end(&call, "ok", json!(n)).await;
        assert_eq!(world.result(id).await, n);
    }
    let flooding = floods.join_next().await.expect("one").expect("no panic");
    assert!(flooding.is_some(), "what is understood is heard out");
}

#[tokio::test(start_paused = true)]
async fn the_server_says_goodbye_when_it_ends() {
    // [UNITY-3]
    let world = World::new();
    let mut editor = world.editor().await;
    world.close();
    assert!(editor.socket.hear_of("bye").await.is_some());
    assert_eq!(editor.socket.closed().await, Some(1001));
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_is_not_let_in_displaces_nobody() {
    // [UNITY-7]
    let world = World::new();
    let mut editor = world.editor().await;
    let mut stranger = world.socket().await;
    stranger.say(who().hello()).await;
    stranger.hear_of("hello").await.expect("a hello");
    assert_eq!(stranger.closed().await, Some(4408));
    let newer = Editor::connect(world.io(), PORT, &secret(), &who()).await.expect("let in");
    let reason = editor.socket.hear_of("error").await.expect("the reason");
    assert!(reason["error"]["message"].as_str().expect("words").contains("took its place"));
    assert_eq!(editor.socket.closed().await, Some(4409));
    assert_eq!(world.bridge.editors().len(), 1);
    drop(newer);
}

#[tokio::test(start_paused = true)]
async fn a_result_whose_pieces_cannot_be_read_ends_its_call() {
    // [UNITY-5]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    let call = editor.accept().await.expect("a call");
    let piece = json!({ "type": "chunk", "request_id": call["request_id"], "index": 0, "total": 2, "data": "*" });
    editor.socket.say(piece).await;
    assert_eq!(world.failure(id).await.kind, Kind::InvalidResponse);
}

#[tokio::test(start_paused = true)]
async fn a_report_that_cannot_be_read_ends_nothing_whatever_it_holds() {
    // [UNITY-5]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("A").await;
    let call = editor.accept().await.expect("a call");
    let request = call["request_id"].as_str().expect("a name");
    let report = format!(
        r#"{{"type":"progress","request_id":"{request}","current":NaN,"partial":{{"type":"result"}}}}"#
    );
    editor.socket.say(report).await;
    editor.end(&call, "ok", json!(1)).await;
    assert_eq!(world.result(id).await, 1);
}

#[tokio::test(start_paused = true)]
async fn an_editor_with_many_tools_proves_itself_in_pieces() {
    // [UNITY-6] [UNITY-2]
    let world = World::new();
    let about = "d".repeat(4000);
    let tools: Vec<_> =
        (0..400).map(|n| json!({ "name": format!("t{n}"), "description": about })).collect();
    let who = Who { tools: json!(tools), ..who() };
    for (name, is_let_in) in [("auth", true), ("other", false)] {
        let mut socket = world.socket().await;
        socket.say(who.hello()).await;
        let hello = socket.hear_of("hello").await.expect("a hello");
        let nonce = hello["nonce"].as_str().expect("a nonce");
        let auth = who.auth(&secret(), PORT, nonce).to_string();
        let pieces: Vec<&[u8]> = auth.as_bytes().chunks(512 * 1024).collect();
        for (index, piece) in pieces.iter().enumerate() {
            let data = STANDARD.encode(piece);
            let chunk = json!({ "type": "chunk", "request_id": name, "index": index, "total": pieces.len(), "data": data });
            socket.say(chunk).await;
        }
        assert_eq!(socket.hear_of("capability").await.is_some(), is_let_in, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_changes_all_the_time_is_followed_at_a_pace() {
    // [UNITY-9]
    let world = World::new();
    let mut editor = world.editor().await;
    let id = world.menu("0").await;
    editor.accept().await.expect("a call");
    let waits = world.menu("1").await;
    for _ in 0..200 {
        for state in ["compiling", "ready"] {
            editor.state(state).await;
            sleep(SECOND / 1000).await;
        }
    }
    let n_events = world.view(waits).await.record.n_events;
    assert!(n_events < 20, "400 changes in 0.4 s are {n_events} events");
    sleep(SECOND).await;
    assert_eq!(world.state(waits).await, State::Queued, "the last change counts");
    assert_eq!(world.state(id).await, State::Running);
}
