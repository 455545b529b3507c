//! What the demo shows.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::scripts::{BREW, ENDLESS, KEEP, LIST, LOOK, SPILL, Script, TITLE};
use super::session::Session;
use super::{Answer, Unmet, expect};

/// How long the first command waits for the browser.
const BROWSER_MS: u64 = 18_000;

/// How long calls wait that are to bring the end of a command.
const END_MS: u64 = 15_000;

/// How long calls wait that are to bring a correlation id.
const HANDLE_MS: u64 = 300;

/// How long a command is read on or given again on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(150);

/// Shows everything.
pub(super) async fn all(session: &mut Session) -> Result<(), Unmet> {
    session.install_extension().await?;
    session.transcript.heading("A real server, started over stdio by a real MCP client")?;
    session.start_server().await?;
    connect(session).await?;
    fast(session).await?;
    let slow = slow(session).await?;
    endless(session).await?;
    failure(session).await?;
    restart(session, &slow).await
}

/// Starts the browser. The first command waits for it, whatever it needs to start.
async fn connect(session: &mut Session) -> Result<(), Unmet> {
    let url = session.start_browser().await?;
    let show = session.transcript;
    let open = json!({
        "action": "navigate", "url": url, "timeout_ms": 60_000,
        "wait_for_browser_ms": BROWSER_MS, "wait_ms": BROWSER_MS,
    });
    let opened = settled(session, open).await?;
    let title = complete(&opened)?.get("title").cloned().unwrap_or_default();
    expect(title == TITLE, || format!("another page was opened: {}", opened.data))?;
    show.answer(opened.took, &format!("the browser came, and opened the page {title}"))?;
    let health = session.call("observe", json!({ "what": "health" })).await?;
    let is_ok = health.data.get("ok") == Some(&Value::Bool(true));
    expect(is_ok, || format!("no browser is connected: {}", health.data))?;
    show.answer(health.took, &format!("ok: {}", health.text("/message")?))
}

async fn fast(session: &Session) -> Result<(), Unmet> {
    let show = session.transcript;
    show.heading("1. A fast script is answered in the call itself")?;
    let call = settled(session, script(&LIST, END_MS)).await?;
    let teas = complete(&call)?;
    expect(*teas == json!(["Assam", "Darjeeling", "Oolong"]), || format!("other teas: {teas}"))?;
    show.answer(call.took, &format!("complete {teas}, engine {}", call.text("/engine")?))
}

/// Returns the command and its result.
async fn slow(session: &Session) -> Result<(String, Value), Unmet> {
    let show = session.transcript;
    show.heading("2. A slow script answers with a correlation id, and its result is read later")?;
    let call = session.call("interact", script(&BREW, HANDLE_MS)).await?;
    let id = handle(session, &call)?;
    let result = read(session, &id).await?;
    let pot = complete(&result)?.clone();
    expect(pot == "a pot of Oolong", || format!("another pot: {pot}"))?;
    show.answer(result.took, &format!("complete {pot}"))?;
    Ok((id, pot))
}

async fn endless(session: &Session) -> Result<(), Unmet> {
    let show = session.transcript;
    show.heading("3. A loop without end is stopped, and its tab lives on")?;
    let kept = settled(session, script(&KEEP, END_MS)).await?;
    let pot = complete(&kept)?;
    show.answer(kept.took, &format!("complete {pot}: it is in the window now"))?;
    let call = session.call("interact", script(&ENDLESS, HANDLE_MS)).await?;
    let id = handle(session, &call)?;
    let reason = json!({ "correlation_id": id, "reason": "seen enough" });
    let cancel = session.call("cancel", reason).await?;
    let acknowledged = cancel.data.get("acknowledged") == Some(&Value::Bool(true));
    expect(acknowledged, || format!("not acknowledged: {}", cancel.data))?;
    show.answer(cancel.took, &format!("{}, acknowledged", cancel.text("/status")?))?;
    let end = read(session, &id).await?;
    end.expect("/status", "cancelled")?;
    show.answer(end.took, "cancelled")?;
    let found = settled(session, script(&LOOK, END_MS)).await?;
    expect(complete(&found)? == pot, || format!("the window lost it: {}", found.data))?;
    show.answer(found.took, &format!("complete {pot}"))?;
    show.checked("the same tab, with what its window kept")
}

async fn failure(session: &Session) -> Result<(), Unmet> {
    let show = session.transcript;
    show.heading("4. A script that fails says what, where, and what to do")?;
    let call = settled(session, script(&SPILL, END_MS)).await?;
    call.expect("/status", "error")?;
    let code = call.text("/error_info/code")?;
    show.answer(call.took, &format!("{code}: {}", call.text("/error")?))?;
    let line = call.json("/error_info/details/line");
    expect(line == "3", || format!("it failed in another line: {}", call.data))?;
    show.detail(&format!("line {line}; hint: {}", call.text("/error_info/hint")?))?;

    show.heading("5. Failures are kept, too")?;
    let failed = session.call("observe", json!({ "what": "failed_commands" })).await?;
    let id = call.text("/correlation_id")?;
    failed.expect("/0/correlation_id", id)?;
    show.answer(failed.took, &format!("{id}: {}", failed.text("/0/error")?))?;
    show.detail(&format!("hint: {}", failed.text("/0/hint")?))
}

/// Starts the server again; the browser finds the new one by itself.
async fn restart(session: &mut Session, (id, result): &(String, Value)) -> Result<(), Unmet> {
    let show = session.transcript;
    show.heading("6. The server is started again, and nothing is forgotten")?;
    show.act("the client goes")?;
    let took = session.end_server().await?;
    show.answer(took, "the server ended")?;
    show.act("a new server on the same folders")?;
    session.start_server().await?;
    let kept = read(session, id).await?;
    expect(complete(&kept)? == result, || format!("another result: {}", kept.data))?;
    show.answer(kept.took, &format!("complete {result}"))?;
    show.checked("the result of the earlier server's command")?;
    let look = json!({
        "action": "execute_js", "script": LOOK.source,
        "wait_for_browser_ms": BROWSER_MS, "wait_ms": BROWSER_MS,
    });
    let found = settled(session, look).await?;
    let pot = complete(&found)?;
    expect(pot == "still warm", || format!("the window lost it: {}", found.data))?;
    show.answer(found.took, &format!("complete {pot}"))?;
    show.checked("the browser came to the new server by itself, with its tab as it was")
}

/// Returns the arguments of a call that runs a script.
fn script(script: &Script, wait_ms: u64) -> Value {
    json!({
        "action": "execute_js", "script": script.source,
        "timeout_ms": 60_000, "wait_ms": wait_ms,
    })
}

/// Gives a command, and reads on until it has ended; one that the browser surely did not take is given again.
async fn settled(session: &Session, arguments: Value) -> Result<Answer, Unmet> {
    let until = Instant::now() + PATIENCE;
    loop {
        let call = session.call("interact", arguments.clone()).await?;
        let end = read_on(session, call, until).await?;
        let is_untaken = end.data.pointer("/error_info/retryable") == Some(&Value::Bool(true));
        if !is_untaken || Instant::now() >= until {
            return Ok(end);
        }
        session.transcript.detail("the browser is slow and has not taken it: once more")?;
    }
}

/// Reads a command until it has ended.
async fn read(session: &Session, id: &str) -> Result<Answer, Unmet> {
    let until = Instant::now() + PATIENCE;
    let answer = look(session, id).await?;
    read_on(session, answer, until).await
}

/// Goes on reading a command that has not ended, by its correlation id.
async fn read_on(session: &Session, mut answer: Answer, until: Instant) -> Result<Answer, Unmet> {
    while is_live(&answer) && Instant::now() < until {
        session.transcript.detail("the browser is slow: the command goes on, and is read again")?;
        let id = answer.text("/correlation_id")?.to_owned();
        answer = look(session, &id).await?;
    }
    Ok(answer)
}

async fn look(session: &Session, id: &str) -> Result<Answer, Unmet> {
    let look = json!({ "what": "command_result", "correlation_id": id, "wait_ms": END_MS });
    session.call("observe", look).await
}

fn is_live(answer: &Answer) -> bool {
    let status = answer.data.get("status").and_then(Value::as_str);
    status.is_some_and(|status| ["pending", "queued"].contains(&status))
}

/// Goes on only if a command is complete, and returns its result.
fn complete(answer: &Answer) -> Result<&Value, Unmet> {
    answer.expect("/status", "complete")?;
    let result = answer.data.get("result");
    result.ok_or_else(|| Unmet(format!("there is no result in {}", answer.data)))
}

/// Checks that a call answered with a correlation id, and returns the id.
fn handle(session: &Session, call: &Answer) -> Result<String, Unmet> {
    let status = call.text("/status")?;
    // A browser that is busy has not taken it yet.
    expect(is_live(call), || format!("no handle: {}", call.data))?;
    let id = call.text("/correlation_id")?;
    session.transcript.answer(call.took, &format!("{status} {id}"))?;
    let next = format!("next: {} {}", call.text("/next/tool")?, call.json("/next/arguments"));
    session.transcript.detail(&next)?;
    Ok(id.to_owned())
}
