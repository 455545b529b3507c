//! Everything below a process that is there for one program only.
//!
//! The system hands every orphan below such a process to it (`PR_SET_CHILD_SUBREAPER`), so that
//! nothing the program starts can leave its tree: not with a session of its own, not with an empty
//! environment, not by forking twice. Whether anything is left is then one question to the kernel,
//! which answers it whole: a process without children has no descendants.
//!
//! To kill, the children are killed. Theirs become ours, and are killed next. A child that has not
//! been waited for keeps its number, so that no stranger can be hit.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::raw;
#[cfg(target_os = "linux")]
use super::table;
#[cfg(not(target_os = "linux"))]
use super::table_elsewhere as table;
use crate::os::{Exit, Usage};

/// Whether this process is there for one program.
static IS_KEEPER: AtomicBool = AtomicBool::new(false);

/// Makes this process the one that every orphan below it is handed to. It may start one program and
/// nothing else.
///
/// # Errors
/// When the system refuses. On systems that know nothing of it, nothing happens.
pub(crate) fn keep_offspring() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        IS_KEEPER.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// Tells whether all children of this process belong to the one program that it started.
pub(super) fn is_kept() -> bool {
    IS_KEEPER.load(Ordering::Relaxed)
}

/// The descendants of this process.
#[derive(Debug)]
pub(super) struct Offspring {
    leader: Pid,
    /// The end of the program itself, once it was taken.
    end: Option<(Exit, Usage)>,
    /// Children that the system does not let us end.
    pub(super) beyond_reach: BTreeSet<i32>,
}

impl Offspring {
    pub(super) const fn new(leader: Pid) -> Self {
        Self { leader, end: None, beyond_reach: BTreeSet::new() }
    }

    /// Returns the end of the program itself, once it has ended.
    pub(super) const fn end(&self) -> Option<(Exit, Usage)> {
        self.end
    }

    /// Waits for every child that has ended; tells whether no child is left.
    pub(super) fn reap(&mut self) -> bool {
        loop {
            match raw::reap_any() {
                Ok(Some((pid, exit, usage))) => {
                    self.beyond_reach.remove(&pid);
                    if pid == self.leader.as_raw_nonzero().get() {
                        self.end = Some((exit, usage));
                    }
                }
                Ok(None) => return false,
                // There is no child: the only other failure is an argument that makes no sense.
                Err(_) => return true,
            }
        }
    }

    /// Kills the children, and with them, in the next rounds, everything below them. Returns whether
    /// one was found that may be killed.
    pub(super) fn kill(&mut self) -> bool {
        let mut is_hit = false;
        for pid in children() {
            is_hit |= self.send(pid, Signal::KILL);
        }
        if !is_hit {
            // Those who cannot be killed may have children that can.
            for pid in self.beyond_reach.clone() {
                for below in descendants(pid) {
                    is_hit |= signal_seen(below, Signal::KILL) == Ok(());
                }
            }
        }
        is_hit
    }

    /// Sends a signal to everything there is.
    pub(super) fn signal(&mut self, signal: Signal) {
        for pid in children() {
            self.send(pid, signal);
            for below in descendants(pid) {
                let _ = signal_seen(below, signal);
            }
        }
    }

    fn send(&mut self, pid: i32, signal: Signal) -> bool {
        let Some(number) = Pid::from_raw(pid) else { return false };
        if kill_process(number, signal) == Err(Errno::PERM) {
            self.beyond_reach.insert(pid);
            return false;
        }
        self.beyond_reach.remove(&pid);
        true
    }
}

/// Returns the processes below this one that have not ended.
pub(super) fn alive() -> Vec<i32> {
    let mut all = Vec::new();
    for pid in children() {
        // A child that the table hides, as it may one of another user, is there until it is waited for.
        if table::entry(pid).is_none_or(|it| !it.is_dead) {
            all.push(pid);
        }
        all.extend(descendants(pid));
    }
    all
}

/// Tells whether some process below this one may not be signalled, such as one of another user.
pub(super) fn is_out_of_reach() -> bool {
    alive()
        .into_iter()
        .filter_map(Pid::from_raw)
        .any(|pid| rustix::process::test_kill_process(pid) == Err(Errno::PERM))
}

/// Returns the children of this process, those included that have ended and were not waited for.
pub(super) fn children() -> Vec<i32> {
    let me = rustix::process::getpid().as_raw_nonzero().get();
    table::children_of(me).unwrap_or_else(|| {
        let all = table::list(|_| true);
        all.into_iter().filter(|it| it.parent == me).map(|it| it.pid).collect()
    })
}

/// Returns what is below a process and has not ended.
fn descendants(pid: i32) -> Vec<i32> {
    let (mut all, mut parents) = (Vec::new(), vec![pid]);
    while let Some(parent) = parents.pop() {
        for child in table::children_of(parent).unwrap_or_default() {
            // A process table that changes meanwhile may show one twice.
            if !all.contains(&child) {
                parents.push(child);
                all.push(child);
            }
        }
    }
    all.retain(|pid| table::entry(*pid).is_some_and(|it| !it.is_dead));
    all
}

/// Signals a process that is nobody's but its parent's to wait for: what is held by its descriptor
/// is looked at again before the signal goes.
#[cfg(target_os = "linux")]
fn signal_seen(pid: i32, signal: Signal) -> rustix::io::Result<()> {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let Some(number) = Pid::from_raw(pid) else { return Err(Errno::SRCH) };
    let held = match pidfd_open(number, PidfdFlags::empty()) {
        Err(Errno::NOSYS) => return kill_process(number, signal),
        held => held?,
    };
    if is_below_us(pid) { pidfd_send_signal(held, signal) } else { Err(Errno::SRCH) }
}

#[cfg(not(target_os = "linux"))]
fn signal_seen(pid: i32, signal: Signal) -> rustix::io::Result<()> {
    Pid::from_raw(pid).map_or(Err(Errno::SRCH), |pid| kill_process(pid, signal))
}

#[cfg(target_os = "linux")]
fn is_below_us(pid: i32) -> bool {
    let me = rustix::process::getpid().as_raw_nonzero().get();
    let mut above = pid;
    // Deeper than any chain of parents that a system allows.
    for _ in 0..100_000 {
        match table::entry(above) {
            Some(it) if it.parent == me => return true,
            Some(it) if it.parent > 1 => above = it.parent,
            Some(_) | None => return false,
        }
    }
    false
}

/// Returns how many bytes of memory everything below this process uses. What processes share is
/// counted once only when the rough sum is more than `enough`, as that takes longer.
pub(super) fn memory(enough: u64) -> u64 {
    let mut all = children();
    all.extend(all.clone().into_iter().flat_map(descendants));
    let rough = all.iter().map(|pid| table::resident(*pid)).sum();
    if rough <= enough { rough } else { all.iter().map(|pid| table::proportional(*pid)).sum() }
}

/// Says what a process is that could not be ended.
pub(super) fn describe(pid: i32) -> crate::os::Survivor {
    crate::os::Survivor { pid, user: table::user_of(pid) }
}
