//! Faults that are planted to see whether they are noticed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The extension begins before the server confirmed.
    RunsBeforeConfirmation,
    /// The extension begins although the server refused.
    RunsWhatWasRefused,
    /// The extension runs a command again that is delivered again.
    RunsDuplicates,
    /// The extension knows nothing any more after its worker died.
    ForgetsItsJournal,
    /// The server confirms what it has not committed.
    ConfirmsBeforeCommit,
    /// A tab has two places.
    TwoInATab,
    /// A read shows what was true before.
    ShowsThePast,
    /// No deadline fires.
    DeadlinesSleep,
    /// The extension says that a script has ended whose page it leaves as it is.
    LeavesThePage,
}

/// Every fault, and what has to be said of it.
pub(crate) const ALL: &[(Fault, &str)] = &[
    (Fault::RunsBeforeConfirmation, "ran although"),
    (Fault::RunsWhatWasRefused, "ran although"),
    (Fault::RunsDuplicates, "ran 2 times"),
    (Fault::ForgetsItsJournal, "is lost"),
    (Fault::ConfirmsBeforeCommit, "was confirmed"),
    (Fault::TwoInATab, "at once"),
    (Fault::ShowsThePast, "went back"),
    (Fault::DeadlinesSleep, "did not end"),
    (Fault::LeavesThePage, "was said to be over"),
];

/// How much later what was confirmed is looked at.
const LAG: Duration = Duration::from_millis(400);

/// Confirms every post at once, and hands it on later, unless the server is killed before.
pub(crate) fn confirm_early(routes: Router) -> Router {
    let late = Arc::new(Mutex::new(JoinSet::new()));
    routes.layer(from_fn(move |request: Request, next: Next| {
        let late = Arc::clone(&late);
        async move {
            if request.uri().path() != "/query-result" {
                return next.run(request).await;
            }
            let (head, body) = request.into_parts();
            let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
            let items: Vec<Value> = serde_json::from_slice(&body).unwrap_or_default();
            let confirm = |item: &Value| {
                json!({ "correlation_id": item["correlation_id"], "accepted": true })
            };
            let results: Vec<Value> = items.iter().map(confirm).collect();
            late.lock().expect("a set").spawn(async move {
                tokio::time::sleep(LAG).await;
                next.run(Request::from_parts(head, Body::from(body))).await;
            });
            Response::new(Body::from(json!({ "results": results }).to_string()))
        }
    }))
}
