//! An engine in memory with command tools, and a caller.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::{Content, Json};
use raincheck_core::error::Error;
use raincheck_core::ids::TaskId;
use raincheck_core::lifecycle::State;
use raincheck_core::log::Line;
use raincheck_core::scope::Scope;
use raincheck_core::task::{Outcome, Payload};
use raincheck_core::tool::ToolSpec;
use raincheck_process::{CommandTool, Commands};
use raincheck_runtime::{Handle, Options, Request, Submission, View, start};
use tokio_util::sync::CancellationToken;

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The folder of one test and what runs in it.
pub(crate) struct House {
    handle: Handle,
    folder: PathBuf,
}

/// Runs a scenario against an engine that has these tools.
pub(crate) async fn with<F: Future<Output = ()>>(
    tools: impl FnOnce(&Path) -> Vec<CommandTool>,
    scenario: impl FnOnce(House) -> F,
) {
    let folder = tempfile::tempdir().expect("a folder");
    let commands = Commands::new(folder.path().join("tasks"), tools(folder.path()));
    let options = Options::in_memory().with_tools(Arc::new(commands.expect("a root")));
    let (handle, service) = start(options);
    let stop = CancellationToken::new();
    let house = House { handle, folder: folder.path().to_owned() };
    let caller = async {
        scenario(house).await;
        stop.cancel();
    };
    tokio::join!(caller, service.run(stop.clone()));
}

/// Makes a tool of a shell script.
pub(crate) fn shell(folder: &Path, name: &str, script: &str) -> CommandTool {
    program(folder, name, &["sh", "-c", script])
}

/// Makes a tool of a Python program.
pub(crate) fn python(folder: &Path, name: &str, script: &str) -> CommandTool {
    program(folder, name, &["python3", "-c", script])
}

/// Makes a tool of any program.
pub(crate) fn program(folder: &Path, name: &str, argv: &[&str]) -> CommandTool {
    let spec = ToolSpec::new(name, "A tool of a test", Json::empty_object());
    CommandTool::new(spec, argv.iter().map(|text| (*text).to_owned()).collect(), folder)
}

impl House {
    pub(crate) async fn submit(&self, tool: &str, inputs: &str) -> TaskId {
        let inputs = Json::parse(inputs).expect("JSON");
        let request = Request::new(tool, inputs, Scope::local());
        match self.handle.submit(request).await.expect("accepted") {
            Submission::Task(accepted) => accepted.row.id(),
            Submission::Answer(outcome) => panic!("answered {outcome:?}"),
        }
    }

    /// Waits for the end of a task.
    pub(crate) async fn end(&self, id: TaskId) -> End {
        let view = self.handle.wait_end(&Scope::local(), id, PATIENCE).await.expect("found");
        assert!(view.row.state.is_terminal(), "still {}", view.row.state);
        End { state: view.row.state, payload: view.payload.expect("a payload") }
    }

    /// Runs a tool to its end.
    pub(crate) async fn run(&self, tool: &str, inputs: &str) -> End {
        let id = self.submit(tool, inputs).await;
        self.end(id).await
    }

    pub(crate) async fn cancel(&self, id: TaskId) {
        let cancelled = self.handle.cancel(&Scope::local(), id, None).await.expect("found");
        assert!(cancelled.acknowledged);
    }

    /// Waits until a task shows what is asked for.
    pub(crate) async fn until(&self, id: TaskId, is_so: impl Fn(&View) -> bool) -> View {
        let mut watch = self.handle.watch(id);
        let wait = async {
            loop {
                let view = self.handle.view(&Scope::local(), id).await.expect("found");
                if is_so(&view) {
                    return view;
                }
                watch.changed().await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("in time")
    }

    /// Reads a whole log, waiting for its first line.
    pub(crate) async fn log(&self, id: TaskId) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        loop {
            let after = lines.last().map_or(0, |line| line.seq);
            let scope = Scope::local();
            let page = self.handle.logs(&scope, id, after, 1000, PATIENCE).await.expect("read");
            let has_more = page.has_more;
            lines.extend(page.items);
            if !has_more {
                return lines;
            }
        }
    }

    /// Returns the folder of a task.
    pub(crate) fn task(&self, id: TaskId) -> PathBuf {
        self.folder.join("tasks").join(id.to_string())
    }

    /// Returns the folder the tools start in.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// How a task ended.
pub(crate) struct End {
    pub(crate) state: State,
    pub(crate) payload: Arc<Payload>,
}

impl End {
    /// Returns the result as its text.
    pub(crate) fn result(&self) -> &str {
        match &self.payload.outcome {
            Some(Outcome::Succeeded(parts)) => match &parts[..] {
                [Content::Json(json)] => json.get(),
                parts => panic!("{parts:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Returns the error.
    pub(crate) fn error(&self) -> &Error {
        match &self.payload.outcome {
            Some(Outcome::Failed(error)) => error,
            other => panic!("{other:?}"),
        }
    }
}
