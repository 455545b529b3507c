//! The process that supervisors are copies of: both its ends.
//!
//! To start this binary again costs several times what a short program costs. So it is done once:
//! the fork server waits, with one thread and nothing in memory, and a supervisor is a copy of it. One
//! copy is always made in advance.
//! It is also the next of kin: what a supervisor that is killed leaves running is handed to it, and
//! ended.
//!
//! It ends when its server is gone and the last of its supervisors has ended.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::process::Child;

use super::Supervisor;
use super::place::Seat;
use super::role;
use crate::os::{self, Copy, Nest, Woken};

/// Asks for a supervisor; its four files come with the word.
const FORK: u8 = b'f';

/// Asks for an answer once no orphan is left.
const TIDY: u8 = b't';

/// How long the orphans of a supervisor that was killed may take to end.
const TIDY_LIMIT: Duration = Duration::from_secs(5);

/// Starts supervisors for one server. Dropping it leaves them running.
#[derive(Debug)]
pub(crate) struct ForkServer {
    how: Option<Supervisor>,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    socket: UnixStream,
    child: Child,
}

impl ForkServer {
    /// Makes one that starts its process with the first supervisor; without a way to, it starts none.
    pub(crate) const fn new(how: Option<Supervisor>) -> Self {
        Self { how, running: Mutex::new(None) }
    }

    /// Starts a supervisor that is given the files of a seat, and does not wait for it.
    ///
    /// Blocks while the process is started. To be called within the context of a runtime.
    ///
    /// # Errors
    /// When no process can be started; nothing will run then.
    pub(crate) fn launch(&self, seat: &Seat) -> io::Result<()> {
        let mut running = self.lock();
        let files =
            [seat.far.as_fd(), seat.listener.as_fd(), seat.lock.as_fd(), seat.folder.as_fd()];
        if let Some(known) = &*running {
            match os::send(&known.socket, FORK, &files) {
                Ok(()) => return Ok(()),
                Err(error) => tracing::warn!(%error, "the fork server is gone; another is started"),
            }
        }
        let fresh = self.start()?;
        os::send(&fresh.socket, FORK, &files)?;
        *running = Some(fresh);
        Ok(())
    }

    /// Kills the process, which gives no sign of life. What runs already is not touched.
    pub(crate) fn replace(&self) {
        if let Some(mut known) = self.lock().take()
            && let Err(error) = known.child.start_kill()
        {
            tracing::warn!(%error, "a fork server that does not answer cannot be ended");
        }
    }

    /// Waits until nothing is left of supervisors of this server that were killed. Blocks.
    pub(crate) fn tidy(&self) {
        let running = self.lock();
        let Some(known) = &*running else { return };
        let asked = known
            .socket
            .set_read_timeout(Some(TIDY_LIMIT))
            .and_then(|()| os::send(&known.socket, TIDY, &[]))
            .and_then(|()| (&known.socket).read_exact(&mut [0]));
        if let Err(error) = asked {
            tracing::warn!(%error, "the fork server does not say that a lost tree is gone");
        }
    }

    fn start(&self) -> io::Result<Running> {
        let Supervisor { program, arguments } = self
            .how
            .as_ref()
            .ok_or_else(|| io::Error::other("this server starts no supervisors"))?;
        let (socket, far) = UnixStream::pair()?;
        let child = os::spawn_apart(program, arguments, OwnedFd::from(far))?;
        Ok(Running { socket, child })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Is the fork server until it is not needed any more. It never returns in a copy.
pub(super) fn run() -> ExitCode {
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else {
        return ExitCode::from(2);
    };
    if socket.peer_addr().is_err() {
        return ExitCode::from(2);
    }
    let Ok(nest) = Nest::new() else { return ExitCode::FAILURE };
    let mut role = Role { nest, server: Some(socket), spare: None, is_asked: false };
    while role.turn() {}
    ExitCode::SUCCESS
}

/// The fork server's own state.
struct Role {
    nest: Nest,
    server: Option<UnixStream>,
    /// A copy that was made in advance, and waits for its files.
    spare: Option<UnixStream>,
    /// The server waits to hear that no orphan is left.
    is_asked: bool,
}

impl Role {
    /// Does what there is to do; tells whether there may be more.
    fn turn(&mut self) -> bool {
        let is_tidy = self.nest.tidy();
        if is_tidy && std::mem::take(&mut self.is_asked) {
            // A server that is gone is noticed below.
            let _ = self.server.as_ref().map(|mut socket| socket.write_all(&[TIDY]));
        }
        let Some(socket) = &self.server else {
            self.spare = None;
            if is_tidy && self.nest.is_empty() {
                return false;
            }
            self.nest.wait(None);
            return true;
        };
        if self.nest.wait(Some(socket.as_fd())) == Woken::ByChild {
            return true;
        }
        match os::receive(socket) {
            Ok(Some((TIDY, _))) => self.is_asked = true,
            Ok(Some((FORK, files))) => self.give(files),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => self.server = None,
        }
        true
    }

    /// Gives the files of a seat to a supervisor, and has the next one ready.
    fn give(&mut self, files: Vec<OwnedFd>) {
        let borrowed: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        for _ in 0..2 {
            if self.spare.is_none() {
                self.make_spare();
            }
            let Some(spare) = self.spare.take() else { return };
            // One that was killed while it waited is replaced once.
            if os::send(&spare, FORK, &borrowed).is_ok() {
                break;
            }
        }
        drop(files);
        self.make_spare();
    }

    fn make_spare(&mut self) {
        let Ok((near, far)) = UnixStream::pair() else { return };
        match self.nest.copy() {
            Ok(Copy::Original) => self.spare = Some(near),
            Ok(Copy::New) => {
                drop((near, self.server.take(), self.spare.take()));
                os::exit_now(std::panic::catch_unwind(|| supervise(&far)).unwrap_or(101));
            }
            Err(_) => {}
        }
    }
}

/// Is a supervisor, in a copy of the fork server.
fn supervise(far: &UnixStream) -> u8 {
    let Ok(runtime) = role::prepare() else { return 1 };
    let Ok(Some((FORK, files))) = os::receive(far) else { return 0 };
    let Ok([near, listener, lock, folder]) = <[OwnedFd; 4]>::try_from(files) else { return 2 };
    let settled = os::settle_in(folder.as_fd(), lock.as_fd());
    drop(folder);
    match settled.and_then(|()| role::run(runtime, near, listener)) {
        Ok(()) => 0,
        Err(error) => {
            // Standard error is the lock, whose text the server reads.
            let _ = writeln!(io::stderr(), "{error}");
            1
        }
    }
}
