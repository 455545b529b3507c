//! What editors say, and what becomes of it: a report to whoever waits, or a word to the engine.

use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::task::Outcome;
use raincheck_runtime::Told;
use tokio::sync::mpsc;

use crate::backend::{Ask, Ending, Introduction, Target, Word};
use crate::bridge::Unity;
use crate::desk::Attached;
use crate::desk::stage::Move;
use crate::spelling::Key;
use crate::wire::{RequestId, outcome};

impl Unity {
    /// Lets an editor in that has proved itself; `None` when there are too many.
    pub(crate) async fn attach(
        &self,
        introduction: Introduction,
        asks: mpsc::Sender<Ask>,
    ) -> Option<Attached> {
        let (name, version) = (introduction.name.clone(), introduction.unity_version.clone());
        let key = self.spellings().key(&introduction.project_path).await;
        let who = (key, introduction);
        let attached = self.desk().attach(self.now(), self.settings(), who, asks)?;
        tracing::info!(project = name, unity = version, "an editor is connected");
        self.moved();
        Some(attached)
    }

    /// A connection is over.
    pub(crate) fn detach(&self, key: &Key, serial: u64) {
        if self.desk().detach(self.now(), key, serial) {
            tracing::info!(project = %key, "an editor is gone");
            self.moved();
        }
    }

    /// Hears what an editor says on its current connection. What is to be said back at once is returned.
    pub(crate) async fn hear(&self, key: &Key, serial: u64, word: Word) -> Option<Ask> {
        self.spoke(key, serial);
        if let Word::Ended { target, named, fence, ending } = word {
            return self.ended(target, named, fence, ending).await;
        }
        self.noted(key, serial, word);
        None
    }

    /// One that says anything is not stopped.
    fn spoke(&self, key: &Key, serial: u64) {
        let mut desk = self.desk();
        if let Some(editor) = desk.linked(key, serial).filter(|editor| editor.is_mute) {
            editor.is_mute = false;
            drop(desk);
            self.moved();
        }
    }

    fn noted(&self, key: &Key, serial: u64, word: Word) {
        let mut desk = self.desk();
        if desk.linked(key, serial).is_none() {
            return;
        }
        match word {
            Word::Status { state, focused, lag_ms, dialog } => {
                let Some(editor) = desk.linked(key, serial) else { return };
                (editor.focused, editor.lag_ms, editor.dialog) = (focused, lag_ms, dialog);
                if editor.state != state {
                    editor.state = state;
                    drop(desk);
                    self.moved();
                }
            }
            Word::Leaving { quits } => {
                let Some(editor) = desk.linked(key, serial) else { return };
                if quits {
                    editor.has_quit = true;
                    drop(desk);
                    self.moved();
                }
            }
            Word::Commands(commands) => {
                // None is no news: a package that has just started lists none.
                if let Some(editor) = desk.linked(key, serial).filter(|_| !commands.is_empty()) {
                    editor.commands = std::sync::Arc::new(commands);
                }
            }
            Word::Accepted(request) => desk.step(request, Move::Accept),
            Word::Started(request) => desk.step(request, Move::Start),
            Word::Job(request, job) => {
                if let Some((_, run)) = desk.run_of(&Target::Request(request)) {
                    run.job_id = Some(job);
                    run.step(Move::Accept);
                }
            }
            Word::Progress { target, fence, seq, progress, partial } => {
                if let Some((_, run)) = desk.run_of(&target)
                    && fence.is_none_or(|fence| fence == run.fence)
                {
                    run.step(Move::Start);
                    run.progress(seq, progress, partial);
                }
            }
            Word::Cancelling(target) => {
                if let Some((_, run)) = desk.run_of(&target) {
                    run.report.send_modify(|report| report.is_cancelling = true);
                }
            }
            Word::Unknown(target) => {
                if let Some((_, run)) = desk.run_of(&target)
                    && run.is_stopping
                {
                    run.unknown_since.get_or_insert(self.now());
                    run.wake();
                }
            }
            Word::Ended { .. } => {}
        }
    }

    /// A call ended. Whoever waits for it has it committed, and then it is acknowledged; what nobody waits
    /// for any more is kept beside the outcome, or is known already [LEASE-6, LEASE-7].
    async fn ended(
        &self,
        target: Target,
        named: String,
        fence: Option<u64>,
        ending: Ending,
    ) -> Option<Ask> {
        {
            let mut desk = self.desk();
            if let Some((request, run)) = desk.run_of(&target) {
                let is_other = fence.is_some_and(|fence| fence != run.fence);
                if is_other && !run.is_nobody_s() {
                    tracing::debug!(?target, "a result of another attempt was ignored");
                    return None;
                }
                if !run.is_nobody_s() {
                    // Another copy is acknowledged with the first.
                    let outcome = outcome_of(&run.tool, ending);
                    run.end(outcome, named);
                    return None;
                }
                desk.runs.remove(&request);
            }
        }
        let Target::Request(request) = target else { return None };
        self.tell(request, named, fence, ending).await
    }

    /// Tells the engine how a call ended that nobody waits for.
    async fn tell(
        &self,
        request: RequestId,
        named: String,
        fence: Option<u64>,
        ending: Ending,
    ) -> Option<Ask> {
        let ack = || (!named.is_empty()).then(|| Ask::Ack(named.clone()));
        let engine = self.engine().ok()?;
        let record = match engine.tell(request.task, None, None).await.ok()? {
            Told::Counted(record) | Told::Ended(record) | Told::Stale(record) => record,
            Told::Unknown => return ack(),
        };
        let is_last = record.attempt == request.attempt
            && fence.is_none_or(|fence| fence == record.fence.raw());
        if !is_last {
            // A wrong fence says nothing of what the editor has under this name.
            return if record.attempt > request.attempt { ack() } else { None };
        }
        let outcome = outcome_of(record.task.tool.as_str(), ending);
        // That it ended as it was asked to adds nothing to what is known.
        if outcome != Outcome::Cancelled || !record.state.is_terminal() {
            match engine.tell(request.task, Some(record.fence), Some(outcome)).await {
                Ok(told) => tracing::debug!(task = %request.task, ?told, "a late result"),
                Err(error) => {
                    tracing::warn!(task = %request.task, %error, "a late result was not stored");
                    return None;
                }
            }
        }
        ack()
    }
}

fn outcome_of(tool: &str, ending: Ending) -> Outcome {
    match ending {
        Ending::Said { status, result } => outcome::of(tool, &status, result.as_deref()),
        Ending::Declined(error) => Outcome::Failed(outcome::declined(&error).error),
        Ending::TooLarge => {
            let words = "the result is larger than is taken in";
            let error = Error::new(Kind::TooLarge, words);
            Outcome::Failed(error.with_guarantee(Guarantee::Executed))
        }
        Ending::Unreadable => {
            let words = "the editor's result is no JSON";
            Outcome::Failed(Error::new(Kind::InvalidResponse, words))
        }
    }
}
