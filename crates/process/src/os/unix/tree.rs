//! Everything that a program started, as far as the process table tells, for programs that run under
//! a process which has other children too, and for what a lost supervisor left.
//!
//! A process belongs to the tree when it was seen in it before, is in the leader's process group,
//! has a parent in the tree, or carries the tree's mark in the environment it was started with. The
//! mark finds daemons that left both the group and their parent. Only Linux tells all this; elsewhere
//! the tree is the process group.

use std::collections::HashSet;
use std::ffi::OsString;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::time::Instant;

#[cfg(target_os = "linux")]
use super::table;
#[cfg(not(target_os = "linux"))]
use super::table_elsewhere as table;
use crate::os::Survivor;

/// A tree younger than this has seen process numbers come round once at the most, so that only the
/// numbers given out since its leader's need a look. It makes the end of a short program cheap.
const YOUNG: Duration = Duration::from_secs(1);

/// How often a tree is looked at again while other processes are being made.
const LOOKS: usize = 8;

/// A process, told from a later one with the same number by the instant of its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pid: i32,
    start: u64,
}

/// What is known of a tree.
#[derive(Debug)]
pub(super) struct Tree {
    /// The program itself; unknown when only its mark is left of it.
    leader: Option<i32>,
    begun: Instant,
    mark: OsString,
    known: HashSet<Member>,
    /// Processes that the system does not let us end, such as ones of another user.
    out_of_reach: HashSet<Member>,
}

impl Tree {
    pub(super) fn new(leader: Pid, mark: OsString) -> Self {
        Self::of(Some(leader.as_raw_nonzero().get()), mark)
    }

    /// Makes the tree of a program that is gone, or never was: whatever carries its mark.
    pub(super) fn marked(mark: OsString) -> Self {
        Self::of(None, mark)
    }

    fn of(leader: Option<i32>, mark: OsString) -> Self {
        let begun = Instant::now();
        Self { leader, begun, mark, known: HashSet::new(), out_of_reach: HashSet::new() }
    }

    /// Looks for the processes of the tree that are alive and can be ended, the leader included.
    ///
    /// One look can miss a process that is being made, or that is between its start and the program
    /// it becomes. So nothing counts as nothing only when a second look finds nothing too, and no
    /// process was made in between, as far as a busy machine ever lets that be.
    pub(super) fn survey(&mut self) -> Vec<Member> {
        let mut before = table::latest();
        let mut found = self.look();
        for _ in 0..LOOKS {
            if !found.is_empty() {
                break;
            }
            found = self.look();
            let latest = table::latest();
            if found.is_empty() && latest == before {
                break;
            }
            before = latest;
        }
        found
    }

    /// Returns the processes that could not be ended and are still there.
    pub(super) fn survivors(&self) -> Vec<Survivor> {
        let is_there = |member: &&Member| table::start_of(member.pid) == Some(member.start);
        let there = self.out_of_reach.iter().filter(is_there);
        there.map(|it| Survivor { pid: it.pid, user: table::user_of(it.pid) }).collect()
    }

    fn look(&mut self) -> Vec<Member> {
        let window = self.window();
        let processes = table::list(|pid| window.holds(pid));
        let is_leader = |pid| self.leader == Some(pid);
        let born = processes.iter().find(|it| is_leader(it.pid)).map_or(0, |it| it.start);
        let mut alive: Vec<Member> = Vec::new();
        let mut inside: HashSet<i32> = self.leader.into_iter().collect();
        let mut rest = processes;
        loop {
            let before = inside.len();
            rest.retain(|it| {
                let member = Member { pid: it.pid, start: it.start };
                let belongs = is_leader(it.pid)
                    || is_leader(it.group)
                    || inside.contains(&it.parent)
                    || self.known.contains(&member);
                if belongs {
                    inside.insert(it.pid);
                    self.known.insert(member);
                    if !it.is_dead {
                        alive.push(member);
                    }
                }
                !belongs
            });
            let marked: Vec<i32> = rest
                .iter()
                .filter(|it| it.start >= born && !it.is_dead && !inside.contains(&it.pid))
                .filter(|it| table::carries(it.pid, &self.mark))
                .map(|it| it.pid)
                .collect();
            for it in rest.iter().filter(|it| marked.contains(&it.pid)) {
                self.known.insert(Member { pid: it.pid, start: it.start });
            }
            if inside.len() == before && marked.is_empty() {
                break;
            }
        }
        alive.retain(|member| !self.out_of_reach.contains(member));
        alive
    }

    fn window(&self) -> Window {
        let Some(leader) = self.leader else { return Window::All };
        let latest = if self.begun.elapsed() < YOUNG { table::latest() } else { None };
        latest.map_or(Window::All, |latest| Window::Since { leader, latest })
    }

    /// Returns how many bytes of memory the tree uses. What processes share is counted once only when
    /// the rough sum is more than `enough`, as that takes longer.
    pub(super) fn memory(&mut self, enough: u64) -> u64 {
        let alive = self.survey();
        let rough = alive.iter().map(|member| table::resident(member.pid)).sum();
        if rough <= enough {
            return rough;
        }
        alive.iter().map(|member| table::proportional(member.pid)).sum()
    }

    /// Sends a signal to processes of the tree.
    pub(super) fn signal(&mut self, members: &[Member], signal: Signal) {
        for member in members {
            let Some(pid) = Pid::from_raw(member.pid) else { continue };
            if send(pid, *member, signal) == Err(rustix::io::Errno::PERM) {
                tracing::warn!(pid = member.pid, "a process of a tool belongs to another user");
                self.out_of_reach.insert(*member);
            }
        }
    }
}

/// The process numbers that may belong to a tree.
#[derive(Clone, Copy, Debug)]
enum Window {
    All,
    Since { leader: i32, latest: i32 },
}

impl Window {
    fn holds(self, pid: i32) -> bool {
        match self {
            Self::All => true,
            Self::Since { leader, latest } if leader <= latest => (leader..=latest).contains(&pid),
            Self::Since { leader, latest } => pid >= leader || pid <= latest,
        }
    }
}

/// Sends a signal to a process only if it is still the one that was seen.
#[cfg(target_os = "linux")]
fn send(pid: Pid, member: Member, signal: Signal) -> rustix::io::Result<()> {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(held) if table::start_of(member.pid) == Some(member.start) => {
            pidfd_send_signal(held, signal)
        }
        Ok(_) => Ok(()),
        Err(rustix::io::Errno::NOSYS) => rustix::process::kill_process(pid, signal),
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn send(pid: Pid, _member: Member, signal: Signal) -> rustix::io::Result<()> {
    rustix::process::kill_process(pid, signal)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_took_over_a_number_gets_no_signal() {
        let me = Pid::from_raw(i32::try_from(std::process::id()).expect("a pid")).expect("not 0");
        let stranger = Member { pid: me.as_raw_nonzero().get(), start: 1 };
        assert_eq!(send(me, stranger, Signal::KILL), Ok(()));
    }

    #[test]
    fn numbers_that_came_round_are_looked_at_too() {
        let straight = Window::Since { leader: 100, latest: 103 };
        assert_eq!([99, 100, 103, 104].map(|pid| straight.holds(pid)), [false, true, true, false]);
        let round = Window::Since { leader: 32_700, latest: 310 };
        assert_eq!(
            [300, 310, 311, 32_699, 32_700].map(|pid| round.holds(pid)),
            [true, true, false, false, true]
        );
    }
}
