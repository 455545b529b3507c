//! A Chromium of the demo's own: headless, with a fresh profile and the extension.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Unmet;

/// Names the program to use.
const VARIABLE: &str = "CHROMIUM";

/// What it is called, the best first.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// From this version on Google Chrome takes no extension from its command line.
const CHROME_REFUSES: u32 = 142;

/// How it is started.
const FLAGS: &[&str] = &[
    "--headless=new",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    // Chrome 137 to 141 take an extension only so.
    "--disable-features=DisableLoadExtensionCommandLineSwitch",
    "--no-default-browser-check",
    "--no-first-run",
];

/// How long it has to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many of its last lines are kept.
const N_LINES: usize = 8;

/// A program that can be started, and what it calls itself.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    pub(super) version: String,
}

/// Why there is no program.
#[derive(Debug)]
pub(super) struct Missing(String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Finds a Chromium that takes the extension.
pub(super) async fn find() -> Result<Program, Missing> {
    let path = match env::var_os(VARIABLE).filter(|name| !name.is_empty()) {
        Some(name) => on_path(&name).ok_or_else(|| {
            Missing(format!("{VARIABLE} is `{}`, and that is no program", name.display()))
        })?,
        None => NAMES
            .iter()
            .find_map(|name| on_path(OsStr::new(name)))
            .ok_or_else(|| Missing(format!("no program is called {}", NAMES.join(", "))))?,
    };
    let asked = Command::new(&path).arg("--version").stdin(Stdio::null()).output().await;
    let told = asked.ok().filter(|told| told.status.success());
    let Some(told) = told else {
        return Err(Missing(format!("`{}` does not start", path.display())));
    };
    let version = String::from_utf8_lossy(&told.stdout).trim().to_owned();
    if refuses_extensions(&version) {
        return Err(Missing(format!("{version} takes no extension from its command line")));
    }
    Ok(Program { path, version })
}

/// Finds a program as a shell does.
fn on_path(name: &OsStr) -> Option<PathBuf> {
    let is_path = Path::new(name).components().count() > 1;
    if is_path {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Reads what a program calls itself. Chromium, and Chrome for Testing, take extensions.
fn refuses_extensions(version: &str) -> bool {
    let number = version.strip_prefix("Google Chrome ").and_then(|rest| rest.split('.').next());
    number.and_then(|number| number.parse().ok()).is_some_and(|major: u32| major >= CHROME_REFUSES)
}

/// A running Chromium. It ends with the demo, whatever becomes of that.
#[derive(Debug)]
pub(super) struct Chromium {
    child: Child,
    /// Its debugging pipe. Nothing is said on it: Chromium ends when it closes.
    pipe: (Option<ChildStdin>, Option<ChildStdout>),
    /// Its last lines, once nobody can write any more.
    said: JoinSet<Vec<String>>,
}

impl Chromium {
    /// Starts it with the extension of a folder; all that it writes goes into another.
    pub(super) fn start(program: &Program, extension: &Path, folder: &Path) -> Result<Self, Unmet> {
        let mut command = command(&program.path);
        command.args(FLAGS);
        if is_root() {
            command.arg("--no-sandbox");
        }
        let with = |flag: &str, path: &Path| {
            let mut argument = std::ffi::OsString::from(flag);
            argument.push(path);
            argument
        };
        command
            .arg(with("--user-data-dir=", &folder.join("profile")))
            .arg(with("--load-extension=", extension))
            .arg("about:blank");
        for variable in ["HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
            command.env(variable, folder);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn()?;
        let mut said = JoinSet::new();
        if let Some(stderr) = child.stderr.take() {
            said.spawn(last_lines(stderr));
        }
        let pipe = (child.stdin.take(), child.stdout.take());
        Ok(Self { child, pipe, said })
    }

    /// Ends it, and waits until none of its processes is left. Returns its last lines.
    pub(super) async fn close(mut self) -> Result<Vec<String>, Unmet> {
        let group = self.child.id();
        drop(self.pipe);
        if timeout(PATIENCE, self.child.wait()).await.is_err() {
            kill(group);
            self.child.kill().await?;
        }
        // All its processes have the stream that it complains to: with the last of them it ends.
        match timeout(PATIENCE, self.said.join_next()).await {
            Ok(said) => Ok(said.and_then(Result::ok).unwrap_or_default()),
            Err(_) => {
                kill(group);
                Err(Unmet("processes of Chromium outlived it and were killed".into()))
            }
        }
    }
}

/// Reads to the end and keeps the last lines.
async fn last_lines(stream: impl AsyncRead + Unpin) -> Vec<String> {
    let mut lines = BufReader::new(stream).split(b'\n');
    let mut last = Vec::new();
    while let Ok(Some(line)) = lines.next_segment().await {
        let line = String::from_utf8_lossy(&line).into_owned();
        tracing::debug!(line, "Chromium");
        if last.len() == N_LINES {
            last.remove(0);
        }
        last.push(line);
    }
    last
}

/// Makes a command in a process group of its own, whose standard streams are its debugging pipe.
#[cfg(unix)]
fn command(program: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#]);
    command.arg(program).arg("--remote-debugging-pipe").process_group(0);
    command
}

#[cfg(not(unix))]
fn command(program: &Path) -> Command {
    Command::new(program)
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// Kills a process group that this process made.
#[cfg(unix)]
fn kill(group: Option<u32>) {
    use rustix::process::{Pid, Signal, kill_process_group};

    let group = group.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    if let Some(group) = group {
        // One that is gone already is as good.
        kill_process_group(group, Signal::KILL).ok();
    }
}

#[cfg(not(unix))]
fn kill(_group: Option<u32>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_chrome_itself_refuses_extensions_and_only_later_ones() {
        for (version, refuses) in [
            ("Chromium 156.0.8078.108 built on Debian GNU/Linux 12 (bookworm)", false),
            ("Google Chrome for Testing 150.0.7000.1", false),
            ("Google Chrome 141.0.7390.54", false),
            ("Google Chrome 142.0.7444.59", true),
            ("Google Chrome", false),
            ("", false),
        ] {
            assert_eq!(refuses_extensions(version), refuses, "{version}");
        }
    }
}
