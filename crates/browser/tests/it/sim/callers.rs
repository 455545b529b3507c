//! Callers of a simulated server: they submit and cancel after the plan, and read all the time.

use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::Kind;
use raincheck_core::ids::Spelling;
use raincheck_core::scope::Scope;
use raincheck_runtime::{Handle, Request, Submission};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::history::{Log, lock, now};
use super::plan::{Call, Script};
use crate::world::request;

/// How long a command has to stop before what it left is ended.
const STOPPING: Duration = Duration::from_secs(10);

/// The pause between two reads of everything.
const PAUSE: Duration = Duration::from_millis(150);

/// Does what the plan says from now on.
pub(crate) async fn call(handle: Handle, log: Log, calls: Arc<Vec<(Duration, Call)>>) {
    let begun = now();
    let mut n_submits = 0;
    let mut running = JoinSet::new();
    for (at, call) in calls.iter() {
        let number = n_submits;
        n_submits += usize::from(matches!(call, Call::Submit(_)));
        let Some(left) = at.checked_sub(now()) else { continue };
        if *at < begun {
            continue;
        }
        sleep(left).await;
        let (handle, log) = (handle.clone(), log.clone());
        match *call {
            Call::Submit(script) => running.spawn(submit(handle, log, number, script)),
            Call::Cancel(number) => running.spawn(cancel(handle, log, number)),
            Call::End(number) => running.spawn(end(handle, log, number)),
        };
    }
    while let Some(ended) = running.join_next().await {
        ended.expect("no panic");
    }
    lock(&log).is_all_called = true;
}

async fn submit(handle: Handle, log: Log, number: usize, script: Script) {
    let Script { tab, millis, limit, ready, throws, awaits } = script;
    let page = json!({ "n": number, "ms": millis, "throws": throws, "awaits": awaits }).to_string();
    let inputs = json!({ "action": "execute_js", "tab_id": tab, "script": page });
    let request = Request { max_runtime: Some(limit), ready: Some(ready), ..request(&inputs) };
    match handle.submit(request).await {
        Ok(Submission::Task(accepted)) => {
            lock(&log).submitted(now(), number, tab, &accepted.record);
        }
        Ok(Submission::Answer(_)) => lock(&log).complain("a script is a task".to_owned()),
        Err(error) => lock(&log).note(now(), &format!("command {number} is refused: {error}")),
    }
}

async fn cancel(handle: Handle, log: Log, number: usize) {
    let Some(id) = lock(&log).id_of(number) else { return };
    match handle.cancel(&Scope::local(), id, None).await {
        Ok(cancelled) => {
            lock(&log).cancelled(now(), number, cancelled.acknowledged, &cancelled.record);
        }
        Err(error) if error.kind == Kind::StorageUnavailable => {
            lock(&log).note(now(), &format!("a cancel of command {number} is refused: {error}"));
        }
        Err(error) => lock(&log).complain(format!("no cancel of command {number}: {error}")),
    }
}

/// Cancels a command for good: once it has ended, what it left at work is ended as well [BROWSER-23].
async fn end(handle: Handle, log: Log, number: usize) {
    let Some(id) = lock(&log).id_of(number) else { return };
    if handle.cancel(&Scope::local(), id, None).await.is_err() {
        return;
    }
    let view = handle.wait_end(&Scope::local(), id, STOPPING).await;
    if !view.is_ok_and(|view| view.record.state.is_terminal()) {
        return;
    }
    let of = id.spell(Spelling::Correlation);
    let inputs = Json::of(&json!({ "what": "end_script", "of": of })).expect("JSON");
    let request = Request::new("end_script", inputs, Scope::local());
    match handle.submit(request).await {
        Ok(Submission::Task(accepted)) => lock(&log).ends_for_good(now(), &of, &accepted.record),
        Ok(Submission::Answer(_)) => lock(&log).complain("to end a script is a task".to_owned()),
        Err(error) => lock(&log).note(now(), &format!("the end of {of} is refused: {error}")),
    }
}

/// Reads every command again and again, until all have ended after everything was called.
pub(crate) async fn read(handle: Handle, log: Log) {
    loop {
        sleep(PAUSE).await;
        let (ids, is_all_called) = {
            let log = lock(&log);
            (log.ids(), log.is_all_called)
        };
        let mut is_over = is_all_called;
        for (number, id) in ids {
            match handle.view(&Scope::local(), id).await {
                Ok(view) => {
                    is_over &= view.record.state.is_terminal();
                    lock(&log).read(now(), number, view);
                }
                Err(error) => {
                    lock(&log).complain(format!("command {number} cannot be read: {error}"));
                }
            }
        }
        let mut log = lock(&log);
        log.is_over = is_over && log.is_settled();
    }
}
