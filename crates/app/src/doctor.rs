//! `doctor`: the usual causes of trouble, each with what to do about it.

mod checks;
mod programs;

use std::fmt::Write as _;
use std::path::Path;

use raincheck_core::ids::TaskId;
use raincheck_core::store;
use raincheck_core::time::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::binary::Binary;
use crate::cli::{Serving, Shared};
use crate::failure::Exit;
use crate::terminal::{Palette, Style};

/// What is examined.
#[derive(Clone, Copy, Debug)]
pub struct Patient<'a> {
    /// The binary.
    pub binary: &'a Binary,
    /// Its flags.
    pub shared: &'a Shared,
    /// Its flags as a server.
    pub serving: &'a Serving,
    /// What the wall clock says.
    pub now: Timestamp,
    /// Finds tasks of a store, as many as are asked for, of which a content is missing; `None` when the
    /// store cannot be read.
    pub missing_contents: fn(&Path, usize) -> Option<Vec<TaskId>>,
    /// Tells whether a store at a path could be owned by one server.
    pub check_locks: fn(&Path) -> Result<(), store::Error>,
}

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// In the way.
    Bad,
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: &'static str,
    /// How grave it is.
    pub grade: Grade,
    /// What was found.
    pub says: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Finding {
    /// Makes the finding that something is as it should be.
    pub fn good(check: &'static str, says: impl Into<String>) -> Self {
        Self { check, grade: Grade::Good, says: says.into(), next: None }
    }

    /// Makes a finding that is worth knowing.
    pub fn note(check: &'static str, says: impl Into<String>, next: impl Into<String>) -> Self {
        Self { check, grade: Grade::Note, says: says.into(), next: Some(next.into()) }
    }

    /// Makes the finding that something is in the way.
    pub fn bad(check: &'static str, says: impl Into<String>, next: impl Into<String>) -> Self {
        Self { check, grade: Grade::Bad, says: says.into(), next: Some(next.into()) }
    }
}

/// Everything that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    findings: Vec<Finding>,
    /// What cannot be seen from here, and who sees it.
    unseen: Option<&'static str>,
}

/// Looks whether a folder can be written into, and makes it if it is not there.
#[must_use]
pub fn folder(check: &'static str, folder: &Path, next: &str) -> Finding {
    checks::folder(check, folder, next).0
}

/// Runs every check that all binaries share.
#[must_use]
pub fn examine(patient: &Patient<'_>) -> Report {
    Report { findings: checks::all(patient), unseen: None }
}

impl Report {
    /// Adds what a binary found by checks of its own.
    #[must_use]
    pub fn with(mut self, findings: impl IntoIterator<Item = Finding>) -> Self {
        self.findings.extend(findings);
        self
    }

    /// Says at the end what no check can see, and who sees it.
    #[must_use]
    pub const fn with_unseen(mut self, unseen: &'static str) -> Self {
        self.unseen = Some(unseen);
        self
    }

    /// Iterates over the findings.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter()
    }

    /// Returns how the command ends: failed when something is in the way.
    #[must_use]
    pub fn exit(&self) -> Exit {
        let is_bad = self.findings.iter().any(|finding| finding.grade == Grade::Bad);
        if is_bad { Exit::Failed } else { Exit::Done }
    }

    /// Writes the report for a person.
    #[must_use]
    pub fn text(&self, palette: Palette) -> String {
        let mut out = String::new();
        for finding in &self.findings {
            let mark = match finding.grade {
                Grade::Good => palette.paint(Style::Green, "✓"),
                Grade::Note => palette.paint(Style::Yellow, "!"),
                Grade::Bad => palette.paint(Style::Red, "✗"),
            };
            let says = finding.says.trim_end().replace('\n', "\n    ");
            let _ = writeln!(out, "{mark} {:<14} {says}", finding.check);
            if let Some(next) = &finding.next {
                let _ = writeln!(out, "    {} {next}", palette.paint(Style::Dim, "→"));
            }
        }
        let n = |grade| self.findings.iter().filter(|finding| finding.grade == grade).count();
        let bad = match n(Grade::Bad) {
            0 => "nothing is in the way".to_owned(),
            1 => "1 thing is in the way".to_owned(),
            n => format!("{n} things are in the way"),
        };
        let _ = match n(Grade::Note) {
            0 => writeln!(out, "\n{bad}"),
            1 => writeln!(out, "\n{bad}; 1 thing is worth a look (!)"),
            n => writeln!(out, "\n{bad}; {n} things are worth a look (!)"),
        };
        if let Some(unseen) = self.unseen {
            let _ = writeln!(out, "{unseen}");
        }
        out
    }

    /// Writes the report for a program.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({ "ok": self.exit() == Exit::Done, "findings": self.findings, "unseen": self.unseen })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        shared: Shared,
        #[command(flatten)]
        serving: Serving,
    }

    const NOW: i64 = 1_800_000_000_000;

    const PROGRAMS: Binary = Binary {
        name: "raincheck",
        sections: &["tools", "lanes"],
        while_running: "look",
        while_stopped: "start",
        on_shared_store: "give one client a state folder of its own: --state-dir DIR, or --store memory",
    };

    fn examined(dir: &Path, config: &str, flags: &[&str]) -> Report {
        examined_as(&PROGRAMS, dir, config, flags)
    }

    fn examined_as(binary: &Binary, dir: &Path, config: &str, flags: &[&str]) -> Report {
        let file = dir.join("raincheck.toml");
        fs::write(&file, config).expect("written");
        let state = dir.join("state");
        let mut args = vec!["raincheck", "--state-dir", state.to_str().expect("text")];
        args.extend(["--config", file.to_str().expect("text")]);
        args.extend(flags);
        let Cli { shared, serving } = Cli::try_parse_from(args).expect("flags");
        let now = Timestamp::from_millis(NOW);
        examine(&Patient {
            binary,
            shared: &shared,
            serving: &serving,
            now,
            missing_contents: |store, _| {
                let is_known = store.ends_with("store.db") || store.ends_with("refused.db");
                assert!(is_known, "{}", store.display());
                Some(vec![TaskId::from_parts(1, [1; 10])])
            },
            check_locks: |store| {
                let is_refused = store.ends_with("refused.db");
                if is_refused { Err(store::Error::new("no locks")) } else { Ok(()) }
            },
        })
    }

    fn bad(report: &Report) -> Vec<&'static str> {
        report.findings().filter(|f| f.grade == Grade::Bad).map(|f| f.check).collect()
    }

    #[test]
    fn a_sound_machine_passes_and_everything_bad_names_a_next_step() {
        let dir = tempfile::tempdir().expect("a folder");
        let report = examined(dir.path(), "[tools.a]\ncommand = [\"cargo\"]\n", &[]);
        assert_eq!(bad(&report), Vec::<&str>::new(), "{}", report.text(Palette::plain()));
        assert_eq!(report.exit(), Exit::Done);
        assert!(report.findings().count() >= 10);
    }

    #[test]
    fn the_last_lines_count_what_was_found_and_say_what_was_not_seen() {
        let of = |findings: &[Finding]| {
            let report = Report { findings: findings.to_vec(), unseen: None };
            report.with_unseen("not seen").text(Palette::plain())
        };
        let (good, note) = (Finding::good("a", "b"), Finding::note("a", "b", "c"));
        assert!(of(&[good]).ends_with("\nnothing is in the way\nnot seen\n"));
        let noted = of(std::slice::from_ref(&note));
        assert!(
            noted.contains("\nnothing is in the way; 1 thing is worth a look (!)\n"),
            "{noted}"
        );
        let both = of(&[note.clone(), note, Finding::bad("a", "b", "c")]);
        assert!(
            both.contains("\n1 thing is in the way; 2 things are worth a look (!)\n"),
            "{both}"
        );
    }

    #[test]
    fn the_state_folder_is_named_as_the_flag_takes_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let report = examined(dir.path(), "", &[]);
        let found = report.findings().find(|found| found.check == "state folder").expect("found");
        let state = dir.path().join("state");
        assert_eq!(found.says, format!("{}; `raincheck` in it is writable", state.display()));
    }

    #[test]
    fn a_task_without_its_contents_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let report = examined(dir.path(), "", &[]);
        let named = TaskId::from_parts(1, [1; 10]).to_string();
        let found = report.findings().find(|finding| finding.check == "contents");
        assert!(found.is_some_and(|finding| finding.says.contains(&named)));
        let memory = examined(dir.path(), "", &["--store", "memory"]);
        assert!(memory.findings().all(|finding| finding.check != "contents"));
    }

    #[test]
    fn a_store_that_cannot_be_owned_is_in_the_way() {
        let dir = tempfile::tempdir().expect("a folder");
        let store = dir.path().join("refused.db");
        let report = examined(dir.path(), "", &["--store", store.to_str().expect("text")]);
        assert_eq!(bad(&report), ["locks"]);
        let found = report.findings().find(|finding| finding.check == "locks");
        assert_eq!(found.map(|finding| finding.says.as_str()), Some("no locks"));
    }

    #[test]
    fn programs_and_scripts_that_are_not_there_are_found() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("plain"), "not executable").expect("written");
        let config = r#"
[tools.gone]
command = ["no-such-program-anywhere"]
[tools.plain]
command = ["./plain"]
[tools.script]
command = ["cargo", "missing.py"]
"#;
        let report = examined(dir.path(), config, &[]);
        assert_eq!(bad(&report), ["programs", "scripts"]);
        let text = report.text(Palette::plain());
        for part in ["no-such-program-anywhere", "./plain", "missing.py", "2 things"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert_eq!(report.json()["ok"], false);
    }

    #[test]
    fn a_broken_file_a_wrong_level_and_an_unbuilt_store_are_found() {
        let dir = tempfile::tempdir().expect("a folder");
        let flags = ["--log-level", "loud", "--store", "postgres://host/db"];
        let report = examined(dir.path(), "[tools.a]\nwait = 1\n", &flags);
        assert_eq!(bad(&report), ["configuration", "flags", "log level"]);
        assert!(report.text(Palette::plain()).contains("did you mean `wait_s`"));
    }

    #[test]
    fn a_binary_without_programs_is_told_nothing_of_programs() {
        let dir = tempfile::tempdir().expect("a folder");
        let bridge = Binary { name: "bridge", sections: &["browser"], ..PROGRAMS };
        let config = "[browser]\nring = 9\n[tools.a]\ncommand = [\"no-such-program-anywhere\"]\n";
        let report = examined_as(&bridge, dir.path(), config, &[]);
        assert_eq!(bad(&report), Vec::<&str>::new(), "{}", report.text(Palette::plain()));
        let checks: Vec<&str> = report.findings().map(|finding| finding.check).collect();
        for check in ["programs", "scripts", "lanes", "listener"] {
            assert!(!checks.contains(&check), "{check}");
        }
        assert!(report.text(Palette::plain()).contains("[tools] has no effect"));
        let report = report.with([Finding::bad("extension", "it is gone", "install it")]);
        assert_eq!(report.exit(), Exit::Failed);
    }

    #[test]
    fn a_state_folder_that_cannot_be_is_found() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("state"), "a file").expect("written");
        assert_eq!(bad(&examined(dir.path(), "", &[])), ["state folder"]);
    }
}
