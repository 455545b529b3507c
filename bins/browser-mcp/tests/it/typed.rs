//! What is typed is in no file once its command has ended.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::fake::Fake;
use crate::server::{Server, is_live};
use crate::{command, folder};

pub(crate) const SECRET: &str = "correct-horse-battery";

/// Returns the files below a folder that hold the secret.
pub(crate) fn holding(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("readable").flatten() {
            let path = entry.path();
            // What goes away meanwhile holds nothing.
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && holds(&path) {
                found
                    .push(path.strip_prefix(folder).expect("below").to_string_lossy().into_owned());
            }
        }
    }
    found
}

fn holds(path: &Path) -> bool {
    let bytes = fs::read(path).unwrap_or_default();
    bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
}

async fn server(folder: &Path) -> Server {
    let mut serve = command(folder, &["serve", "--log-level", "info"]);
    serve.args(["--accept-ms", "60000", "--reconnect-grace-s", "120", "--result-ttl-s", "1"]);
    let mut server = Server::of(serve).await;
    server.until_logged("listening for the extension").await;
    server
}

fn typing() -> [Value; 4] {
    let one = json!({ "action": "fill", "selector": "#pw", "text": SECRET });
    let form = json!({ "action": "fill_form", "fields": [{ "selector": "#pw", "value": SECRET }] });
    [
        one.clone(),
        form,
        json!({ "action": "batch", "steps": [{ "action": "press", "key": "a" }, one] }),
        // What is no key may be all of it.
        json!({ "action": "press", "key": SECRET }),
    ]
}

/// Waits until no file of a folder holds the secret.
async fn until_gone(folder: &Path, server: &Server) {
    for _ in 0..100_000 {
        if holding(folder).is_empty() {
            return;
        }
        // As long as a call of a server takes.
        server.call("observe", json!({ "what": "health" })).await;
    }
    panic!("it is still there: {:?}", holding(folder));
}

#[tokio::test]
async fn what_was_typed_is_in_no_file_after_the_end_nor_after_the_expiry() {
    // [BROWSER-24]
    let folder = folder();
    let server = server(folder.path()).await;
    let mut fake = Fake::connect(&folder.path().join("run")).await;
    let mut ids = Vec::new();
    for mut call in typing() {
        call["wait_ms"] = json!(30_000);
        call["idempotency_key"] = json!(format!("once-{}", ids.len()));
        let play = async {
            let taken = fake.accept().await;
            assert!(taken["params"].to_string().contains(SECRET), "the browser is told: {taken}");
            let held = holding(folder.path());
            assert!(held.iter().all(|path| path.contains("/typed/")), "{held:?}");
            assert_eq!(held.len(), 1, "one that lives outlives the server: {held:?}");
            let done = json!({ "target": "#pw", "value": "••••" });
            fake.complete(&taken, done).await;
        };
        let (answer, ()) = tokio::join!(server.call("interact", call.clone()), play);
        assert_eq!(answer["status"], "complete", "{answer}");
        // The key stands for what was given, not for what is kept of it.
        let again = server.call("interact", call.clone()).await;
        let is_same = again["correlation_id"] == answer["correlation_id"];
        assert!(is_same || again["status"] == "expired", "{again}");
        ids.push(answer["correlation_id"].clone());
    }
    until_gone(folder.path(), &server).await;
    for id in ids {
        let read = json!({ "what": "command_result", "correlation_id": id });
        let mut status = json!("complete");
        for _ in 0..100_000 {
            status = server.call("observe", read.clone()).await["status"].take();
            if status != "complete" {
                break;
            }
        }
        assert_eq!(status, "expired");
    }
    assert_eq!(holding(folder.path()), Vec::<String>::new());
    server.close().await;
    assert_eq!(holding(folder.path()), Vec::<String>::new());
}

#[tokio::test]
async fn what_stands_in_line_outlives_the_server_with_what_it_types() {
    // [BROWSER-24] [DUR-3]
    let folder = folder();
    let first = server(folder.path()).await;
    let [mut call, ..] = typing();
    call["wait_ms"] = json!(0);
    let open = first.call("interact", call.clone()).await;
    let dropped = first.call("interact", call).await;
    assert!(is_live(&open), "{open}");
    let cancel = json!({ "correlation_id": dropped["correlation_id"] });
    assert_eq!(first.call("cancel", cancel).await["status"], "cancelled");
    first.kill().await;
    let second = server(folder.path()).await;
    let mut fake = Fake::connect(&folder.path().join("run")).await;
    let taken = fake.accept().await;
    assert_eq!(taken["correlation_id"], open["correlation_id"], "{taken}");
    assert_eq!(taken["params"]["text"], SECRET, "{taken}");
    fake.complete(&taken, json!({})).await;
    until_gone(folder.path(), &second).await;
    second.close().await;
}

#[tokio::test]
async fn the_handle_of_a_large_answer_does_not_name_what_was_typed() {
    // [BROWSER-24]
    let folder = folder();
    let server = server(folder.path()).await;
    let mut fake = Fake::connect(&folder.path().join("run")).await;
    let [.., mut call] = typing();
    call["wait_ms"] = json!(30_000);
    let play = async {
        let taken = fake.accept().await;
        fake.complete(&taken, json!("x".repeat(1 << 20))).await;
    };
    let (answer, ()) = tokio::join!(server.call("interact", call), play);
    assert!(answer.to_string().len() < 1 << 19, "a handle stands for it");
    until_gone(folder.path(), &server).await;
    server.close().await;
    assert_eq!(holding(folder.path()), Vec::<String>::new());
}
