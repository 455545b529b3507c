//! An extension that is simulated, for a machine without Chromium.
//!
//! It speaks the wire as the real one does, to the same listener and with the same secret; instead of
//! running scripts it looks up what those of the demo come to.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use raincheck_browser::extension::{self, Places};
use raincheck_loopback::client::{Answer, Connection};
use raincheck_loopback::endpoint::Endpoint;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::scripts::{ALL, Play, TITLE};
use super::{Unmet, expect};

/// How long it waits before it looks for a server again.
const RETRY: Duration = Duration::from_millis(100);

/// The engine that its answers name.
pub(super) const ENGINE: &str = "simulated";

/// The extension while it lives. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Simulated {
    living: JoinSet<()>,
}

/// What a poll brings.
#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: String,
    correlation_id: String,
    attempt: Option<u32>,
    fence: Option<u64>,
    deadline_ms: Option<u64>,
    params: Option<Params>,
}

/// What a command asks for.
#[derive(Deserialize)]
struct Params {
    action: String,
    script: Option<String>,
    url: Option<String>,
}

/// What the one tab keeps, whichever server asks.
type Window = Arc<Mutex<Option<Value>>>;

impl Simulated {
    /// Begins to look for a server.
    pub(super) fn start(places: Places) -> Self {
        let mut living = JoinSet::new();
        living.spawn(live(places));
        Self { living }
    }

    /// Ends it.
    pub(super) async fn close(mut self) {
        self.living.shutdown().await;
    }
}

async fn live(places: Places) {
    let window = Window::default();
    loop {
        if let Some(Ok(endpoint)) = places.reach().await
            && let Err(error) = serve(&endpoint, &window).await
        {
            tracing::debug!(%error, "the simulated extension has no server");
        }
        sleep(RETRY).await;
    }
}

/// Polls a server until it goes.
async fn serve(endpoint: &Endpoint, window: &Window) -> Result<(), Unmet> {
    let mut polls = connect(endpoint).await?;
    let posts = Arc::new(Mutex::new(connect(endpoint).await?));
    let mut running = JoinSet::new();
    let mut stops: HashMap<String, CancellationToken> = HashMap::new();
    loop {
        let answer = polls.get("/pending-queries?wait_ms=25000").await?;
        let entries: Vec<Entry> = serde_json::from_slice(&well(&answer)?.body)?;
        for entry in entries {
            if entry.kind == "cancel" {
                if let Some(stop) = stops.get(&entry.correlation_id) {
                    stop.cancel();
                }
                continue;
            }
            let stop = CancellationToken::new();
            stops.insert(entry.correlation_id.clone(), stop.clone());
            let run = Run { entry, posts: Arc::clone(&posts), window: Arc::clone(window), stop };
            running.spawn(async move {
                if let Err(error) = run.run().await {
                    tracing::debug!(%error, "the simulated extension could not tell of a command");
                }
            });
        }
        while running.try_join_next().is_some() {}
    }
}

async fn connect(endpoint: &Endpoint) -> Result<Connection, Unmet> {
    let connection = Connection::open(endpoint).await?;
    Ok(connection.with_headers(&[
        ("X-Worker-Id", "simulated"),
        ("X-Boot-Id", "simulated-1"),
        ("X-Raincheck-Protocol", "1"),
        ("X-Raincheck-Revision", "2"),
        ("Origin", &extension::origin()),
        ("Sec-Fetch-Site", "none"),
    ])?)
}

fn well(answer: &Answer) -> Result<&Answer, Unmet> {
    expect(answer.status == 200, || format!("the server answered {}", answer.status))?;
    Ok(answer)
}

/// A command on its way.
struct Run {
    entry: Entry,
    posts: Arc<Mutex<Connection>>,
    window: Window,
    stop: CancellationToken,
}

impl Run {
    /// Takes the command on, and runs it only once the server has confirmed that.
    async fn run(self) -> Result<(), Unmet> {
        if !self.post("accepted", json!({})).await? {
            return Ok(());
        }
        let limit = Duration::from_millis(self.entry.deadline_ms.unwrap_or(10_000));
        let (status, more) = tokio::select! {
            () = self.stop.cancelled() => ("cancelled", json!({})),
            played = timeout(limit, self.play()) => played.unwrap_or_else(|_| {
                ("timeout", json!({ "error": "it was stopped at its limit" }))
            }),
        };
        self.post(status, more).await?;
        Ok(())
    }

    /// Posts an item, and returns whether it counts.
    async fn post(&self, status: &str, more: Value) -> Result<bool, Unmet> {
        let Entry { correlation_id, attempt, fence, .. } = &self.entry;
        let mut item = json!({
            "correlation_id": correlation_id, "attempt": attempt, "fence": fence,
            "status": status, "engine": ENGINE,
        });
        if let (Value::Object(item), Value::Object(more)) = (&mut item, more) {
            item.extend(more);
        }
        let answer = self.posts.lock().await.post("/query-result", item.to_string()).await?;
        let verdicts: Value = serde_json::from_slice(&well(&answer)?.body)?;
        Ok(verdicts.pointer("/results/0/accepted") == Some(&Value::Bool(true)))
    }

    async fn play(&self) -> (&'static str, Value) {
        let Some(Params { action, script, url }) = &self.entry.params else {
            return failed("it asks for nothing", &json!({}));
        };
        if let ("navigate", Some(url)) = (action.as_str(), url) {
            return done(&json!({ "url": url, "title": TITLE, "navigated": true }));
        }
        let script = script.as_deref().unwrap_or_default();
        match ALL.iter().find(|known| known.source == script).map(|known| known.play) {
            Some(Play::Give(after, value)) => {
                sleep(after).await;
                done(&read(value))
            }
            Some(Play::Keep(value)) => {
                let value = read(value);
                *self.window.lock().await = Some(value.clone());
                done(&value)
            }
            Some(Play::Kept) => done(&self.window.lock().await.clone().unwrap_or_default()),
            Some(Play::Endless) => std::future::pending().await,
            Some(Play::Throw { message, line, column }) => {
                failed(message, &json!({ "line": line, "column": column }))
            }
            None => failed("a simulated browser knows only what the demo asks", &json!({})),
        }
    }
}

fn read(value: &str) -> Value {
    serde_json::from_str(value).unwrap_or_default()
}

fn done(result: &Value) -> (&'static str, Value) {
    ("complete", json!({ "result": result }))
}

fn failed(message: &str, details: &Value) -> (&'static str, Value) {
    (
        "error",
        json!({ "error": { "code": "tool_failed", "message": message, "reason": "script_error", "details": details } }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_scripts_give_is_json() {
        for script in ALL {
            if let Play::Give(_, value) | Play::Keep(value) = script.play {
                assert_ne!(read(value), Value::Null, "{}", script.source);
            }
        }
    }
}
