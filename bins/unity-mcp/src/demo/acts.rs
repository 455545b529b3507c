//! What the demo shows.

use serde_json::{Value, json};

use super::play::{N_OBJECTS, N_TESTS};
use super::session::Session;
use super::{Answer, Unmet, expect};

/// How long calls wait, in seconds, that are to bring the end of an operation.
const END_S: u32 = 20;

/// Shows everything.
pub(super) async fn all(session: &mut Session) -> Result<(), Unmet> {
    session.transcript.heading("A fresh project, with the Unity package")?;
    session.install()?;
    session.transcript.heading("A real server, started over stdio by a real MCP client")?;
    session.start_server().await?;
    session.transcript.heading("A SIMULATED editor, over a real socket: no Unity runs here")?;
    let waiting = connect(session).await?;
    let tests = tests(session, &waiting).await?;
    large(session).await?;
    cancelled(session).await?;
    restart(session, &tests).await
}

/// Makes a call before the editor is there, and then starts the editor.
async fn connect(session: &mut Session) -> Result<String, Unmet> {
    let show = session.transcript;
    let early = json!({ "action": "get_active", "timeout": 0.2 });
    let early = session.call("manage_scene", early).await?;
    early.expect("/status", "timeout")?;
    early.expect("/queue/waiting_reason", "disconnected")?;
    let id = early.text("/log_id")?.to_owned();
    show.answer(early.took, &format!("timeout, log_id {id}: the call waits for an editor"))?;
    show.act("the editor starts, and finds the server by the file in its project")?;
    session.start_editor();
    let scene = read(session, &id).await?;
    let name = complete(&scene)?.get("name").cloned().unwrap_or_default();
    expect(name == "Level", || format!("another scene: {}", scene.data))?;
    show.answer(scene.took, &format!("completed: the active scene is {name}"))?;
    Ok(id)
}

/// Runs the tests, looks at them meanwhile, and reads how they ended. Returns the log id and the result.
async fn tests(session: &Session, earlier: &str) -> Result<(String, Value), Unmet> {
    let show = session.transcript;
    show.heading("1. 42 tests: the call answers after a second, the run goes on")?;
    let begun = json!({ "mode": "EditMode", "timeout": 1 });
    let begun = session.call("run_tests", begun).await?;
    begun.expect("/status", "timeout")?;
    let id = begun.text("/log_id")?.to_owned();
    expect(id != earlier, || "the run has the id of another operation".into())?;
    show.answer(begun.took, &format!("timeout, log_id {id}"))?;
    show.detail(&format!("{}; {}", counts(&begun)?, begun.text("/message")?))?;

    show.heading("2. Meanwhile: what is done by now, and what became of the Fighter tests")?;
    let look = session.call("get_operation_result", json!({ "log_id": id })).await?;
    look.expect("/status", "running")?;
    show.answer(look.took, &format!("running: {}", counts(&look)?))?;
    for test in fighters(look.data.pointer("/partial_result/completed_tests")) {
        show.detail(&test)?;
    }

    show.heading("3. The editor reloads its code in the middle; the run goes on over it")?;
    let ended = read(session, &id).await?;
    let result = complete(&ended)?.clone();
    let number = |name: &str| result.get(name).and_then(Value::as_u64).unwrap_or_default();
    let n_tests = u64::try_from(N_TESTS)?;
    expect(number("completed_count") == n_tests, || format!("not all tests ran: {result}"))?;
    expect(number("times_begun") == 1, || format!("the run was begun again: {result}"))?;
    let (passed, failed) = (number("passed"), number("failed"));
    show.answer(ended.took, &format!("completed: {passed} passed, {failed} failed"))?;
    for test in fighters(result.get("completed_tests")) {
        show.detail(&test)?;
    }
    let n_reloads = session.editor.as_ref().map_or(0, |editor| editor.n_reloads());
    expect(n_reloads == 1, || format!("the editor reloaded {n_reloads} times"))?;
    show.checked("one reload of the editor, one run of the tests")?;
    Ok((id, result))
}

/// Reads a scene that is too large to send, and filters it.
async fn large(session: &Session) -> Result<(), Unmet> {
    let show = session.transcript;
    show.heading("4. A scene too large to send is kept, and filtered with jq")?;
    let scene = json!({ "action": "get_hierarchy", "timeout": END_S });
    let scene = session.call("manage_scene", scene).await?;
    let handle = scene.text("/cache_id")?.to_owned();
    let size = scene.json("/data/size_kb");
    show.answer(scene.took, &format!("cached: {size} KB under {handle}"))?;
    let filter = "[.result.roots[] | select(.tag == \"Trolley\") | .name] | length";
    let filter = json!({ "cache_id": handle, "action": "filter", "jq_filter": filter });
    let filtered = session.call("fetch_cached_response", filter).await?;
    let n_found = filtered.data.pointer("/data/outputs/0").and_then(Value::as_u64);
    let n_wanted = u64::try_from(N_OBJECTS / 100)?;
    expect(n_found == Some(n_wanted), || format!("another number: {}", filtered.data))?;
    show.answer(filtered.took, &format!("{n_wanted} of {N_OBJECTS} objects are trolleys"))
}

/// Begins the tests again, and ends them early.
async fn cancelled(session: &Session) -> Result<(), Unmet> {
    let show = session.transcript;
    show.heading("5. A run is cancelled")?;
    let begun = json!({ "mode": "EditMode", "timeout": 0.4 });
    let begun = session.call("run_tests", begun).await?;
    begun.expect("/status", "timeout")?;
    let id = begun.text("/log_id")?.to_owned();
    show.answer(begun.took, &format!("timeout, log_id {id}"))?;
    let asked = json!({ "log_id": id, "reason": "one test is enough" });
    let asked = session.call("cancel_operation", asked).await?;
    asked.expect("/status", "cancel_requested")?;
    show.answer(asked.took, "cancel_requested")?;
    let ended = read(session, &id).await?;
    ended.expect("/state", "cancelled")?;
    let said = ended.text("/error")?;
    expect(!said.contains("may still run"), || format!("the editor did not confirm it: {said}"))?;
    show.answer(ended.took, &format!("{}: {said}", ended.text("/state")?))?;
    show.checked("the editor said that the run has stopped")
}

/// Starts the server again; the editor finds the new one by itself.
async fn restart(session: &mut Session, (id, result): &(String, Value)) -> Result<(), Unmet> {
    let show = session.transcript;
    show.heading("6. The server is started again, and nothing is forgotten")?;
    show.act("the client goes")?;
    let took = session.end_server().await?;
    show.answer(took, "the server ended")?;
    show.act("a new server on the same project")?;
    session.start_server().await?;
    let kept = read(session, id).await?;
    expect(complete(&kept)? == result, || format!("another result: {}", kept.data))?;
    show.answer(kept.took, &format!("completed: {}", kept.json("/result/passed") + " passed"))?;
    show.checked("the result of the earlier server's run")?;
    let scene = json!({ "action": "get_active", "timeout": END_S });
    let scene = session.call("manage_scene", scene).await?;
    let name = complete(&scene)?.get("name").cloned().unwrap_or_default();
    show.answer(scene.took, &format!("completed: the active scene is {name}"))?;
    show.checked("the editor came to the new server by itself")
}

/// Reads an operation once it has ended.
async fn read(session: &Session, id: &str) -> Result<Answer, Unmet> {
    let read = json!({ "log_id": id, "wait": true, "timeout": END_S });
    session.call("get_operation_result", read).await
}

/// Goes on only if an operation is complete, and returns its result.
fn complete(answer: &Answer) -> Result<&Value, Unmet> {
    answer.expect("/status", "completed")?;
    let result = answer.data.get("result");
    result.ok_or_else(|| Unmet(format!("there is no result in {}", answer.data)))
}

/// Says how far the tests are.
fn counts(answer: &Answer) -> Result<String, Unmet> {
    let number = |name: &str| {
        let found = answer.data.pointer(&format!("/partial_result/{name}")).and_then(Value::as_u64);
        found.ok_or_else(|| Unmet(format!("no `{name}` in {}", answer.data)))
    };
    Ok(format!("{} of {} tests", number("completed_count")?, number("total_tests")?))
}

/// Says what became of the tests of one fixture.
fn fighters(tests: Option<&Value>) -> Vec<String> {
    let text = |test: &Value, name: &str| {
        test.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let tests = tests.and_then(Value::as_array).into_iter().flatten();
    let named = tests.filter(|test| text(test, "name").starts_with("FighterTests."));
    named.map(|test| format!("{} {}", text(test, "name"), text(test, "outcome"))).collect()
}
