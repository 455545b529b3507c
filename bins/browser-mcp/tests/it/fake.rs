//! The browser's end of the wire, one step at a time.

use std::path::Path;

use raincheck_browser::extension;
use raincheck_loopback::client::Connection;
use raincheck_loopback::endpoint;
use serde_json::{Value, json};

/// An extension that does what a test tells it.
pub(crate) struct Fake(Connection);

impl Fake {
    /// Finds the server of a runtime folder, which listens already.
    pub(crate) async fn connect(runtime: &Path) -> Self {
        Self::of_revision(runtime, "2").await
    }

    /// As [`connect`](Self::connect), as an extension of another revision.
    pub(crate) async fn of_revision(runtime: &Path, revision: &str) -> Self {
        let path = runtime.join("browser/endpoint.json");
        let endpoint = endpoint::read(&path).expect("readable").expect("a server listens");
        let connection = Connection::open(&endpoint).await.expect("the server of the file");
        let headers = [
            ("X-Worker-Id", "fake"),
            ("X-Boot-Id", "boot-1"),
            ("X-Raincheck-Protocol", "1"),
            ("X-Raincheck-Revision", revision),
            ("Origin", &extension::origin()),
            ("Sec-Fetch-Site", "none"),
        ];
        Self(connection.with_headers(&headers).expect("headers"))
    }

    /// Waits for the next command.
    pub(crate) async fn take(&mut self) -> Value {
        let answer = self.0.get("/pending-queries?wait_ms=20000").await.expect("an answer");
        assert_eq!(answer.status, 200);
        let entries: Vec<Value> = serde_json::from_slice(&answer.body).expect("entries");
        let command = entries.into_iter().next().expect("a command comes");
        assert_eq!(command["type"], "browser_action", "{command}");
        command
    }

    /// Posts what became of a command, and returns the verdict.
    pub(crate) async fn post(&mut self, command: &Value, status: &str, more: Value) -> Value {
        let mut item = json!({
            "correlation_id": command["correlation_id"], "attempt": command["attempt"],
            "fence": command["fence"], "status": status,
        });
        if let (Value::Object(item), Value::Object(more)) = (&mut item, more) {
            item.extend(more);
        }
        let answer = self.0.post("/query-result", item.to_string()).await.expect("an answer");
        assert_eq!(answer.status, 200);
        let mut verdicts: Value = serde_json::from_slice(&answer.body).expect("verdicts");
        verdicts["results"][0].take()
    }

    /// Takes the next command on.
    pub(crate) async fn accept(&mut self) -> Value {
        let command = self.take().await;
        let verdict = self.post(&command, "accepted", json!({})).await;
        assert_eq!(verdict["accepted"], true, "{verdict}");
        command
    }

    /// Ends a command well.
    pub(crate) async fn complete(&mut self, command: &Value, result: Value) {
        let verdict = self.post(command, "complete", json!({ "result": result })).await;
        assert_eq!(verdict["accepted"], true, "{verdict}");
    }
}
