//! Everything that a program started, as far as the system can tell.
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

/// A tree younger than this has seen process numbers come round once at the most, so that only the
/// numbers given out since its leader's need a look. It makes the end of a short program cheap.
const YOUNG: Duration = Duration::from_secs(1);

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
    pub(super) fn survey(&mut self) -> Vec<Member> {
        let processes = proc::list(self.window());
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
                .filter(|it| proc::carries(it.pid, &self.mark))
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
        let latest = if self.begun.elapsed() < YOUNG { proc::latest() } else { None };
        latest.map_or(Window::All, |latest| Window::Since { leader, latest })
    }

    /// Returns how many bytes of memory the tree uses. What processes share is counted once only when
    /// the rough sum is more than `enough`, as that takes longer.
    pub(super) fn memory(&mut self, enough: u64) -> u64 {
        let alive = self.survey();
        let rough = alive.iter().map(|member| proc::resident(member.pid)).sum();
        if rough <= enough {
            return rough;
        }
        alive.iter().map(|member| proc::proportional(member.pid)).sum()
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
        Ok(held) if proc::start_of(member.pid) == Some(member.start) => {
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

/// The process table of Linux.
#[cfg(target_os = "linux")]
mod proc {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::Window;

    pub(super) struct Entry {
        pub(super) pid: i32,
        pub(super) parent: i32,
        pub(super) group: i32,
        pub(super) start: u64,
        pub(super) is_dead: bool,
    }

    pub(super) fn list(window: Window) -> Vec<Entry> {
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| window.holds(*pid))
            .filter_map(entry)
            .collect()
    }

    /// Returns the number that was given out last.
    pub(super) fn latest() -> Option<i32> {
        let load = std::fs::read_to_string("/proc/loadavg").ok()?;
        load.split_whitespace().last()?.parse().ok()
    }

    pub(super) fn start_of(pid: i32) -> Option<u64> {
        entry(pid).map(|it| it.start)
    }

    fn entry(pid: i32) -> Option<Entry> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        parse(pid, &String::from_utf8_lossy(&stat))
    }

    /// Reads `pid (name) state parent group … start …`; the name may hold blanks and brackets.
    pub(super) fn parse(pid: i32, stat: &str) -> Option<Entry> {
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let start = fields.nth(16)?.parse().ok()?;
        Some(Entry { pid, parent, group, start, is_dead: matches!(state, "Z" | "X" | "x") })
    }

    /// Returns the memory of a process that is in use, in bytes.
    pub(super) fn resident(pid: i32) -> u64 {
        kib(&format!("/proc/{pid}/status"), "VmRSS:").unwrap_or(0)
    }

    /// Returns the memory of a process, what it shares with others by its share of it.
    pub(super) fn proportional(pid: i32) -> u64 {
        kib(&format!("/proc/{pid}/smaps_rollup"), "Pss:").unwrap_or_else(|| resident(pid))
    }

    fn kib(file: &str, field: &str) -> Option<u64> {
        let text = std::fs::read_to_string(file).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(field))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
    }

    /// Tells whether a process was started with an entry in its environment.
    pub(super) fn carries(pid: i32, mark: &OsStr) -> bool {
        let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { return false };
        environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
    }
}

/// Where there is no process table to read.
#[cfg(not(target_os = "linux"))]
mod proc {
    use std::ffi::OsStr;

    use super::Window;

    pub(super) struct Entry {
        pub(super) pid: i32,
        pub(super) parent: i32,
        pub(super) group: i32,
        pub(super) start: u64,
        pub(super) is_dead: bool,
    }

    pub(super) fn list(_window: Window) -> Vec<Entry> {
        Vec::new()
    }

    pub(super) fn latest() -> Option<i32> {
        None
    }

    pub(super) fn resident(_pid: i32) -> u64 {
        0
    }

    pub(super) fn proportional(_pid: i32) -> u64 {
        0
    }

    pub(super) fn carries(_pid: i32, _mark: &OsStr) -> bool {
        false
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) S 7 40 40 0 -1 4194560 1 0 0 0 2 3 0 0 20 0 1 0 98765 1 2";
        let entry = proc::parse(42, stat).expect("a stat line");
        assert_eq!((entry.parent, entry.group, entry.start, entry.is_dead), (7, 40, 98765, false));
    }

    #[test]
    fn this_process_is_found_with_its_parent_and_start() {
        let me = i32::try_from(std::process::id()).expect("a pid");
        let list = proc::list(Window::All);
        let entry = list.iter().find(|it| it.pid == me).expect("this process is listed");
        assert!(entry.parent > 0 && entry.start > 0 && !entry.is_dead);
        assert_eq!(proc::start_of(me), Some(entry.start));
    }

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
        let latest = proc::latest().expect("the system tells");
        assert!(latest > 0);
    }
}
