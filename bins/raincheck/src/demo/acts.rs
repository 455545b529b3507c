//! What the demo shows.

mod large;
mod recovery;

use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;

use super::programs::picture;
use super::session::Session;
use super::{Answer, Unmet, expect};

/// How many frames are rendered.
const N_FRAMES: u64 = 8;

/// The pause before a task that has not begun is asked for again.
const PAUSE: Duration = Duration::from_millis(50);

/// Shows everything.
pub(super) async fn all(session: &mut Session) -> Result<(), Unmet> {
    long_call(session).await?;
    failure(session).await?;
    recovery::show(session).await?;
    cancel(session).await?;
    large::show(session).await
}

async fn long_call(session: &Session) -> Result<(), Unmet> {
    let show = session.transcript;
    show.heading("1. A long call answers with a task id, and the work goes on")?;
    let call = session.call("render", json!({ "frames": N_FRAMES })).await?;
    let task = task_id(session, &call)?;

    let status = running(session, &task).await?;
    show.answer(status.took, &format!("running, {}", progress(&status)))?;

    let wait = json!({ "task_id": task, "wait_s": 20 });
    let result = session.call("get_task_result", wait).await?;
    result.expect("/state", "succeeded")?;
    let frames = result.data.pointer("/result/frames").and_then(Value::as_u64);
    expect(frames == Some(N_FRAMES), || format!("another result came: {}", result.data))?;
    show.answer(result.took, &format!("succeeded {}", result.json("/result")))?;
    artifact(session, &result, N_FRAMES)?;

    let logs = session.call("tail_task_logs", json!({ "task_id": task, "limit": 3 })).await?;
    let first = logs.text("/lines/0/message")?;
    expect(first == format!("frame 1 of {N_FRAMES} rendered"), || format!("another log: {first}"))?;
    show.answer(logs.took, "the first lines of its log")?;
    lines(session, &logs)
}

/// Checks that the artifact is the picture, byte for byte.
fn artifact(session: &Session, result: &Answer, n_frames: u64) -> Result<(), Unmet> {
    let want = picture(n_frames);
    let sha256: String =
        Sha256::digest(want.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let size = result.data.pointer("/artifacts/0/size_bytes").and_then(Value::as_u64);
    let name = result.text("/artifacts/0/name")?;
    let is_same = size == Some(want.len() as u64) && result.text("/artifacts/0/sha256")? == sha256;
    expect(is_same && name == "picture.svg", || format!("another artifact: {}", result.data))?;
    session.transcript.checked(&format!("artifact {name}, {} bytes, sha256 {sha256}", want.len()))
}

async fn failure(session: &Session) -> Result<(), Unmet> {
    let show = session.transcript;
    show.heading("2. A failure says what happened and what to do")?;
    let call = session.call("bake", json!({ "scene": "house" })).await?;
    expect(call.is_error, || format!("it did not fail: {}", call.data))?;
    let code = call.text("/error/code")?;
    expect(code == "tool_failed", || format!("another failure: {code}"))?;
    show.answer(call.took, &format!("{code}: {}", call.text("/error/message")?))?;
    let exit = call.data.pointer("/error/details/exit_code").and_then(Value::as_u64);
    expect(exit == Some(3), || format!("another exit code: {}", call.data))?;
    let tail = call.json("/error/details/stderr_tail");
    expect(tail.contains("no such texture"), || format!("its words are missing: {tail}"))?;
    show.detail(&format!("exit code 3, stderr {tail}"))?;
    show.detail(&format!("hint: {}", call.text("/error/hint")?))
}

async fn cancel(session: &Session) -> Result<(), Unmet> {
    let show = session.transcript;
    show.heading("4. A run without end is cancelled")?;
    let call = session.call("watch", json!({})).await?;
    let task = task_id(session, &call)?;
    let reason = json!({ "task_id": task, "reason": "seen enough" });
    let cancelled = session.call("cancel_task", reason).await?;
    let acknowledged = cancelled.data.get("acknowledged").and_then(Value::as_bool);
    expect(acknowledged == Some(true), || format!("not acknowledged: {}", cancelled.data))?;
    show.answer(cancelled.took, &format!("{}, acknowledged", cancelled.text("/state")?))?;
    let wait = json!({ "task_id": task, "wait_s": 20 });
    let result = session.call("get_task_result", wait).await?;
    result.expect("/state", "cancelled")?;
    show.answer(result.took, "cancelled: the program and everything it started are gone")
}

/// Asks where a task stands until it runs: on a busy machine its program takes a moment to begin.
async fn running(session: &Session, task: &str) -> Result<Answer, Unmet> {
    loop {
        let status = session.call("get_task_status", json!({ "task_id": task })).await?;
        if !["queued", "scheduled"].contains(&status.text("/state")?) {
            status.expect("/state", "running")?;
            return Ok(status);
        }
        sleep(PAUSE).await;
    }
}

/// Checks that a call answered with a task id, and returns the task's id.
fn task_id(session: &Session, call: &Answer) -> Result<String, Unmet> {
    let status = call.text("/status")?;
    expect(status == "running" && !call.is_error, || format!("no task id: {}", call.data))?;
    let task = call.text("/task_id")?.to_owned();
    session.transcript.answer(call.took, &format!("task {task}, {}", progress(call)))?;
    let next = call.text("/next/tool")?;
    session.transcript.detail(&format!("next: {next} {}", call.json("/next/arguments")))?;
    Ok(task)
}

fn progress(answer: &Answer) -> String {
    match answer.data.get("progress") {
        Some(progress) => format!("progress {progress}"),
        None => "no progress yet".into(),
    }
}

fn lines(session: &Session, logs: &Answer) -> Result<(), Unmet> {
    let lines = logs.data.get("lines").and_then(Value::as_array);
    for line in lines.into_iter().flatten() {
        let word = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default();
        session.transcript.detail(&format!("{} {}", word("stream"), word("message")))?;
    }
    Ok(())
}
