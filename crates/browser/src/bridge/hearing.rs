//! What the extension says of commands, and what it is told of that.

use std::time::Duration;

use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::ids::{Fence, Spelling, TaskId};
use raincheck_core::lifecycle::State;
use raincheck_core::task::Outcome;
use raincheck_runtime::{Handle, Told};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Browser, blocking};
use crate::order::Order;
use crate::outbox::{Addressee, Move, Report};
use crate::saving::{self, SaveTo};
use crate::shape;
use crate::verdict::Verdict;
use crate::wire::{Said, Word};

/// How long the extension is kept waiting for a commit before it is asked to post again.
const PATIENCE: Duration = Duration::from_secs(15);

impl Browser {
    /// Hears one item of a post. The verdict waits for the commit that it tells of [DUR-1].
    pub(crate) async fn hear(&self, said: Said) -> Verdict {
        let Said { id, attempt, fence, tab_id, word } = said;
        let addressee = self.outbox().addressee(id, fence, attempt);
        match addressee {
            Addressee::Stale => self.verdict_of_stale(id).await,
            Addressee::Nobody => self.tell(id, fence, word).await,
            Addressee::Ended(recorded) => match timeout(PATIENCE, recorded.cancelled()).await {
                Ok(()) => Verdict::AlreadyTerminal,
                Err(_) => Verdict::Unavailable,
            },
            Addressee::Executor { what, save_to, reports, recorded } => match word {
                Word::Accepted => accept(&reports).await,
                Word::Progress(progress, partial) => {
                    let verdict = accept(&reports).await;
                    if verdict == Verdict::Accepted {
                        // One that ended meanwhile needs no progress.
                        let _ = reports.send(Report::Progress(progress, partial));
                    }
                    verdict
                }
                Word::Ended(outcome) => {
                    // Before its output is saved, which may take long: the same word that comes again waits for
                    // that, and does not save it a second time.
                    self.step(id, Move::End);
                    let bridge = self.clone();
                    let ending = async move {
                        let outcome = bridge.kept(id, &what, save_to, outcome).await;
                        let expected = state_of(&outcome);
                        if let Err(unsent) = reports.send(Report::Ended(outcome, tab_id)) {
                            let Report::Ended(outcome, _) = unsent.0 else {
                                return Verdict::Unavailable;
                            };
                            return bridge.tell_kept(id, fence, outcome).await;
                        }
                        if timeout(PATIENCE, recorded.cancelled()).await.is_err() {
                            return Verdict::Unavailable;
                        }
                        bridge.verdict_of_end(id, expected).await
                    };
                    // A request that is given up meanwhile takes nothing of it along.
                    self.0.ends.spawn(ending).await.unwrap_or(Verdict::Unavailable)
                }
            },
        }
    }

    /// Tells whether an outcome became the task's own, or was kept beside it.
    async fn verdict_of_end(&self, id: TaskId, expected: State) -> Verdict {
        let Ok(engine) = self.engine() else { return Verdict::Unavailable };
        match engine.tell(id, None, None).await {
            Ok(Told::Ended(record)) if record.state == expected => Verdict::Accepted,
            Ok(Told::Counted(_)) => Verdict::Accepted,
            Ok(Told::Ended(_) | Told::Stale(_)) => Verdict::AlreadyTerminal,
            Ok(Told::Unknown) => Verdict::Unknown,
            Err(_) => Verdict::Unavailable,
        }
    }

    async fn verdict_of_stale(&self, id: TaskId) -> Verdict {
        let Ok(engine) = self.engine() else { return Verdict::Unavailable };
        match engine.tell(id, None, None).await {
            Ok(Told::Unknown) => Verdict::Unknown,
            Ok(_) => Verdict::Stale,
            Err(_) => Verdict::Unavailable,
        }
    }

    /// Hears what is said about a command that no executor waits for.
    async fn tell(&self, id: TaskId, fence: Option<Fence>, word: Word) -> Verdict {
        let Ok(engine) = self.engine() else { return Verdict::Unavailable };
        let told = async {
            let outcome = match word {
                Word::Ended(outcome) => Some(self.shaped(engine, id, outcome).await?),
                Word::Accepted | Word::Progress(..) => None,
            };
            engine.tell(id, fence, outcome).await
        };
        verdict_of_told(id, told.await)
    }

    /// Hears how a command ended that its executor let go meanwhile; the outcome is as its task keeps it.
    async fn tell_kept(&self, id: TaskId, fence: Option<Fence>, outcome: Outcome) -> Verdict {
        let Ok(engine) = self.engine() else { return Verdict::Unavailable };
        verdict_of_told(id, engine.tell(id, fence, Some(outcome)).await)
    }

    /// Makes an outcome what its task keeps: shaped, or where its output was saved.
    async fn kept(
        &self,
        id: TaskId,
        what: &str,
        save_to: Option<SaveTo>,
        outcome: Outcome,
    ) -> Outcome {
        let outcome = shape::shaped(what, outcome, self.port());
        let Some(to) = save_to else { return shape::beside(outcome) };
        let root = self.settings().files_dir.clone();
        let (what, mark) = (what.to_owned(), id.spell(Spelling::Correlation));
        blocking(move || saving::saved((root.as_deref(), &mark), &to, &what, outcome))
            .await
            .unwrap_or_else(|error| Outcome::Failed(error.with_guarantee(Guarantee::Executed)))
    }

    /// Makes an outcome that no executor waits for what its task keeps [BROWSER-16].
    async fn shaped(
        &self,
        engine: &Handle,
        id: TaskId,
        outcome: Outcome,
    ) -> Result<Outcome, Error> {
        if !matches!(outcome, Outcome::Succeeded(_)) {
            return Ok(outcome);
        }
        let record = match engine.tell(id, None, None).await? {
            Told::Counted(record) | Told::Ended(record) | Told::Stale(record) => record,
            Told::Unknown => return Ok(outcome),
        };
        let view = match engine.view(&record.task.scope, id).await {
            Ok(view) => view,
            // It was forgotten just now, and keeps nothing.
            Err(error) if error.kind == Kind::NotFound => return Ok(outcome),
            Err(error) => return Err(error),
        };
        let Some(payload) = view.payload else { return Ok(outcome) };
        let order = Order::of(record.task.tool.as_str(), &record.task.lane, &payload.inputs)?;
        Ok(self.kept(id, &order.what, order.save_to, outcome).await)
    }
}

async fn accept(reports: &UnboundedSender<Report>) -> Verdict {
    let (answer, verdict) = oneshot::channel();
    if reports.send(Report::Accepted(answer)).is_err() {
        return Verdict::AlreadyTerminal;
    }
    // An executor that went away meanwhile does not wait for it any more.
    verdict.await.unwrap_or(Verdict::AlreadyTerminal)
}

/// The state that an outcome leads to when it counts.
const fn state_of(outcome: &Outcome) -> State {
    match outcome {
        Outcome::Succeeded(_) => State::Succeeded,
        Outcome::Failed(Error { kind: Kind::RunTimeout, .. }) => State::TimedOut,
        Outcome::Failed(_) => State::Failed,
        Outcome::Cancelled => State::Cancelled,
    }
}

/// Returns the verdict on what was told of a command.
fn verdict_of_told(id: TaskId, told: Result<Told, Error>) -> Verdict {
    match told {
        Ok(Told::Counted(_)) => Verdict::Accepted,
        Ok(Told::Ended(_)) => Verdict::AlreadyTerminal,
        Ok(Told::Stale(_)) => Verdict::Stale,
        Ok(Told::Unknown) => Verdict::Unknown,
        Err(error) => {
            tracing::warn!(task = %id, %error, "what the extension posted was not stored");
            Verdict::Unavailable
        }
    }
}
