//! What a program says on its control channel: JSON lines, each a report or several.
//!
//! Nothing on this channel can fail a task: what is not understood becomes a warning in its log.

use std::collections::BTreeMap;

use raincheck_core::content::Json;
use raincheck_core::log::Level;
use raincheck_core::progress::Progress;
use raincheck_core::text::{clip, escape};
use serde::Deserialize;

/// The longest line, in bytes; a longer one is skipped.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// The longest path of an artifact, in bytes: no system opens a longer one.
const MAX_PATH: usize = 4096;

/// The longest kind of an artifact, in bytes; the rest of a longer one is cut off.
pub(crate) const MAX_KIND: usize = 128;

/// The longest phase and message of a progress report, in bytes; the rest of a longer one is cut off.
pub(crate) const MAX_WORDS: usize = 1000;

/// How much of what is wrong a warning tells, in bytes: it may quote what the program wrote.
const MAX_FAULT: usize = 500;

/// One thing that a program reports.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Report {
    /// How far it is.
    Progress(Progress),
    /// What it has so far.
    Partial(Json),
    /// A line for the log.
    Log(Level, String),
    /// A word about a file in the artifacts folder.
    Artifact(Claim),
    /// A fault on the channel itself.
    Fault(String),
}

/// What a program says about one of its artifacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Its path, as the program wrote it.
    pub(crate) path: String,
    /// What it is.
    pub(crate) kind: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `message` and perhaps `level`")]
struct WireLog {
    level: Option<String>,
    message: String,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `path` and perhaps `kind`")]
struct WireArtifact {
    path: String,
    kind: Option<String>,
}

/// Reads one line.
pub(crate) fn read(line: &[u8]) -> Vec<Report> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Vec::new();
    }
    match fields(line) {
        Ok(fields) if fields.is_empty() => vec![fault("holds no report")],
        Ok(fields) => fields.into_iter().map(|(name, value)| report(&name, &value)).collect(),
        Err(reason) => vec![fault(&reason)],
    }
}

fn fields(line: &[u8]) -> Result<BTreeMap<String, Json>, String> {
    let text = str::from_utf8(line).map_err(|error| format!("is not UTF-8: {error}"))?;
    let json = Json::parse(text).map_err(|error| format!("is not JSON: {error}"))?;
    json.read().map_err(|error| format!("is not an object of reports: {error}"))
}

fn report(name: &str, value: &Json) -> Report {
    let read = match name {
        "progress" => value.read().map(|progress| Report::Progress(safe(progress))),
        "partial" => Ok(Report::Partial(value.clone())),
        "log" => value.read().map(|log: WireLog| {
            let level = log.level.as_deref().map_or(Level::Info, Level::from_word);
            Report::Log(level, log.message)
        }),
        "artifact" => value.read().map(artifact),
        other => {
            let name = escape(clip(other, 64));
            let known = "`progress`, `partial`, `log` and `artifact`";
            return fault(&format!("has the unknown report `{name}`; known are {known}"));
        }
    };
    read.unwrap_or_else(|error| fault(&format!("has a broken `{name}`: {error}")))
}

fn artifact(WireArtifact { path, kind }: WireArtifact) -> Report {
    if path.len() > MAX_PATH {
        return fault(&format!("has an `artifact` whose path is longer than {MAX_PATH} bytes"));
    }
    let kind = kind.map(|kind| clip(&kind, MAX_KIND).to_owned());
    Report::Artifact(Claim { path, kind })
}

/// Returns progress whose words are safe to show.
fn safe(progress: Progress) -> Progress {
    let words = |text: Option<String>| {
        text.map(|text| clip(&escape(clip(&text, MAX_WORDS)), MAX_WORDS).to_owned())
    };
    Progress { phase: words(progress.phase), message: words(progress.message), ..progress }
}

fn fault(what: &str) -> Report {
    Report::Fault(format!("a line on the control channel {}", clip(what, MAX_FAULT)))
}

/// Cuts the channel into lines and skips those that are too long.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    held: Vec<u8>,
    /// The current line is too long and is being skipped.
    is_skipping: bool,
}

impl Channel {
    /// Takes more bytes and gives out the reports they complete.
    pub(crate) fn push(&mut self, bytes: &[u8], mut emit: impl FnMut(Report)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let is_whole = part.ends_with(b"\n");
            if !self.is_skipping && self.held.len() + part.len() > MAX_BYTES {
                self.held = Vec::new();
                self.is_skipping = true;
                emit(fault(&format!("is longer than {MAX_BYTES} bytes and was skipped")));
            }
            if !self.is_skipping {
                self.held.extend_from_slice(part);
            }
            if is_whole {
                self.finish(&mut emit);
                self.is_skipping = false;
            }
        }
    }

    /// Gives out the last line, which needs no line end.
    pub(crate) fn finish(&mut self, mut emit: impl FnMut(Report)) {
        read(&self.held).into_iter().for_each(&mut emit);
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    fn all(chunks: &[&[u8]]) -> Vec<Report> {
        let (mut channel, mut reports) = (Channel::default(), Vec::new());
        for chunk in chunks {
            channel.push(chunk, |report| reports.push(report));
        }
        channel.finish(|report| reports.push(report));
        reports
    }

    #[test]
    fn every_report_is_read() {
        let said =
            br#"{"progress":{"phase":"nap","percent":50.0,"step":5,"step_total":10,"later":1}}
{"partial":{"z":1.0,"a":1e2}}
{"log":{"level":"warn","message":"careful"}}
{"log":{"message":"no level"}}
{"artifact":{"path":"a/b.bin","kind":"trajectory"}}
{"partial":1,"log":{"message":"both"}}"#;
        expect![[r#"
            Progress(Progress { phase: Some("nap"), percent: Some(50.0), step: Some(5), step_total: Some(10), eta_s: None, message: None })
            Partial({"z":1.0,"a":1e2})
            Log(Warn, "careful")
            Log(Info, "no level")
            Artifact(Claim { path: "a/b.bin", kind: Some("trajectory") })
            Log(Info, "both")
            Partial(1)
        "#]]
        .assert_eq(&all(&[said]).iter().map(|report| format!("{report:?}\n")).collect::<String>());
    }

    #[test]
    fn a_fault_names_what_is_wrong_and_hides_nothing_that_follows() {
        let said = b"garbage\n[]\n{}\n\xff\n{\"progres\":{}}\n{\"progress\":{\"step\":-1}}\n{\"log\":\"x\"}\n{\"partial\":7}\n";
        expect![[r#"
            Fault("a line on the control channel is not JSON: expected value at line 1 column 1")
            Fault("a line on the control channel is not an object of reports: invalid type: sequence, expected a map at line 1 column 0")
            Fault("a line on the control channel holds no report")
            Fault("a line on the control channel is not UTF-8: invalid utf-8 sequence of 1 bytes from index 0")
            Fault("a line on the control channel has the unknown report `progres`; known are `progress`, `partial`, `log` and `artifact`")
            Fault("a line on the control channel has a broken `progress`: invalid value: integer `-1`, expected u64 at line 1 column 10")
            Fault("a line on the control channel has a broken `log`: invalid type: string \"x\", expected an object with `message` and perhaps `level` at line 1 column 3")
            Partial(7)
        "#]]
        .assert_eq(&all(&[said]).iter().map(|report| format!("{report:?}\n")).collect::<String>());
    }

    #[test]
    fn words_are_bounded_by_what_they_are_for() {
        let long = "x".repeat(MAX_BYTES / 4);
        let said = format!(
            "{{\"progress\":{{\"phase\":\"{long}\",\"message\":\"{long}\"}}}}\n{{\"artifact\":{{\"path\":\"a\",\"kind\":\"{long}\"}}}}\n{{\"artifact\":{{\"path\":\"{long}\"}}}}\n{{\"log\":\"{long}\"}}\n"
        );
        let reports = all(&[said.as_bytes()]);
        let [Report::Progress(progress), Report::Artifact(claim), rest @ ..] = &reports[..] else {
            panic!("{} reports", reports.len());
        };
        let words = [&progress.phase, &progress.message, &claim.kind];
        assert!(words.into_iter().flatten().all(|words| (1..=1000).contains(&words.len())));
        let [Report::Fault(path), Report::Fault(log)] = rest else { panic!("{}", rest.len()) };
        assert!(path.contains("`artifact`") && path.contains("4096"), "{}", path.len());
        assert!(path.len() < 1000 && log.len() < 1000, "{} and {}", path.len(), log.len());
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_told_once() {
        let long =
            format!("{{\"partial\":\"{}\"}}\n{{\"partial\":1}}\n", "x".repeat(3 * MAX_BYTES));
        let reports = all(&long.as_bytes().chunks(60_000).collect::<Vec<_>>());
        assert!(matches!(&reports[..], [Report::Fault(_), Report::Partial(_)]), "{reports:?}");
    }

    #[test]
    fn words_of_progress_cannot_act_on_a_terminal() {
        let reports = all(&[br#"{"progress":{"message":"\u001b[2J"}}"#]);
        let [Report::Progress(progress)] = &reports[..] else { panic!("{reports:?}") };
        assert_eq!(progress.message.as_deref(), Some("\\x1b[2J"));
    }

    proptest! {
        #[test]
        fn no_bytes_stop_the_channel(
            noise in proptest::collection::vec(any::<u8>(), 0..300),
            size in 1_usize..40,
        ) {
            let mut said = noise;
            said.extend_from_slice(b"\n{\"partial\":\"still here\"}\n");
            let reports = all(&said.chunks(size).collect::<Vec<_>>());
            prop_assert_eq!(&reports, &all(&[&said]));
            let last = Report::Partial(Json::parse("\"still here\"").expect("JSON"));
            prop_assert_eq!(reports.last(), Some(&last));
        }
    }
}
