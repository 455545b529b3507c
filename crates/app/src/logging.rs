//! Log lines on standard error that never make the server wait.
//!
//! Lines go through a bounded queue to a thread of their own. When the reader of standard error is
//! slow or stuck, lines are dropped and counted, and the count is told as soon as it reads again.

mod queue;

use std::fmt;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::cli::{LogFormat, Shared};
use crate::failure::Failure;

pub use queue::{Line, Queue};

/// What is logged when nobody says otherwise: the life of the process, and what is wrong. Every step
/// of every task is one level further, at `info`.
pub const DEFAULT_FILTER: &str = "warn,rmcp::service=error,raincheck_app=info,raincheck::wiring=info,raincheck::http=info,browser_mcp=info,raincheck_browser=info,unity_mcp=info,raincheck_unity=info";

/// How long the end of the process waits for the last lines.
const LAST_LINES: Duration = Duration::from_millis(100);

static QUEUE: OnceLock<Queue> = OnceLock::new();

/// Starts logging as the flags say. To be called once, before anything logs.
///
/// # Errors
/// When the level is no level and no filter.
pub fn start(shared: &Shared) -> Result<Guard, Failure> {
    let filter = filter(shared.log_level.as_deref())?;
    let queue = QUEUE.get_or_init(|| Queue::start(io::stderr()));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(ToQueue(queue));
    let started = match shared.log_format {
        LogFormat::Text => builder.with_ansi(false).compact().finish().try_init(),
        LogFormat::Json => builder.json().flatten_event(true).finish().try_init(),
    };
    started.map_err(|error| Failure::failed(error.to_string(), "start logging only once"))?;
    Ok(Guard { queue })
}

/// Reads a level: a word for Raincheck's own lines, or a whole filter.
pub(crate) fn filter(level: Option<&str>) -> Result<EnvFilter, Failure> {
    let text = match level.map(str::trim) {
        None | Some("") => DEFAULT_FILTER.to_owned(),
        Some(word) if !word.contains(['=', ',', '[']) => {
            let word = word.to_ascii_lowercase();
            let others = if matches!(&*word, "error" | "off") { &word } else { "warn" };
            // It warns of every slip of a client, which our own lines tell at `debug`.
            let protocol = if word == "off" { "" } else { ",rmcp::service=error" };
            format!("{others}{protocol},raincheck={word}")
        }
        Some(filter) => filter.to_owned(),
    };
    EnvFilter::builder().parse(&text).map_err(|error| {
        Failure::usage(
            format!("--log-level `{}`: {error}", level.unwrap_or_default()),
            "use error, warn, info, debug or trace, or a filter such as warn,raincheck=debug",
        )
    })
}

/// Keeps logging alive; when it is dropped the last lines get a moment to be written.
#[must_use = "the last lines are lost without it"]
#[derive(Debug)]
pub struct Guard {
    queue: &'static Queue,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.queue.flush(LAST_LINES);
    }
}

/// Gives every event a line of its own.
#[derive(Clone, Copy)]
struct ToQueue(&'static Queue);

impl fmt::Debug for ToQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToQueue")
    }
}

impl MakeWriter<'_> for ToQueue {
    type Writer = Line<'static>;

    fn make_writer(&self) -> Line<'static> {
        self.0.line()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_sets_our_own_level_and_leaves_others_quiet() {
        let shown = |level| filter(Some(level)).map(|filter| filter.to_string());
        assert_eq!(shown("DEBUG").as_deref(), Ok("rmcp::service=error,raincheck=debug,warn"));
        assert_eq!(shown("error").as_deref(), Ok("rmcp::service=error,raincheck=error,error"));
        assert_eq!(shown("off").as_deref(), Ok("raincheck=off,off"));
        assert_eq!(shown("info,rmcp=trace").as_deref(), Ok("rmcp=trace,info"));
    }

    #[test]
    fn a_level_that_is_none_is_refused_with_those_there_are() {
        let failure = filter(Some("loud")).expect_err("no level");
        assert!(failure.message.contains("loud") && failure.next.contains("debug"), "{failure}");
        assert!(filter(Some("a=b=c")).is_err());
    }
}
