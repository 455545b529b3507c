//! An engine in memory with command tools, and a caller.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::{Content, Json};
use raincheck_core::error::Error;
use raincheck_core::ids::{LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::lifecycle::State;
use raincheck_core::log::Line;
use raincheck_core::scope::Scope;
use raincheck_core::store::{Claim, Submit, TaskStore};
use raincheck_core::task::{Limits, Outcome, Resources, Task, TaskDetails};
use raincheck_core::tool::ToolSpec;
use raincheck_process::{CommandTool, Commands, Supervisor};
use raincheck_runtime::{
    Clock as _, FileLogs, Handle, Ids as _, Options, OsIds, Request, Submission, SystemClock, View,
    start,
};
use tokio_util::sync::CancellationToken;

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a program of a test may run.
const LONGEST: Duration = Duration::from_secs(180);

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
    let scenario = async |house| scenario(house).await;
    let folder = tempfile::tempdir().expect("a folder");
    run(options(folder.path(), tools(folder.path())), folder.path(), scenario).await;
}

/// Makes an engine whose programs have supervisors, which are this test program again.
pub(crate) fn options(folder: &Path, tools: Vec<CommandTool>) -> Options {
    options_for(folder, tools, &ROLE)
}

/// Makes an engine whose programs have supervisors, which are this test program in a role.
pub(crate) fn options_for(folder: &Path, tools: Vec<CommandTool>, role: &[&str]) -> Options {
    let tasks = folder.join("tasks");
    let supervisor = Supervisor::of_this_program(role).expect("this program");
    let commands = Commands::new(&tasks, tools).expect("a root").supervised_by(supervisor);
    Options::in_memory().with_tools(Arc::new(commands)).with_logs(Arc::new(FileLogs::new(tasks)))
}

/// Runs a scenario against an engine, from its start to its polite end.
pub(crate) async fn run<T>(
    options: Options,
    folder: &Path,
    scenario: impl AsyncFnOnce(House) -> T,
) -> T {
    let (handle, service) = start(options);
    let stop = CancellationToken::new();
    let house = House::of(handle, folder);
    let caller = async {
        let told = scenario(house).await;
        stop.cancel();
        told
    };
    tokio::join!(caller, service.run(stop.clone())).0
}

/// Leaves a task in a store whose attempt was leased, and no more, when the server was cut off.
pub(crate) async fn leased(store: &dyn TaskStore, tool: &str) -> TaskId {
    let now = SystemClock::new().now();
    let lane = LaneId::from("cpu_standard");
    store.set_lane(lane.clone(), lane::Config::new(1, 1)).await.expect("a lane");
    let task = Task {
        id: OsIds.task(now),
        scope: Scope::local(),
        tool: tool.into(),
        lane: lane.clone(),
        priority: 0,
        tags: Vec::new(),
        key: None,
        inputs_hash: 0,
        limits: Limits::default(),
        resources: Resources::default(),
        supports_cancel: true,
        is_idempotent: false,
        retry: Default::default(),
        trace: None,
        submitted_at: now,
    };
    let id = task.id;
    let submit = Submit {
        task,
        inputs: Json::empty_object(),
        waiting: None,
        is_inline: false,
        is_known: false,
    };
    let claim = Claim { lanes: vec![lane], n: 1 };
    let posted = store.submit(now, vec![submit], Some(claim)).await.expect("accepted");
    assert_eq!(posted.value.1.len(), 1, "leased");
    id
}

/// Tells whether a process runs; one that has ended and was not waited for does not.
pub(crate) fn runs(pid: &str) -> bool {
    let state = std::process::Command::new("ps")
        .args(["-o", "stat=", "-p", pid])
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match state {
        Ok(state) => !state.is_empty() && !state.starts_with('Z'),
        // No `ps` here: the process table itself.
        Err(_) => std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z ")),
    }
}

/// The arguments that make this test program a supervisor: they select one test, and the last one
/// is no test's name but tells it that it is meant.
pub(crate) const ROLE: [&str; 4] =
    ["--exact", "--nocapture", "harness::this_program_is_a_supervisor_where_it_is_told_to", MARK];

const MARK: &str = "as-a-supervisor";

#[test]
fn this_program_is_a_supervisor_where_it_is_told_to() {
    if std::env::args().any(|argument| argument == MARK) {
        let _ = raincheck_process::supervisor_main();
    }
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
    let mut spec = ToolSpec::new(name, "A tool of a test", Json::empty_object());
    // Should the test be cut off, its programs end all the same.
    spec.run_timeout = Some(LONGEST);
    CommandTool::new(spec, argv.iter().map(|text| (*text).to_owned()).collect(), folder)
}

impl House {
    pub(crate) fn of(handle: Handle, folder: &Path) -> Self {
        Self { handle, folder: folder.to_owned() }
    }

    pub(crate) async fn submit(&self, tool: &str, inputs: &str) -> TaskId {
        let inputs = Json::parse(inputs).expect("JSON");
        self.submit_as(Request::new(tool, inputs, Scope::local())).await
    }

    pub(crate) async fn submit_as(&self, request: Request) -> TaskId {
        match self.handle.submit(request).await.expect("accepted") {
            Submission::Task(accepted) => accepted.record.id(),
            Submission::Answer(outcome) => panic!("answered {outcome:?}"),
        }
    }

    /// Waits for the end of a task.
    pub(crate) async fn end(&self, id: TaskId) -> End {
        let view = self.handle.wait_end(&Scope::local(), id, PATIENCE).await.expect("found");
        assert!(view.record.state.is_terminal(), "still {}", view.record.state);
        End { state: view.record.state, payload: view.payload.expect("a payload") }
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

    /// Reads a log once it has so many lines.
    pub(crate) async fn lines(&self, id: TaskId, n: usize) -> Vec<Line> {
        let wait = async {
            let mut watch = self.handle.watch(id);
            loop {
                let lines = self.log(id).await;
                if lines.len() >= n {
                    return lines;
                }
                watch.changed().await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("in time")
    }

    /// Reads the states that a task went through.
    pub(crate) async fn history(&self, id: TaskId) -> Vec<State> {
        let events = self.handle.events(&Scope::local(), id).await.expect("found");
        events.iter().map(|event| event.to).collect()
    }

    /// Returns the folder of a task.
    pub(crate) fn task(&self, id: TaskId) -> PathBuf {
        self.folder.join("tasks").join(id.to_string())
    }

    /// Waits until nothing of a task is left but its log and its artifacts.
    pub(crate) async fn is_tidy(&self, id: TaskId) -> bool {
        let attempt = self.task(id).join("a1");
        let gone = async {
            while attempt.exists() || attempt.with_extension("supervisor").exists() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, gone).await.is_ok()
    }

    /// Returns the folder the tools start in.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// How a task ended.
pub(crate) struct End {
    pub(crate) state: State,
    pub(crate) payload: Arc<TaskDetails>,
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
