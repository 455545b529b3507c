//! The server is killed while a program runs, and the next server takes the program up.

use serde_json::{Value, json};

use super::{artifact, progress, running, task_id};
use crate::demo::session::Session;
use crate::demo::{Answer, Unmet, expect};

/// How many frames are rendered: enough to be far from the end when the next server is there.
const N_FRAMES: u64 = 40;

/// Shows the kill and the recovery.
pub(super) async fn show(session: &mut Session) -> Result<(), Unmet> {
    let show = session.transcript;
    show.heading("3. The server is killed, and nothing is lost or run twice")?;
    let starts_before = session.starts()?;
    let call = session.call("render", json!({ "frames": N_FRAMES })).await?;
    let task = task_id(session, &call)?;
    let mut place = Place { task: &task, cursor: None, step: 0 };
    place.move_on(session).await?;

    session.replace_server().await?;

    let status = place.move_on(session).await?;
    let attempt = status.data.get("attempt").and_then(Value::as_u64);
    expect(attempt == Some(1), || format!("another attempt: {}", status.data))?;
    show.checked("the same task, still in attempt 1, further on: its program never stopped")?;

    let wait = json!({ "task_id": task, "wait_s": 60 });
    let result = session.call("get_task_result", wait).await?;
    result.expect("/state", "succeeded")?;
    let attempts = result.data.get("attempts").and_then(Value::as_array).map(Vec::len);
    expect(attempts == Some(1), || format!("it took other attempts: {}", result.data))?;
    let frames = result.data.pointer("/result/frames").and_then(Value::as_u64);
    expect(frames == Some(N_FRAMES), || format!("another result came: {}", result.data))?;
    show.answer(result.took, "succeeded, attempts: 1")?;
    artifact(session, &result, N_FRAMES)?;

    let starts = session.starts()?;
    let once = format!("{starts_before}{task} 1\n");
    expect(starts == once, || format!("other starts were noted: {starts}"))?;
    show.checked("the program noted 1 start: nothing ran twice")
}

/// How far a task has been followed.
struct Place<'a> {
    task: &'a str,
    cursor: Option<String>,
    step: u64,
}

impl Place<'_> {
    /// Waits for new lines of the log until the status shows a later step, and returns that status.
    async fn move_on(&mut self, session: &Session) -> Result<Answer, Unmet> {
        loop {
            let follow = match &self.cursor {
                None => json!({ "task_id": self.task, "wait_s": 20 }),
                Some(cursor) => json!({ "task_id": self.task, "cursor": cursor, "wait_s": 20 }),
            };
            let logs = session.call("tail_task_logs", follow).await?;
            self.cursor = Some(logs.text("/next_cursor")?.to_owned());
            let last = logs.data.get("lines").and_then(Value::as_array).and_then(|all| all.last());
            let last = last.and_then(|line| line.get("message")).and_then(Value::as_str);
            session.transcript.answer(logs.took, last.unwrap_or("no new line"))?;

            let status = running(session, self.task).await?;
            session.transcript.answer(status.took, &format!("running, {}", progress(&status)))?;
            expect(last.is_some(), || "the program wrote nothing more".into())?;
            let step = status.data.pointer("/progress/step").and_then(Value::as_u64);
            if let Some(step) = step.filter(|step| *step > self.step) {
                self.step = step;
                return Ok(status);
            }
        }
    }
}
