//! One running program and its tree.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::signal::unix;
use tokio::time::{Instant, sleep, timeout};

use super::offspring::{self, Offspring};
use super::raw;
use super::tree::{Member, Tree};
use crate::os::{Exit, Left, Survivor, Usage};
use crate::patience::within;

/// How long what a program left running may take to end by itself, such as the reader at the end of
/// a pipe.
const LINGER: Duration = Duration::from_millis(500);

/// How long it then has between being asked to end and being killed.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);

/// How often a tree without its leader is looked at: nothing tells of the end of a stranger's child.
const LOOK: Duration = Duration::from_millis(20);

/// The longest pause between two looks at a tree that was killed.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// How long processes that may not be killed are given to end by themselves.
const FAREWELL: Duration = Duration::from_millis(500);

/// A program that was started, until its end is taken.
///
/// Its number cannot be given to another process before its end is taken, so signals to its group
/// never reach a stranger. Dropping it kills the whole tree.
#[derive(Debug)]
pub(crate) struct Process {
    pid: Pid,
    changes: unix::Signal,
    tree: Kin,
    is_reaped: bool,
}

/// How the tree of a program is known.
#[derive(Debug)]
enum Kin {
    /// It is all that is below this process.
    Offspring(Offspring),
    /// By what the process table tells.
    Tree(Arc<Mutex<Tree>>),
}

impl Process {
    pub(super) fn new(pid: Pid, changes: unix::Signal, mark: OsString) -> Self {
        let tree = if offspring::is_kept() {
            Kin::Offspring(Offspring::new(pid))
        } else {
            Kin::Tree(Arc::new(Mutex::new(Tree::new(pid, mark))))
        };
        Self { pid, changes, tree, is_reaped: false }
    }

    /// Returns what weighs the tree while it is waited for.
    pub(crate) fn scale(&self) -> Scale {
        Scale(match &self.tree {
            Kin::Offspring(_) => None,
            Kin::Tree(tree) => Some(Arc::clone(tree)),
        })
    }

    /// Tells whether the program itself has ended.
    pub(crate) fn has_ended(&mut self) -> io::Result<bool> {
        if let Kin::Offspring(all) = &mut self.tree {
            return Ok(all.reap() || all.end().is_some());
        }
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(self.pid), how)?.is_some())
    }

    /// Waits for the end of the program itself.
    ///
    /// # Cancel safety
    /// Safe: an end is never lost.
    pub(crate) async fn ended(&mut self) -> io::Result<()> {
        while !self.has_ended()? {
            if self.changes.recv().await.is_none() {
                return Err(io::Error::other("the system tells of no ends any more"));
            }
        }
        Ok(())
    }

    /// Tells whether some of the tree may not be signalled, so that it cannot be stopped.
    pub(crate) fn is_out_of_reach(&mut self) -> bool {
        match &self.tree {
            Kin::Offspring(_) => offspring::is_out_of_reach(),
            Kin::Tree(_) => {
                rustix::process::test_kill_process(self.pid) == Err(rustix::io::Errno::PERM)
            }
        }
    }

    /// Ends what the program left running after its own end.
    pub(crate) async fn settle(&mut self) -> Left {
        if self.is_gone().await || self.is_gone_within(LINGER).await {
            return Left::default();
        }
        let n_left = self.signal_all(Signal::TERM).await;
        let survivors =
            if self.is_gone_within(LEFTOVER_GRACE).await { Vec::new() } else { self.kill().await };
        Left { n_ended: n_left.saturating_sub(survivors.len()), survivors }
    }

    /// Asks the program's group to end, and kills the whole tree when it has not after `grace`.
    ///
    /// Returns when nothing of the tree is left but what it returns: processes that this one may not
    /// end.
    pub(crate) async fn stop(&mut self, grace: Duration) -> Vec<Survivor> {
        if let Kin::Tree(_) = self.tree {
            // Parents are known only while they live, so the tree is looked at before and after.
            self.survey().await;
        }
        if !self.has_ended().unwrap_or(true) {
            let _ = kill_process_group(self.pid, Signal::TERM);
        }
        if let Kin::Tree(_) = self.tree {
            self.survey().await;
        }
        if self.is_gone_within(grace).await { Vec::new() } else { self.kill().await }
    }

    /// Takes the end of a program that has [ended](Self::ended); `None` when it is known to live on.
    pub(crate) fn reap(mut self) -> io::Result<Option<(Exit, Usage)>> {
        if let Kin::Offspring(all) = &mut self.tree {
            self.is_reaped = true;
            all.reap();
            return Ok(all.end());
        }
        if !self.has_ended()? {
            self.is_reaped = true;
            return Ok(None);
        }
        self.is_reaped = true;
        // Where the system shows no tree, this is what ends the rest of the group.
        let _ = kill_process_group(self.pid, Signal::KILL);
        raw::reap(self.pid).map(Some)
    }

    /// Kills whatever is left of the tree until nothing is but what this process may not end.
    async fn kill(&mut self) -> Vec<Survivor> {
        let (mut pause, mut is_told) = (Duration::from_millis(1), false);
        let mut last_hit = Instant::now();
        loop {
            if self.is_gone().await {
                return Vec::new();
            }
            if self.kill_once().await {
                last_hit = Instant::now();
            } else if last_hit.elapsed() >= FAREWELL {
                let survivors = self.survivors();
                tracing::warn!(?survivors, "processes of a tool may not be ended; they run on");
                return survivors;
            }
            // The end of a child comes as a signal, that of another's does not.
            let _ = timeout(pause, self.changes.recv()).await;
            pause = (pause * 2).min(MAX_PAUSE);
            if pause == MAX_PAUSE && !is_told {
                tracing::warn!(pid = ?self.pid, "killed processes of a tool do not go");
                is_told = true;
            }
        }
    }

    /// Sends one round of kills; tells whether any of it could be sent.
    async fn kill_once(&mut self) -> bool {
        match &mut self.tree {
            Kin::Offspring(all) => all.kill(),
            Kin::Tree(_) => {
                let _ = kill_process_group(self.pid, Signal::KILL);
                let left = self.survey().await;
                self.signal(&left, Signal::KILL);
                !left.is_empty()
            }
        }
    }

    fn survivors(&self) -> Vec<Survivor> {
        match &self.tree {
            Kin::Offspring(all) => {
                // The table may hide a process of another user. One that was waited for is in neither.
                let beyond_reach = all.beyond_reach.iter().copied();
                let pids: BTreeSet<i32> =
                    offspring::alive().into_iter().chain(beyond_reach).collect();
                pids.into_iter().map(offspring::describe).collect()
            }
            Kin::Tree(tree) => lock(tree).survivors(),
        }
    }

    async fn is_gone(&mut self) -> bool {
        match &mut self.tree {
            Kin::Offspring(all) => all.reap(),
            Kin::Tree(_) => {
                self.survey().await.is_empty()
                    && self.survivors().is_empty()
                    && self.has_ended().unwrap_or(true)
            }
        }
    }

    /// Tells whether the tree ends by itself within a span of time in which this process could run.
    async fn is_gone_within(&mut self, span: Duration) -> bool {
        let gone = async {
            while !self.is_gone().await {
                match &self.tree {
                    Kin::Offspring(_) => drop(self.changes.recv().await),
                    Kin::Tree(_) => sleep(LOOK).await,
                }
            }
        };
        within(span, gone).await.is_some()
    }

    /// Sends a signal to the whole tree, and returns how many processes that were.
    async fn signal_all(&mut self, signal: Signal) -> usize {
        match &mut self.tree {
            Kin::Offspring(all) => {
                let n = offspring::alive().len();
                all.signal(signal);
                n
            }
            Kin::Tree(_) => {
                let left = self.survey().await;
                self.signal(&left, signal);
                left.len()
            }
        }
    }

    async fn survey(&self) -> Vec<Member> {
        let Kin::Tree(tree) = &self.tree else { return Vec::new() };
        let tree = Arc::clone(tree);
        let look = move || lock(&tree).survey();
        tokio::task::spawn_blocking(look).await.unwrap_or_default()
    }

    fn signal(&self, members: &[Member], signal: Signal) {
        if let Kin::Tree(tree) = &self.tree {
            lock(tree).signal(members, signal);
        }
    }
}

fn lock(tree: &Mutex<Tree>) -> MutexGuard<'_, Tree> {
    tree.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Weighs a tree; `None` stands for everything below this process.
#[derive(Clone, Debug)]
pub(crate) struct Scale(Option<Arc<Mutex<Tree>>>);

impl Scale {
    /// Returns how many bytes of memory the tree uses, roughly when that is not more than `enough`;
    /// 0 where the system does not tell.
    pub(crate) fn memory(&self, enough: u64) -> u64 {
        match &self.0 {
            Some(tree) => lock(tree).memory(enough),
            None => offspring::memory(enough),
        }
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
        let tree = match &mut self.tree {
            Kin::Offspring(all) => {
                while !all.reap() && all.kill() {
                    std::thread::yield_now();
                }
                return;
            }
            Kin::Tree(tree) => tree,
        };
        let mut tree = lock(tree);
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
