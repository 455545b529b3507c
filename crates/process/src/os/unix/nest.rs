//! A process that makes copies of itself, each to be the parent of one program, and that is handed
//! whatever a copy which dies leaves running.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::{offspring, raw};

/// Which of the two processes this one is.
pub(crate) enum Copy {
    /// The one that was there.
    Original,
    /// The new one.
    New,
}

/// What the process waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The socket has something to read, or its other end is gone.
    BySocket,
    /// A child ended.
    ByChild,
}

/// The copies of this process, and the orphans they left. There is one, in a process of one thread.
#[derive(Debug)]
pub(crate) struct Nest {
    copies: BTreeSet<i32>,
    beyond_reach: BTreeSet<i32>,
    /// Readable when a child has ended, and where that is written.
    ends: (OwnedFd, OwnedFd),
}

impl Nest {
    /// Makes this process the one that every orphan below it is handed to.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn new() -> io::Result<Self> {
        raw::reset_own_signals();
        let ends = raw::heed_children()?;
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        Ok(Self { copies: BTreeSet::new(), beyond_reach: BTreeSet::new(), ends })
    }

    /// Makes a copy of this process.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn copy(&mut self) -> io::Result<Copy> {
        match raw::fork()? {
            Some(pid) => {
                self.copies.insert(pid);
                Ok(Copy::Original)
            }
            None => {
                raw::reset_own_signals();
                Ok(Copy::New)
            }
        }
    }

    /// Waits for the children that have ended and kills every orphan; tells whether no orphan is
    /// left that may be killed.
    pub(crate) fn tidy(&mut self) -> bool {
        while let Ok(Some((pid, ..))) = raw::reap_any() {
            self.copies.remove(&pid);
            self.beyond_reach.remove(&pid);
        }
        let mut is_tidy = true;
        for pid in offspring::children() {
            if self.copies.contains(&pid) || self.beyond_reach.contains(&pid) {
                continue;
            }
            let killed = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
            if killed == Some(Err(rustix::io::Errno::PERM)) {
                self.beyond_reach.insert(pid);
            } else {
                is_tidy = false;
            }
        }
        is_tidy
    }

    /// Waits for a child's end or for the socket, if there is one.
    pub(crate) fn wait(&self, socket: Option<BorrowedFd<'_>>) -> Woken {
        let mut waited = vec![PollFd::new(&self.ends.0, PollFlags::IN)];
        waited.extend(socket.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN)));
        // What interrupts it is looked at by the caller, like everything else.
        let _ = poll(&mut waited, None);
        let is_readable = waited.get(1).is_some_and(|one| !one.revents().is_empty());
        let mut some = [0; 64];
        while rustix::io::read(&self.ends.0, &mut some).is_ok_and(|n| n > 0) {}
        if is_readable { Woken::BySocket } else { Woken::ByChild }
    }

    /// Tells whether a process is a copy that was not waited for.
    pub(crate) fn has_copy(&self, pid: i32) -> bool {
        self.copies.contains(&pid)
    }

    /// Tells whether every copy has ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }
}

/// Makes a new copy a process of its own: leader of a session, without the standard input of the
/// process that it is a copy of.
///
/// # Errors
/// When the system refuses one of them.
pub(crate) fn move_out() -> io::Result<()> {
    rustix::process::setsid()?;
    let nothing = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    Ok(())
}

/// Gives a copy that moved out a folder to work in, and `output` as standard output and error.
///
/// # Errors
/// When the system refuses one of them.
pub(crate) fn settle_in(folder: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<()> {
    rustix::process::fchdir(folder)?;
    rustix::stdio::dup2_stdout(output)?;
    rustix::stdio::dup2_stderr(output)?;
    Ok(())
}
