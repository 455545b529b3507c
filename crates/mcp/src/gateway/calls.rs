//! The calls that are under way at the other server, and what it says about them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::value::RawValue;

use raincheck_core::content::Json;
use raincheck_core::log::{Level, Stream};
use raincheck_core::progress::Progress;
use raincheck_core::scope::Scope;
use raincheck_core::text;
use raincheck_runtime::TaskContext;

/// The longest line that is kept of what is said, in bytes.
const MAX_SAID: usize = 16 << 10;

/// Said in the log of a call once lines were left out of it.
const LEFT_OUT: &str = "calls of several owners are under way, and the wrapped server does not say which one \
                        its lines belong to: they are left out here until one owner is left";

/// The calls under way, by their progress token.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<HashMap<String, UnderWay>>);

/// A call under way.
#[derive(Debug)]
struct UnderWay {
    context: TaskContext,
    owner: Scope,
    /// Whether its log says that lines were left out.
    is_told: bool,
}

/// A call under way, for as long as this value lives.
#[derive(Debug)]
pub(super) struct Entered {
    calls: Arc<Calls>,
    token: String,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.calls.all().remove(&self.token);
    }
}

impl Calls {
    /// Notes that a call is under way.
    pub(super) fn enter(
        self: &Arc<Self>,
        token: &str,
        context: TaskContext,
        owner: Scope,
    ) -> Entered {
        let call = UnderWay { context, owner, is_told: false };
        self.all().insert(token.to_owned(), call);
        Entered { calls: Arc::clone(self), token: token.to_owned() }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, UnderWay>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the one call that is under way; `None` where there are several, or none.
    pub(super) fn only(&self) -> Option<TaskContext> {
        let all = self.all();
        all.values().next().filter(|_| all.len() == 1).map(|call| call.context.clone())
    }

    /// Returns the owners of the calls that are under way.
    pub(super) fn owners(&self) -> Vec<Scope> {
        self.all().values().map(|call| call.owner.clone()).collect()
    }

    /// Hears how far a call is.
    pub(super) fn progress(&self, params: &RawValue) {
        let Ok(said) = serde_json::from_str::<Said<'_>>(params.get()) else { return };
        let context = self.all().get(said.token).map(|call| call.context.clone());
        if let Some(context) = context {
            context.progress(said.progress());
        }
    }

    /// Hears a message for people: it goes into the log of the calls that are under way, where they are of one
    /// owner. The other server does not say which one it belongs to.
    pub(super) async fn message(&self, params: &RawValue) {
        let Ok(message) = serde_json::from_str::<Message<'_>>(params.get()) else { return };
        let level = match message.level {
            "debug" => Level::Debug,
            "warning" => Level::Warn,
            "error" | "critical" | "alert" | "emergency" => Level::Error,
            _ => Level::Info,
        };
        let words = match message.data.read::<String>() {
            Ok(words) => words,
            Err(_) => message.data.get().to_owned(),
        };
        let words = match message.logger {
            Some(logger) => format!("{logger}: {words}"),
            None => words,
        };
        self.log(Stream::Control, level, &words).await;
    }

    /// Hears a line of a standard stream.
    pub(super) async fn line(&self, stream: Stream, line: &[u8]) {
        let words = String::from_utf8_lossy(line);
        tracing::debug!(line = %text::escape(text::clip(&words, 500)), "the wrapped server wrote");
        self.log(stream, Level::Info, &words).await;
    }

    async fn log(&self, stream: Stream, level: Level, words: &str) {
        let words = text::clip(words, MAX_SAID);
        let (contexts, is_shared) = self.hearers();
        for context in contexts {
            if is_shared {
                context.log(Stream::Control, Level::Info, LEFT_OUT).await;
            } else {
                context.log(stream, level, words).await;
            }
        }
    }

    /// Returns in whose logs a line belongs. With calls of several owners it belongs in none [SCOPE-2]: then
    /// those are returned that are yet to say so, and `true`.
    fn hearers(&self) -> (Vec<TaskContext>, bool) {
        let mut all = self.all();
        let first = all.values().next().map(|call| call.owner.clone());
        let is_shared = all.values().any(|call| Some(&call.owner) != first.as_ref());
        let contexts = all.values_mut().filter_map(|call| {
            let is_hearing = !is_shared || !std::mem::replace(&mut call.is_told, true);
            is_hearing.then(|| call.context.clone())
        });
        (contexts.collect(), is_shared)
    }
}

/// The parameters of `notifications/progress`.
#[derive(Deserialize)]
struct Said<'a> {
    #[serde(rename = "progressToken")]
    token: &'a str,
    progress: f64,
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

impl Said<'_> {
    fn progress(self) -> Progress {
        let total = self.total.filter(|total| *total > 0.0 && total.is_finite());
        Progress {
            percent: total.map(|total| 100.0 * self.progress / total),
            step: whole(self.progress),
            step_total: total.and_then(whole),
            message: self.message.map(|words| text::clip(&words, MAX_SAID).to_owned()),
            ..Progress::default()
        }
    }
}

/// Returns the whole number of steps that a count stands for.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to lie between 0 and 2^53"
)]
fn whole(count: f64) -> Option<u64> {
    (0.0..9e15).contains(&count).then_some(count as u64)
}

/// The parameters of `notifications/message`.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default)]
    level: &'a str,
    #[serde(default)]
    logger: Option<String>,
    data: Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_as_steps_and_as_a_share() {
        // [GATE-4]
        let said = |text: &str| serde_json::from_str::<Said<'_>>(text).expect("JSON").progress();
        let steps = said(r#"{"progressToken":"t","progress":2,"total":8,"message":"two"}"#);
        assert_eq!((steps.step, steps.step_total, steps.percent), (Some(2), Some(8), Some(25.0)));
        assert_eq!(steps.message.as_deref(), Some("two"));
        let share = said(r#"{"progressToken":"t","progress":0.5,"total":1.0}"#);
        assert_eq!((share.step, share.percent), (Some(0), Some(50.0)));
        let odd = said(r#"{"progressToken":"t","progress":-1,"total":0}"#);
        assert_eq!((odd.step, odd.percent), (None, None));
    }
}
