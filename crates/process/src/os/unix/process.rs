//! One running program and its tree.

use std::ffi::OsString;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::signal::unix;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::raw;
use super::tree::{Member, Tree};
use crate::os::{Exit, Usage};

/// How long what a program left running may take to end by itself, such as the reader at the end of
/// a pipe.
const LINGER: Duration = Duration::from_millis(500);

/// How long it then has between being asked to end and being killed.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);

/// How often a tree without its leader is looked at: nothing tells of the end of a stranger's child.
const LOOK: Duration = Duration::from_millis(20);

/// The longest pause between two looks at a tree that was killed.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// A program that was started, until its end is taken.
///
/// Its number cannot be given to another process before [`reap`](Self::reap), so signals to its
/// group never reach a stranger. Dropping it kills the whole tree.
#[derive(Debug)]
pub(crate) struct Process {
    pid: Pid,
    changes: unix::Signal,
    tree: Arc<Mutex<Tree>>,
    is_reaped: bool,
}

impl Process {
    pub(super) fn new(pid: Pid, changes: unix::Signal, mark: OsString) -> Self {
        let tree = Arc::new(Mutex::new(Tree::new(pid, mark)));
        Self { pid, changes, tree, is_reaped: false }
    }

    /// Returns what weighs the tree while it is waited for.
    pub(crate) fn scale(&self) -> Scale {
        Scale(Arc::clone(&self.tree))
    }

    /// Tells whether the program itself has ended.
    pub(crate) fn has_ended(&self) -> io::Result<bool> {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(self.pid), how)?.is_some())
    }

    /// Waits for the end of the program itself.
    ///
    /// # Cancel safety
    /// Safe: an end is never consumed.
    pub(crate) async fn ended(&mut self) -> io::Result<()> {
        while !self.has_ended()? {
            if self.changes.recv().await.is_none() {
                return Err(io::Error::other("the system tells of no ends any more"));
            }
        }
        Ok(())
    }

    /// Ends what the program left running after its own end, and returns how many that were.
    pub(crate) async fn settle(&mut self) -> usize {
        let left = self.survey().await;
        if left.is_empty() || self.is_gone_by(Instant::now() + LINGER).await {
            return 0;
        }
        let left = self.survey().await;
        self.signal(&left, Signal::TERM);
        if !self.is_gone_by(Instant::now() + LEFTOVER_GRACE).await {
            self.kill().await;
        }
        left.len()
    }

    /// Asks the program's group to end, and kills the whole tree when it has not after `grace`.
    ///
    /// Returns when nothing of the tree is left.
    pub(crate) async fn stop(&mut self, grace: Duration) {
        let until = Instant::now() + grace;
        // Parents are known only while they live, so the tree is looked at before and after.
        self.survey().await;
        let _ = kill_process_group(self.pid, Signal::TERM);
        self.survey().await;
        let _ = timeout_at(until, self.ended()).await;
        if !self.is_gone_by(until).await {
            self.kill().await;
        }
    }

    /// Takes the end of a program that has [ended](Self::ended).
    pub(crate) fn reap(mut self) -> io::Result<(Exit, Usage)> {
        self.is_reaped = true;
        // Where the system shows no tree, this is what ends the rest of the group.
        let _ = kill_process_group(self.pid, Signal::KILL);
        raw::reap(self.pid)
    }

    /// Kills whatever is left of the tree until nothing is.
    async fn kill(&mut self) {
        let (mut pause, mut is_told) = (Duration::from_millis(2), false);
        loop {
            let _ = kill_process_group(self.pid, Signal::KILL);
            let left = self.survey().await;
            if left.is_empty() {
                break;
            }
            self.signal(&left, Signal::KILL);
            sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
            if pause == MAX_PAUSE && !is_told {
                tracing::warn!(?left, "killed processes of a tool do not go; its slot stays taken");
                is_told = true;
            }
        }
        if self.ended().await.is_err() {
            tracing::warn!(pid = ?self.pid, "the end of a program cannot be read");
        }
    }

    /// Tells whether the tree ends by itself until an instant.
    async fn is_gone_by(&mut self, until: Instant) -> bool {
        loop {
            if self.survey().await.is_empty() && self.has_ended().unwrap_or(true) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            sleep_until(until.min(Instant::now() + LOOK)).await;
        }
    }

    async fn survey(&self) -> Vec<Member> {
        let tree = Arc::clone(&self.tree);
        let look = move || tree.lock().unwrap_or_else(PoisonError::into_inner).survey();
        tokio::task::spawn_blocking(look).await.unwrap_or_default()
    }

    fn signal(&self, members: &[Member], signal: Signal) {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner).signal(members, signal);
    }
}

/// Weighs a tree.
#[derive(Clone, Debug)]
pub(crate) struct Scale(Arc<Mutex<Tree>>);

impl Scale {
    /// Returns how many bytes of memory the tree uses, roughly when that is not more than `enough`;
    /// 0 where the system does not tell.
    pub(crate) fn memory(&self, enough: u64) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).memory(enough)
    }
}

/// Kills everything that carries a mark, and returns when nothing does any more.
///
/// It is for a tree whose supervisor is gone, so that nobody knows its leader.
pub(crate) async fn end_marked(mark: OsString) {
    let mut tree = Tree::marked(mark);
    let mut pause = Duration::from_millis(2);
    loop {
        let look = move || {
            let left = tree.survey();
            tree.signal(&left, Signal::KILL);
            (tree, left.is_empty())
        };
        let Ok((looked, is_gone)) = tokio::task::spawn_blocking(look).await else { return };
        if is_gone {
            return;
        }
        tree = looked;
        sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_reaped {
            return;
        }
        // Whoever ran it was itself cut off: nothing may be left behind.
        let mut tree = self.tree.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..3 {
            let left = tree.survey();
            let _ = kill_process_group(self.pid, Signal::KILL);
            tree.signal(&left, Signal::KILL);
        }
        let pid = self.pid;
        let reap = move || drop(raw::reap(pid));
        let _ = std::thread::Builder::new().name("raincheck-reaper".to_owned()).spawn(reap);
    }
}
