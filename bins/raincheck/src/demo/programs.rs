//! The four programs of the demo: this binary again, as any program would be.
//!
//! They know nothing of Raincheck but the contract of command tools: JSON on standard input, files
//! and a control channel named by environment variables, an exit code.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use raincheck::Role;
use serde_json::{Value, json};
use tokio::runtime;

/// The programs, as roles of this binary.
pub(crate) const ROLES: &[Role] = &[RENDER, FAIL, ENDLESS, LIST];

/// Renders a picture frame by frame.
pub(super) const RENDER: Role = Role { name: "demo-render", run: || ended(run(render())) };

/// Fails and says why.
pub(super) const FAIL: Role = Role { name: "demo-fail", run: || ended(fail()) };

/// Never ends by itself.
pub(super) const ENDLESS: Role = Role { name: "demo-endless", run: || ended(run(endless())) };

/// Answers with more than a model can read.
pub(super) const LIST: Role = Role { name: "demo-list", run: || ended(list()) };

/// How many objects the list has.
pub(super) const N_OBJECTS: u64 = 2000;

/// The file, in the folder it is started in, where `render` notes each of its starts.
pub(super) const STARTS: &str = "starts.log";

/// How long one frame takes.
const FRAME: Duration = Duration::from_millis(150);

/// The exit code of a program that found its input unusable.
const UNUSABLE: u8 = 3;

/// Draws the picture of a number of frames; the demo draws it again to compare.
pub(super) fn picture(n_frames: u64) -> String {
    let bars: String = (0..n_frames)
        .map(|n| {
            format!("  <rect x=\"{}\" y=\"10\" width=\"8\" height=\"{}\"/>\n", n * 10, 10 + n * 5)
        })
        .collect();
    format!("<svg xmlns=\"http://www.w3.org/2000/svg\">\n{bars}</svg>\n")
}

fn run(program: impl Future<Output = io::Result<ExitCode>>) -> io::Result<ExitCode> {
    runtime::Builder::new_current_thread().enable_time().build()?.block_on(program)
}

fn ended(result: io::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "{error}");
        ExitCode::FAILURE
    })
}

async fn render() -> io::Result<ExitCode> {
    let n_frames = inputs()?.get("frames").and_then(Value::as_u64).unwrap_or(1);
    let mut control = control()?;
    note_start()?;
    for n in 1..=n_frames {
        tokio::time::sleep(FRAME).await;
        writeln!(io::stdout(), "frame {n} of {n_frames} rendered")?;
        let percent = 100 * n / n_frames;
        let progress = json!({ "percent": percent, "step": n, "step_total": n_frames });
        writeln!(control, "{}", json!({ "progress": progress }))?;
    }
    let picture = picture(n_frames);
    fs::write(named("RAINCHECK_ARTIFACTS_DIR")?.join("picture.svg"), &picture)?;
    writeln!(control, "{}", json!({ "artifact": { "path": "picture.svg", "kind": "image" } }))?;
    let result = json!({ "frames": n_frames, "bytes": picture.len() });
    fs::write(named("RAINCHECK_RESULT_FILE")?, result.to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn fail() -> io::Result<ExitCode> {
    let scene = inputs()?;
    let name = scene.get("scene").and_then(Value::as_str).unwrap_or("?");
    let mut err = io::stderr();
    writeln!(err, "loading {name}")?;
    writeln!(err, "texture wood.png: no such texture")?;
    Ok(ExitCode::from(UNUSABLE))
}

fn list() -> io::Result<ExitCode> {
    inputs()?;
    let object = |n: u64| {
        let kind = if n % 50 == 7 { "light" } else { "mesh" };
        json!({ "name": format!("{kind} {n}"), "kind": kind, "shadow": n % 100 == 7,
                "position": [n, n * 2, n * 3] })
    };
    let scene =
        json!({ "scene": "house", "objects": (0..N_OBJECTS).map(object).collect::<Vec<_>>() });
    fs::write(named("RAINCHECK_RESULT_FILE")?, scene.to_string())?;
    Ok(ExitCode::SUCCESS)
}

async fn endless() -> io::Result<ExitCode> {
    let mut control = control()?;
    for n in 1_u64.. {
        writeln!(control, "{}", json!({ "progress": { "phase": "waiting", "step": n } }))?;
        tokio::time::sleep(FRAME).await;
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds a line with the task and the attempt to the list of starts.
fn note_start() -> io::Result<()> {
    let (task, attempt) = (named("RAINCHECK_TASK_ID")?, named("RAINCHECK_ATTEMPT")?);
    let mut starts = OpenOptions::new().create(true).append(true).open(STARTS)?;
    writeln!(starts, "{} {}", task.display(), attempt.display())
}

fn inputs() -> io::Result<Value> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// Opens the control channel by the number that the environment names.
fn control() -> io::Result<File> {
    let number = named("RAINCHECK_CONTROL_FD")?;
    OpenOptions::new().append(true).open(PathBuf::from("/dev/fd").join(number))
}

fn named(variable: &str) -> io::Result<PathBuf> {
    let missing = || io::Error::other(format!("{variable} is not set"));
    env::var_os(variable).map(PathBuf::from).ok_or_else(missing)
}
