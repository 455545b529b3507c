//! The set of command tools of one server.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{TaskId, ToolName};
use raincheck_core::store::Durability;
use raincheck_core::task::Outcome;
use raincheck_core::time::Timestamp;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{
    Attempt, Call, Executor, Route, StartReport, TaskContext, TaskPlan, ToolSet,
};

use crate::attempt;
use crate::leftovers;
use crate::supervisor::Supervisor;
#[cfg(unix)]
use crate::supervisor::Supervisors;
use crate::tool::CommandTool;

/// What a task's cancel grace has beyond the tool's own, so that the executor's word comes first.
const GRACE_MARGIN: Duration = Duration::from_secs(8);

/// How long the artifacts of an attempt may take beyond its run limit: the most that may be kept,
/// from a slow disk.
const COLLECTING: Duration = Duration::from_secs(600);

/// Command tools, and the folder that holds what their tasks leave.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use raincheck_core::content::Json;
/// use raincheck_core::tool::ToolSpec;
/// use raincheck_process::{CommandTool, Commands};
/// use raincheck_runtime::Options;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let spec = ToolSpec::new("render", "Renders a scene", Json::parse(r#"{"type":"object"}"#)?);
/// let argv = vec!["python3".to_owned(), "render.py".to_owned()];
/// let render = CommandTool::new(spec, argv, "/srv/scenes");
/// let commands = Commands::new("/var/lib/raincheck/tasks", vec![render])?;
/// let options = Options::in_memory().with_tools(Arc::new(commands));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Commands {
    shelf: Arc<Shelf>,
    is_of_one_store: IsOfOneStore,
}

/// Tells whether the store of the engine is the only one whose tasks are below the root.
#[derive(Clone)]
struct IsOfOneStore(Arc<dyn Fn() -> bool + Send + Sync>);

impl fmt::Debug for IsOfOneStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IsOfOneStore")
    }
}

#[derive(Debug)]
struct Shelf {
    root: PathBuf,
    tools: BTreeMap<ToolName, CommandTool>,
    #[cfg(unix)]
    supervisors: Supervisors,
    /// Whether programs are given supervisors.
    is_supervised: bool,
    /// Whether it was said that programs do not outlive this process.
    is_warned: AtomicBool,
}

impl Commands {
    /// Makes a set whose tasks live below `root`, each in a folder named after its id.
    ///
    /// A relative `root`, and a relative folder of a tool, start at the working folder of this process
    /// as it is now.
    ///
    /// Artifacts stay at `<root>/<task id>/` and [`Artifact::path`] until the task is forgotten.
    ///
    /// # Errors
    /// When the working folder of this process is gone, so that a relative path has no place.
    ///
    /// [`Artifact::path`]: raincheck_core::task::Artifact::path
    pub fn new(root: impl AsRef<Path>, tools: Vec<CommandTool>) -> io::Result<Self> {
        let root = std::path::absolute(root)?;
        let placed = tools.into_iter().map(|tool| {
            let folder = std::path::absolute(&tool.folder)?;
            Ok((tool.spec.name.clone(), CommandTool { folder, ..tool }))
        });
        let tools = placed.collect::<io::Result<_>>()?;
        let is_of_one_store = IsOfOneStore(Arc::new(|| false));
        Ok(Self { shelf: Arc::new(Shelf::new(root, tools, None)), is_of_one_store })
    }

    /// Removes the folders of tasks that the store does not have, each time the engine has opened it:
    /// what a server left that was killed before it had committed the task, or before it had removed the
    /// files of one that is forgotten. A folder in which a supervisor lives stays.
    ///
    /// `is_of_one_store` is asked before that. It has to be `false` where another store has tasks below
    /// the same root.
    #[must_use]
    pub fn clearing_leftovers(
        self,
        is_of_one_store: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { is_of_one_store: IsOfOneStore(Arc::new(is_of_one_store)), ..self }
    }

    /// Gives every program a supervisor, so that it outlives this process and is taken up by the next.
    ///
    /// It needs an engine that keeps its log in [files](raincheck_runtime::FileLogs); with any other
    /// the programs run under this process.
    #[must_use]
    pub fn supervised_by(self, supervisor: impl Into<Option<Supervisor>>) -> Self {
        let Shelf { root, tools, .. } = &*self.shelf;
        let (root, tools) = (root.clone(), tools.clone());
        Self { shelf: Arc::new(Shelf::new(root, tools, supervisor.into())), ..self }
    }
}

/// Returns when the program of an attempt ended, if it has and no server has recorded that yet.
///
/// `root` is the folder that [`Commands::new`] was given. While a server runs it records an end at
/// once; without one the end waits in the folder of the attempt for the next server.
#[must_use]
pub fn unrecorded_end(root: &Path, id: TaskId, attempt: u32) -> Option<Timestamp> {
    #[cfg(unix)]
    {
        attempt::unrecorded_end(root, id, attempt)
    }
    #[cfg(not(unix))]
    {
        let _ = (root, id, attempt);
        None
    }
}

#[async_trait]
impl ToolSet for Commands {
    fn specs(&self) -> Vec<ToolSpec> {
        self.shelf.tools.values().map(|tool| tool.spec.clone()).collect()
    }

    async fn route(&self, call: &Call) -> Result<Route, Error> {
        let tool = self.shelf.find(&call.tool)?;
        let mut placement = TaskPlan::from_spec(&tool.spec);
        placement.limits.grace = tool.grace + GRACE_MARGIN;
        // The limit is kept where the program is; the engine only steps in when that fails. It cannot
        // tell a program that runs from artifacts that are being taken.
        placement.limits.run_margin = tool.grace + GRACE_MARGIN + COLLECTING;
        if self.shelf.start_report() == StartReport::ByExecutor {
            // Only the folder of the attempt proves that nothing ran; time does not.
            placement.limits.accept = Duration::MAX;
        }
        Ok(Route::Task(Box::new(placement)))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::clone(&self.shelf) as Arc<dyn Executor>
    }

    fn artifacts(&self) -> Option<PathBuf> {
        Some(self.shelf.root.clone())
    }

    async fn leftovers(&self) -> Vec<TaskId> {
        let (shelf, is_of_one_store) = (Arc::clone(&self.shelf), self.is_of_one_store.clone());
        let look =
            move || if is_of_one_store.0() { leftovers::of(&shelf.root) } else { Ok(Vec::new()) };
        attempt::blocking(look).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "what earlier servers left cannot be seen");
            Vec::new()
        })
    }

    async fn forget(&self, ids: &[TaskId]) {
        for id in ids {
            let folder = self.shelf.root.join(id.to_string());
            match tokio::fs::remove_dir_all(&folder).await {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(task = %id, %error, "the files of a forgotten task remain");
                }
                Ok(()) | Err(_) => {}
            }
        }
    }
}

#[async_trait]
impl Executor for Shelf {
    async fn execute(&self, attempt: Attempt, context: TaskContext) -> Outcome {
        let tool = match self.find(&attempt.record.task.tool) {
            Ok(tool) => tool,
            Err(error) => return Outcome::Failed(error),
        };
        #[cfg(unix)]
        if self.is_supervised && context.protocol().log_folder().is_some() {
            let supervisors = &self.supervisors;
            return attempt::run_apart(tool, &self.root, supervisors, attempt, &context).await;
        }
        self.warn(&context);
        if self.start_report() == StartReport::ByExecutor
            && let Err(error) = context.protocol().runs().await
        {
            return Outcome::Failed(error);
        }
        attempt::run(tool, &self.root, attempt, &context).await
    }

    #[cfg(unix)]
    async fn reattach(&self, attempt: Attempt, context: TaskContext) -> Option<Outcome> {
        let (root, supervisors) = (&self.root, &self.supervisors);
        match self.find(&attempt.record.task.tool) {
            Ok(tool) => attempt::reattach(tool, root, supervisors, &attempt, &context).await,
            Err(_) => attempt::reattach_stranger(root, supervisors, &attempt, &context).await,
        }
    }

    async fn on_outcome_committed(&self, id: TaskId, number: u32) {
        #[cfg(unix)]
        self.supervisors.kept(id, number).await;
        #[cfg(unix)]
        if self.is_supervised {
            attempt::prepare(&self.root, &self.supervisors);
        }
        attempt::let_go(&self.root, id, number).await;
    }

    fn start_report(&self) -> StartReport {
        if self.is_supervised { StartReport::ByExecutor } else { StartReport::BeforeHandOver }
    }
}

impl Shelf {
    fn new(
        root: PathBuf,
        tools: BTreeMap<ToolName, CommandTool>,
        supervisor: Option<Supervisor>,
    ) -> Self {
        Self {
            root,
            tools,
            is_supervised: cfg!(unix) && supervisor.is_some(),
            #[cfg(unix)]
            supervisors: Supervisors::new(supervisor),
            is_warned: AtomicBool::new(false),
        }
    }

    fn find(&self, name: &ToolName) -> Result<&CommandTool, Error> {
        self.tools
            .get(name)
            .ok_or_else(|| Error::new(Kind::UnknownTool, format!("no tool is named `{name}`")))
    }

    /// Says once that programs do not outlive this process, where somebody may expect it.
    fn warn(&self, context: &TaskContext) {
        if context.durability() != Durability::None && !self.is_warned.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                "programs run under this process and end with it; for supervisors of their own the \
                 binary has to enter through `child_main` and the log has to be kept in files"
            );
        }
    }
}
