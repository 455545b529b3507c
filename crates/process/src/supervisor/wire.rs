//! What a server and a supervisor tell each other: JSON lines on the socket of the attempt.
//!
//! A line that is not understood is passed over, so that a server may speak to an older supervisor.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::progress::Progress;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::reason::Halt;
use super::record::Record;
use crate::order::Order;

/// What a server tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    /// Run this. The first line of the first server, and nobody else's.
    Run(Box<Work>),
    /// End the program.
    Stop(Halt),
    /// The task is on record as `cancelling`: the signal may be sent.
    Go,
    /// The outcome is committed: nobody needs to be told of it again.
    Kept,
}

/// What a supervisor says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Said {
    /// The supervisor is there. The first that every server hears.
    Here {
        /// The number of its process.
        pid: u32,
    },
    /// The program runs.
    Begun,
    /// How far the program is.
    Progress(Progress),
    /// What it has so far.
    Partial(Json),
    /// The log has new lines.
    LogGrew,
    /// The program is about to get a signal, after the server's [`Told::Go`].
    Stopping,
    /// The program has ended, and what it left is being taken.
    Collecting,
    /// The program has ended, and all that it left is taken.
    Ended(Box<Record>),
}

/// One attempt, as its supervisor needs to know it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) id: String,
    /// What tells this attempt from every other of the task [LEASE-1].
    pub(crate) fence: u64,
    pub(crate) order: Order,
    /// The text of the inputs: JSON may stand on several lines, a line of this conversation not.
    pub(crate) inputs: String,
    /// The folder of the attempt.
    pub(crate) folder: OsString,
    /// The folder of its supervisor.
    pub(crate) place: OsString,
    /// The folder of the log files.
    pub(crate) logs: OsString,
    pub(crate) log_quota: u64,
    /// How long the program may run.
    pub(crate) run_timeout: Option<Duration>,
    /// How long it has between being asked to end and being killed.
    pub(crate) grace: Duration,
    /// Whether it ends with its server.
    pub(crate) ends_with_server: bool,
    /// Whether what is written down has to survive a power loss [DUR-7].
    pub(crate) is_synced: bool,
    /// Whether the server has made the names on the way to the folder of the supervisor last, while it
    /// waited for its own commit.
    #[serde(default)]
    pub(crate) are_names_synced: bool,
}

/// One end of the conversation.
#[derive(Debug)]
pub(crate) struct Talk {
    reader: BufReader<OwnedReadHalf>,
    /// What came of a line so far.
    held: Vec<u8>,
    writer: OwnedWriteHalf,
}

impl Talk {
    /// Takes up a connection that a blocking call made.
    pub(crate) fn of(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self::new(UnixStream::from_std(stream)?))
    }

    pub(crate) fn new(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self { reader: BufReader::with_capacity(8 << 10, reader), held: Vec::new(), writer }
    }

    /// Returns the next thing that the other end tells; `None` when it is gone. A line that it did not
    /// finish was not told.
    ///
    /// # Cancel safety
    /// Safe: a line that came in part is kept.
    pub(crate) async fn hear<T: DeserializeOwned>(&mut self) -> Option<T> {
        loop {
            self.reader.read_until(b'\n', &mut self.held).await.ok()?;
            if !self.held.ends_with(b"\n") {
                return None;
            }
            let line = std::mem::take(&mut self.held);
            match serde_json::from_slice(&line) {
                Ok(told) => return Some(told),
                Err(error) => tracing::debug!(%error, "a line of the other end is passed over"),
            }
        }
    }

    /// Tells the other end something.
    ///
    /// # Errors
    /// When it is gone.
    pub(crate) async fn tell(&mut self, what: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        self.writer.write_all(&line).await
    }
}

#[cfg(test)]
mod tests {
    use super::super::reason::Reason;
    use super::*;

    #[test]
    fn the_lines_of_both_ends_are_as_they_were() {
        let halt = Halt { reason: Reason::Cancelled, grace: Duration::from_millis(1500) };
        let partial = Said::Partial(Json::parse(r#"{"z":1.0,"a":1e2}"#).expect("JSON"));
        let progress = Progress { percent: Some(50.0), ..Progress::default() };
        let lines = [
            serde_json::to_string(&Told::Stop(halt)),
            serde_json::to_string(&Told::Go),
            serde_json::to_string(&Told::Kept),
            serde_json::to_string(&Said::Here { pid: 7 }),
            serde_json::to_string(&Said::Begun),
            serde_json::to_string(&Said::Progress(progress)),
            serde_json::to_string(&partial),
            serde_json::to_string(&Said::LogGrew),
            serde_json::to_string(&Said::Stopping),
        ];
        let lines: Vec<String> = lines.into_iter().map(|line| line.expect("JSON")).collect();
        expect_test::expect![[r#"
            {"stop":{"reason":"cancelled","grace":{"secs":1,"nanos":500000000}}}
            "go"
            "kept"
            {"here":{"pid":7}}
            "begun"
            {"progress":{"percent":50.0}}
            {"partial":{"z":1.0,"a":1e2}}
            "log_grew"
            "stopping""#]]
        .assert_eq(&lines.join("\n"));
        assert!(
            matches!(serde_json::from_str(&lines[6]), Ok(Said::Partial(json)) if json.get() == r#"{"z":1.0,"a":1e2}"#)
        );
    }

    // [LEASE-9]
    #[tokio::test]
    async fn an_order_that_was_not_finished_was_not_given() {
        let (mut near, far) = UnixStream::pair().expect("a pair");
        let mut far = Talk::new(far);
        near.write_all(b"\"go\"").await.expect("written");
        drop(near);
        assert!(far.hear::<Told>().await.is_none());
    }

    #[tokio::test]
    async fn a_line_that_a_newer_end_tells_is_passed_over() {
        let (near, far) = UnixStream::pair().expect("a pair");
        let (mut near, mut far) = (Talk::new(near), Talk::new(far));
        near.tell(&"tomorrow").await.expect("told");
        near.tell(&Told::Go).await.expect("told");
        assert!(matches!(far.hear().await, Some(Told::Go)));
        drop(near);
        assert!(far.hear::<Told>().await.is_none());
    }
}
