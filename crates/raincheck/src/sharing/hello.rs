//! What two processes say first: one line each.

use std::io;
use std::time::Duration;

use raincheck_loopback::attach::Stream;
use raincheck_loopback::awake::timeout;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader, ReadHalf,
    WriteHalf, split,
};

/// The version of these lines, and of the numbers that stand before requests.
pub(super) const PROTOCOL: u32 = 2;

/// The longest of these lines.
const MAX_LINE: u64 = 64 << 10;

/// How long the other end may take to say its line.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a process says that wants to be served. It names its owner of tasks, and nothing that gives it a
/// right [ATTACH-3].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) protocol: u32,
    pub(super) version: String,
    /// What its tools and answers are.
    pub(super) tools: String,
    /// What its settings are.
    pub(super) settings: String,
    /// The name that no other process has.
    pub(super) process: String,
    pub(super) pid: u32,
    pub(super) scope: String,
}

/// What the owner answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(super) enum Welcome {
    /// It serves the process.
    Come {
        /// The name of its store, where the next owner finds what this one acknowledged.
        store: Option<String>,
    },
    /// It says more in a moment: its store is being opened.
    Wait,
    /// It does not.
    Stay {
        /// Why, as the end of a sentence.
        why: String,
    },
}

impl Hello {
    /// Says why a process that says this cannot be served by one that would say `own`.
    pub(super) fn refused_by(&self, own: &Self) -> Option<String> {
        let Self { protocol, version, tools, settings, .. } = own;
        if (self.protocol, &self.version) != (*protocol, version) {
            return Some(format!("which is version {version}, and this is {}", self.version));
        }
        let is_alike = (&self.tools, &self.settings) == (tools, settings);
        (!is_alike).then(|| "which has other tools or settings".to_owned())
    }
}

/// A connection of lines.
pub(super) struct Talk {
    pub(super) reader: BufReader<ReadHalf<Stream>>,
    pub(super) writer: WriteHalf<Stream>,
}

impl Talk {
    pub(super) fn new(stream: Stream) -> Self {
        let (reader, writer) = split(stream);
        Self { reader: BufReader::with_capacity(64 << 10, reader), writer }
    }

    /// Says a line.
    pub(super) async fn say(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.writer.write_all(&bytes).await?;
        self.writer.flush().await
    }

    /// Hears a line, in the time in which this process could run.
    pub(super) async fn hear<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let hearing = line(&mut self.reader);
        let line = timeout(PATIENCE, hearing).await.map_err(|_| io::ErrorKind::TimedOut)??;
        Ok(serde_json::from_slice(&line)?)
    }
}

async fn line(reader: &mut BufReader<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    reader.take(MAX_LINE).read_until(b'\n', &mut line).await?;
    if line.pop() == Some(b'\n') { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello {
            protocol: PROTOCOL,
            version: "1.0.0".into(),
            tools: "a".into(),
            settings: "b".into(),
            process: "one".into(),
            pid: 1,
            scope: "local".into(),
        }
    }

    #[test]
    fn processes_of_one_version_with_the_same_tools_and_settings_share() {
        // [ATTACH-4]
        let own = hello();
        let other = Hello { process: "two".into(), pid: 2, scope: "beta".into(), ..hello() };
        assert_eq!(other.refused_by(&own), None);
        let refused: Vec<String> = [
            Hello { version: "0.9.0".into(), ..hello() },
            Hello { protocol: 1, ..hello() },
            Hello { tools: "c".into(), ..hello() },
            Hello { settings: "c".into(), ..hello() },
        ]
        .iter()
        .filter_map(|one| one.refused_by(&own))
        .collect();
        assert_eq!(refused.len(), 4);
        assert!(refused[0].contains("0.9.0") && refused[2].contains("tools"), "{refused:?}");
    }

    #[test]
    fn the_lines_are_those_of_the_contract() {
        let text = serde_json::to_string(&Welcome::Come { store: Some("s".into()) });
        assert_eq!(text.expect("JSON"), r#"{"answer":"come","store":"s"}"#);
        assert_eq!(serde_json::to_string(&Welcome::Wait).expect("JSON"), r#"{"answer":"wait"}"#);
        let text = serde_json::to_string(&Welcome::Stay { why: "w".into() }).expect("JSON");
        assert_eq!(text, r#"{"answer":"stay","why":"w"}"#);
    }
}
