//! The filter processes of a server.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::deadline::Deadline;
use super::failure::FilterFailure;
use super::limits::{LimitKind, Limits};
use super::text::Filter;
use super::{Outputs, paths};
use crate::json::View;

mod process;

use process::{Process, Ran};

/// How this program is started as a filter process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildProgram {
    /// The program.
    pub path: PathBuf,
    /// What makes it call [`run_child`](super::run_child).
    pub arguments: Vec<OsString>,
}

impl ChildProgram {
    /// Returns how the program that runs is started again, with these arguments.
    ///
    /// # Errors
    ///
    /// When the system does not say which program runs.
    pub fn of_this_program<A: Into<OsString>>(
        arguments: impl IntoIterator<Item = A>,
    ) -> io::Result<Self> {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Ok(Self { path: std::env::current_exe()?, arguments })
    }
}

/// How filters are run.
#[derive(Debug, Clone)]
pub struct FiltersConfig {
    /// The program that runs them; without one only filters that need no engine run.
    pub program: Option<ChildProgram>,
    /// How many processes there may be at a time.
    pub processes: usize,
    /// After how many runs a process is replaced.
    pub runs_per_process: u32,
}

impl Default for FiltersConfig {
    fn default() -> Self {
        Self { program: None, processes: 2, runs_per_process: 1000 }
    }
}

/// Which body a filter runs on. A process that has parsed it need not do so again, so that two bodies
/// must never have the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BodyKey {
    /// The entry.
    pub id: u128,
    /// How often its body was replaced.
    pub revision: u64,
}

/// Runs filters: those that follow paths on the bytes, all others in a process of their own.
///
/// Processes are started when they are needed, hold the body that they parsed last, and end by themselves
/// when nothing was asked of them for a while.
#[derive(Debug)]
pub struct Filters {
    config: FiltersConfig,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The one used last is last.
    idle: Vec<Process>,
    busy: usize,
}

impl Filters {
    /// Returns what runs filters in this way. No process is started before one is needed.
    #[must_use]
    pub const fn open(config: FiltersConfig) -> Self {
        Self {
            config,
            state: Mutex::new(State { idle: Vec::new(), busy: 0 }),
            freed: Condvar::new(),
        }
    }

    /// Runs a filter on a body; blocks until it is done, at most for [`Limits::wall`] and a little more.
    ///
    /// # Errors
    ///
    /// When the filter fails, meets a limit, or cannot be run.
    pub fn run(
        &self,
        filter: &Filter,
        view: &View<'_>,
        key: BodyKey,
        limits: &Limits,
    ) -> Result<Outputs, FilterFailure> {
        let deadline = Deadline::after(limits.wall);
        if let Some(plan) = filter.plan()
            && let Some(outputs) = paths::run(plan, view, limits, &deadline)?
        {
            return Ok(outputs);
        }
        let Some(program) = &self.config.program else {
            return Err(FilterFailure::Unavailable(
                "there is none here; paths such as `.a[0].b` need none".into(),
            ));
        };
        let held = self.take(key, limits, &deadline)?;
        // Twice: a process may have ended by itself a moment ago.
        let mut process = held;
        for _ in 0..2 {
            let mut fresh = match process.take() {
                Some(process) => process,
                None => match Process::start(program, &deadline) {
                    Ok(process) => process,
                    Err(why) => {
                        self.free(None);
                        return Err(if deadline.is_over() {
                            FilterFailure::limit(limits, LimitKind::Time)
                        } else {
                            FilterFailure::Unavailable(why)
                        });
                    }
                },
            };
            match fresh.run(filter.text(), view, key, limits, &deadline) {
                Ran::EndedBefore => {}
                Ran::Ended(result) => {
                    self.free(None);
                    return result;
                }
                Ran::Lives(result) => {
                    self.free(
                        Some(fresh).filter(|process| process.runs() < self.config.runs_per_process),
                    );
                    return result;
                }
            }
        }
        self.free(None);
        Err(FilterFailure::Unavailable("it ended twice before the run".into()))
    }

    /// Forgets the processes that have ended by themselves, and returns how many are left. To be called
    /// now and then while there are any; no run needs it.
    pub fn tick(&self) -> usize {
        let mut state = self.lock();
        state.idle.retain_mut(|process| !process.has_ended());
        state.idle.len() + state.busy
    }

    /// Ends every idle process, and with it what it holds.
    pub fn clear(&self) {
        self.lock().idle.clear();
    }

    /// Waits for a place, and takes the process that knows the body, or the one used longest ago.
    fn take(
        &self,
        key: BodyKey,
        limits: &Limits,
        deadline: &Deadline,
    ) -> Result<Option<Process>, FilterFailure> {
        let mut state = self.lock();
        while state.busy >= self.config.processes.max(1) {
            let left = deadline.left();
            if left == Duration::ZERO {
                return Err(FilterFailure::limit(limits, LimitKind::Time));
            }
            let waited = self.freed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.busy += 1;
        let known = state.idle.iter().position(|process| process.has(key));
        let is_full = state.busy + state.idle.len() > self.config.processes.max(1);
        let at = known.or(if is_full && !state.idle.is_empty() { Some(0) } else { None });
        Ok(at.map(|at| state.idle.remove(at)))
    }

    fn free(&self, process: Option<Process>) {
        let mut state = self.lock();
        state.busy -= 1;
        state.idle.extend(process);
        drop(state);
        self.freed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
