//! What the binaries say of themselves: help, environment, tools, configuration.
//!
//! The parts are read from programs that were built, so `tidy` leaves them alone; the tests of this
//! crate, which `cargo test --workspace` runs beside fresh binaries, hold them against the pages.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use super::{configuration, tools};

/// How the names of these parts begin.
const PREFIX: &str = "binary:";

/// The folder that holds the binaries of this build.
#[derive(Debug)]
pub(crate) struct Binaries(PathBuf);

impl Binaries {
    /// Finds them beside this program, or one folder up when it is a test.
    pub(crate) fn beside_this_program() -> anyhow::Result<Self> {
        let program = std::env::current_exe()?;
        let folder = program.ancestors().skip(1).find(|folder| folder.join("raincheck").exists());
        let folder = folder.context("`raincheck` is not built; run `cargo build --workspace`")?;
        Ok(Self(folder.to_owned()))
    }

    /// Runs one of them on an empty folder and returns what it printed.
    fn run(&self, binary: &str, arguments: &[&str], input: &str) -> anyhow::Result<String> {
        let folder = scratch()?;
        let mut child = Command::new(self.0.join(binary))
            .args(arguments)
            .env_clear()
            .env("HOME", &folder)
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting `{binary}`"))?;
        child.stdin.take().context("a pipe")?.write_all(input.as_bytes())?;
        let output = child.wait_with_output()?;
        std::fs::remove_dir_all(&folder)?;
        ensure!(output.status.success(), "`{binary} {}`: {}", arguments.join(" "), output.status);
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// Makes an empty folder for one run.
fn scratch() -> anyhow::Result<PathBuf> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("raincheck-xtask-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir(&folder).with_context(|| format!("making `{}`", folder.display()))?;
    Ok(folder)
}

/// Tells whether a part is read from a binary.
pub(super) fn owns(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Returns the text of one part.
pub(super) fn part(binaries: &Binaries, name: &str) -> anyhow::Result<String> {
    let rest = name.strip_prefix(PREFIX).unwrap_or(name);
    let (what, binary) = rest.split_once(':').context("a part without a binary")?;
    match what {
        "help" => help(binaries, binary),
        "environment" => environment(binaries, binary),
        "tools" => {
            tools::list(&binaries.run(binary, &["serve", "--store", "memory"], tools::ASK)?)
        }
        "configuration" => configuration::file(&binaries.run(binary, &["config", "schema"], "")?),
        _ => anyhow::bail!("nothing generates `{name}`"),
    }
}

/// The help of a binary and of each of its subcommands; what every subcommand takes stands once.
fn help(binaries: &Binaries, binary: &str) -> anyhow::Result<String> {
    let whole = binaries.run(binary, &["--help"], "")?;
    let common: Vec<&str> = blocks(&whole).collect();
    let mut text = fenced(&whole);
    let paths = subcommands(&whole).into_iter().map(|name| vec![name.to_owned()]);
    let mut waiting: Vec<Vec<String>> = paths.rev().collect();
    while let Some(path) = waiting.pop() {
        let mut arguments: Vec<&str> = path.iter().map(String::as_str).collect();
        arguments.push("--help");
        let own = binaries.run(binary, &arguments, "")?;
        let below =
            subcommands(&own).into_iter().map(|name| [&path[..], &[name.to_owned()]].concat());
        waiting.extend(below.rev());
        let left: Vec<&str> = blocks(&own).filter(|block| !common.contains(block)).collect();
        let is_kept = |(at, block): &(usize, &&str)| !is_bare(block, left.get(at + 1));
        let kept: Vec<&str> =
            left.iter().enumerate().filter(is_kept).map(|(_, block)| *block).collect();
        let _ =
            write!(text, "\n### `{binary} {}`\n\n{}", path.join(" "), fenced(&kept.join("\n\n")));
    }
    Ok(text)
}

/// Tells whether a block is a heading whose options were all left out.
fn is_bare(block: &str, next: Option<&&str>) -> bool {
    block.ends_with(':') && next.is_none_or(|next| !next.starts_with(' '))
}

/// Splits help into its paragraphs; a heading stands apart from its first option.
fn blocks(help: &str) -> impl Iterator<Item = &str> {
    help.split("\n\n")
        .flat_map(|block| match block.split_once(":\n") {
            Some((head, rest)) if !head.contains('\n') && rest.trim_start().starts_with('-') => {
                vec![block.get(..=head.len()).unwrap_or(block), rest]
            }
            _ => vec![block],
        })
        .map(str::trim_end)
        .filter(|block| !block.trim().is_empty() && !block.trim_start().starts_with("-h, --help"))
}

/// Returns the subcommands that a help names.
fn subcommands(help: &str) -> Vec<&str> {
    let listed = help.split_once("Commands:\n").map_or("", |(_, rest)| rest);
    let listed = listed.split("\n\n").next().unwrap_or_default();
    listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect()
}

fn fenced(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    format!("```text\n{}\n```\n", lines.join("\n"))
}

/// Lists the variables that a binary reads, with the flag that each stands for.
fn environment(binaries: &Binaries, binary: &str) -> anyhow::Result<String> {
    Ok(variables(&binaries.run(binary, &["--help"], "")?))
}

/// Lists the variables of a help.
fn variables(help: &str) -> String {
    let mut text = String::from("| variable | flag | meaning |\n|---|---|---|\n");
    let mut flag = "";
    let mut about = "";
    for line in help.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("--") {
            flag = name.split_whitespace().next().unwrap_or(name);
            about = "";
        } else if let Some(variable) = line.strip_prefix("[env: ") {
            // Where the value may be a secret, it is left out together with its sign.
            let variable = variable.split(['=', ']']).next().unwrap_or(variable);
            let _ = writeln!(text, "| `{variable}` | `--{flag}` | {} |", about.replace('|', "\\|"));
        } else if about.is_empty() {
            about = line;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "About\n\nUsage: x\n\nCommands:\n  one   The first\n  help  This\n\nOptions:\n      --a <A>\n          An a\n          \n          [env: X_A=]\n\n  -h, --help\n          Print\n\nMore:\n      --b\n          A b\n";

    #[test]
    fn a_variable_is_its_name_whether_or_not_its_value_is_shown() {
        let help = "      --a <A>\n          An a\n\n          [env: X_A=]\n      --b <B>\n          A b\n\n          [env: X_B]\n";
        let rows: Vec<String> = variables(help).lines().skip(2).map(str::to_owned).collect();
        assert_eq!(rows, ["| `X_A` | `--a` | An a |", "| `X_B` | `--b` | A b |"]);
    }

    #[test]
    fn a_heading_stands_apart_and_what_all_have_is_left_out() {
        let all: Vec<&str> = blocks(HELP).collect();
        assert_eq!(all.len(), 7, "{all:?}");
        assert_eq!(subcommands(HELP), ["one"]);
        assert!(is_bare("Options:", Some(&"More:")) && is_bare("More:", None));
        assert!(!is_bare("Options:", Some(&"      --a")));
    }
}
