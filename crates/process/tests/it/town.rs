//! A town where servers come and go.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::ids::TaskId;
use raincheck_core::lifecycle::State;
use raincheck_process::CommandTool;
use raincheck_runtime::{Options, start};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{self, End, House, ROLE};
use crate::outliving::Outliving;

/// One folder and one store, and the servers that come and go.
pub(crate) struct Town {
    _folder: tempfile::TempDir,
    pub(crate) folder: PathBuf,
    pub(crate) store: Arc<Outliving>,
    pub(crate) tools: fn(&Path) -> Vec<CommandTool>,
    /// What this test program is told when it is started as a supervisor.
    pub(crate) role: &'static [&'static str],
}

impl Town {
    pub(crate) fn new(tools: fn(&Path) -> Vec<CommandTool>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // No socket may have a path as long as this one.
        let deep = folder.path().join("d".repeat(120));
        std::fs::create_dir(&deep).expect("a folder");
        Self { folder: deep, _folder: folder, store: Arc::default(), tools, role: &ROLE }
    }

    pub(crate) fn options(&self) -> Options {
        let store = Arc::clone(&self.store);
        let tools = (self.tools)(&self.folder);
        harness::options_for(&self.folder, tools, self.role).with_store(store)
    }

    /// Runs a server that is cut off when the scenario is over.
    pub(crate) fn crash<T>(&self, scenario: impl AsyncFnOnce(House) -> T) -> T {
        let runtime = runtime();
        let told = runtime.block_on(async {
            let (handle, service) = start(self.options());
            tokio::task::LocalSet::new()
                .run_until(async {
                    tokio::task::spawn_local(service.run(Default::default()));
                    scenario(House::of(handle, &self.folder)).await
                })
                .await
        });
        runtime.shutdown_background();
        told
    }

    /// Runs a server that ends politely after the scenario.
    pub(crate) fn serve<T>(&self, scenario: impl AsyncFnOnce(House) -> T) -> T {
        let runtime = runtime();
        let told = runtime.block_on(harness::run(self.options(), &self.folder, scenario));
        runtime.shutdown_background();
        told
    }

    pub(crate) fn end(&self, id: TaskId) -> End {
        self.serve(async |house| house.end(id).await)
    }

    pub(crate) fn attempt(&self, id: TaskId) -> PathBuf {
        self.folder.join("tasks").join(id.to_string()).join("a1")
    }

    /// Returns the folder of the supervisor of a task's first attempt.
    pub(crate) fn supervisor(&self, id: TaskId) -> PathBuf {
        self.attempt(id).with_extension("supervisor")
    }

    pub(crate) fn touch(&self, name: &str) {
        std::fs::write(self.folder.join(name), "").expect("a file");
    }

    /// Waits, without any server, until the end of an attempt is written down.
    pub(crate) fn wait_for_end(&self, id: TaskId) {
        let end = self.supervisor(id).join("end.json");
        while !end.exists() {
            std::thread::yield_now();
        }
    }
}

impl Drop for Town {
    /// Ends what a test that failed has left running.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let works_in = std::fs::read_link(process.path().join("cwd"));
            let pid = process.file_name().to_str().and_then(|name| name.parse().ok());
            // A supervisor works in its own folder, below that of the test.
            if works_in.is_ok_and(|it| it.starts_with(self.folder.join("tasks")))
                && let Some(pid) = pid.and_then(Pid::from_raw)
            {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

pub(crate) fn kill(pid: &str) {
    let pid = Pid::from_raw(pid.parse().expect("a number")).expect("not 0");
    kill_process(pid, Signal::KILL).expect("killed");
}

pub(crate) fn is_lost(end: &End) {
    let error = end.error();
    let told = (end.state, error.kind, error.guarantee());
    assert_eq!(told, (State::Failed, Kind::WorkerLost, Some(Guarantee::Unknown)));
}
