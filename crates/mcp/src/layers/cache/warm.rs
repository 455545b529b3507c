//! Calls that are made ahead, so that what they answer is there before anybody asks [CACHE-8].

use std::sync::Arc;
use std::time::Duration;

use raincheck_cache::{BodyKind, Metadata, New, scan, scan_text};
use raincheck_core::content::Content;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::TaskId;
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Handle, Request, Submission, View};
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use crate::answer::Answer;

use super::finish::params;
use super::options::Warming;
use super::{CacheLayer, refusals, words};

/// How many calls may be made ahead.
const MAX_CALLS: usize = 16;

/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// The pause between two looks at a call that does not end.
const PAUSE: Duration = Duration::from_secs(1);

/// One call, and the handle of what it answered last.
struct Ahead {
    call: Warming,
    entry: Option<Uuid>,
    at: Instant,
}

/// What a call left running that nobody could end: no other is made meanwhile.
type Unended = Option<TaskId>;

/// Makes the calls, each at its time, one after the other.
pub(super) async fn run(layer: &CacheLayer, engine: &Handle) {
    let calls = layer.home().options.warm.iter().take(MAX_CALLS);
    let now = Instant::now();
    let mut ahead: Vec<Ahead> = calls
        .filter(|call| is_harmless(engine, call))
        .map(|call| Ahead { call: call.clone(), entry: None, at: now })
        .collect();
    if ahead.is_empty() || !engine.opened().await {
        return;
    }
    let mut unended = None;
    while let Some(place) = (0..ahead.len()).min_by_key(|place| ahead.get(*place).map(|it| it.at)) {
        let mut next = ahead.swap_remove(place);
        sleep_until(next.at).await;
        if let Err(error) = refresh(layer, engine, &mut next, &mut unended).await {
            tracing::warn!(tool = next.call.tool, %error, "a call could not be made ahead");
        }
        if let Some(pause) = next.call.every {
            next.at = Instant::now() + pause;
            ahead.push(next);
        }
    }
}

/// Tells whether a tool may be called unasked.
fn is_harmless(engine: &Handle, call: &Warming) -> bool {
    let is_harmless = |spec: ToolSpec| spec.trusted_hints().read_only || spec.is_idempotent;
    let may_be_called = engine.spec(&call.tool).is_some_and(is_harmless);
    if !may_be_called {
        tracing::warn!(
            tool = call.tool,
            "a tool that may change something, or is not there, is not called ahead"
        );
    }
    may_be_called
}

/// Makes one call and puts what it answers under its handle.
async fn refresh(
    layer: &CacheLayer,
    engine: &Handle,
    one: &mut Ahead,
    unended: &mut Unended,
) -> Result<(), Error> {
    let scope = layer.home().options.warm_scope.clone();
    if let Some(id) = *unended {
        match ended(engine, &scope, id).await {
            Err(error) if error.kind != Kind::NotFound => return Err(error),
            _ => *unended = None,
        }
    }
    let request = Request::new(one.call.tool.as_str(), one.call.inputs.clone(), scope.clone());
    let outcome = match engine.submit(request).await? {
        Submission::Answer(outcome) => outcome,
        Submission::Task(accepted) => {
            let id = accepted.record.id();
            *unended = Some(id);
            let mut view = engine.wait_accepted(accepted, PATIENCE).await?;
            if !view.record.state.is_terminal() {
                view = given_up(engine, &scope, id).await?;
            }
            *unended = None;
            let outcome = view.payload.and_then(|payload| payload.outcome.clone());
            outcome.ok_or_else(|| Error::new(Kind::Cancelled, "it left nothing"))?
        }
    };
    let contents = match outcome {
        Outcome::Succeeded(contents) => contents,
        Outcome::Failed(error) => return Err(error),
        Outcome::Cancelled => return Err(Error::new(Kind::Cancelled, "it was cancelled")),
    };
    one.entry = Some(store(layer, engine, one, &contents, scope).await?);
    Ok(())
}

/// Ends a call that takes too long. One that cannot be told to stop is waited for: what it answers in the
/// end counts.
async fn given_up(engine: &Handle, scope: &Scope, id: TaskId) -> Result<View, Error> {
    tracing::warn!(task = %id, "a call that is made ahead takes too long, and is cancelled");
    let reason: Arc<str> = "a call that is made ahead takes too long".into();
    if let Err(error) = engine.cancel(scope, id, Some(reason)).await {
        tracing::warn!(task = %id, %error, "it goes on, and no other is made until it ends");
    }
    ended(engine, scope, id).await
}

/// Waits for the end of a call.
async fn ended(engine: &Handle, scope: &Scope, id: TaskId) -> Result<View, Error> {
    loop {
        let view = engine.wait_end(scope, id, PATIENCE).await?;
        if view.record.state.is_terminal() {
            return Ok(view);
        }
        // An engine that ends waits for nothing.
        sleep(PAUSE).await;
    }
}

async fn store(
    layer: &CacheLayer,
    engine: &Handle,
    one: &Ahead,
    contents: &[Content],
    scope: Scope,
) -> Result<Uuid, Error> {
    let whose = layer.speaker();
    let text = words::of(whose, Answer::result(contents)).into_text();
    let (tool, entry) = (one.call.tool.clone(), one.entry);
    let params = params(engine, &tool, &one.call.inputs);
    // Without what is sensitive or long, two calls look alike.
    let is_whole = *params == *one.call.inputs.get();
    let is_sensitive = engine.spec(&tool).is_some_and(|spec| !spec.sensitive.is_empty());
    layer
        .home()
        .work(engine, move |cache, now| {
            let body = text.into_bytes();
            // What a server before this one was answered is refreshed, too.
            let known = || {
                let all = cache.list(now, scope.as_str());
                let is_it =
                    |one: &&Metadata| one.is_ahead && *one.tool == *tool && *one.params == *params;
                all.iter().find(is_it).filter(|_| is_whole && !is_sensitive).map(|one| one.id)
            };
            if let Some(id) = entry.or_else(known)
                && let Ok(receipt) = cache.refresh(now, scope.as_str(), id, body.clone())
            {
                return Ok(receipt.id());
            }
            let (kind, index) = match scan(&body) {
                Ok(index) => (BodyKind::Json, Some(index)),
                Err(_) => (BodyKind::Text, scan_text(&body).ok()),
            };
            let mut new = New::answer(tool, params, body, kind);
            (new.index, new.is_sensitive, new.mark) = (index, is_sensitive, Some(whose.to_owned()));
            new.is_ahead = true;
            let stored = cache.insert(now, scope.as_str(), new);
            stored.map(|receipt| receipt.id()).map_err(|error| refusals::store(&error))
        })
        .await
}
