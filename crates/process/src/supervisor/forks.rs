//! The process that supervisors are copies of: both its ends.
//!
//! To start this binary again costs several times what a short program costs. So it is done once:
//! the fork server waits, with one thread and nothing in memory, and a supervisor is a copy of it.
//! [One](super::Ready) is made before it is needed, so that a start is one message to a process that is
//! ready.
//! It is also the next of kin: what a supervisor that is killed leaves running is handed to it, and
//! ended.
//!
//! It ends when its server is gone and the last of its supervisors has ended.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::process::Child;

use super::Supervisor;
use super::place::Seat;
use super::role;
use crate::os::{self, Copy, Nest, Woken};

/// Asks for a supervisor that is needed now; its four files come with the word.
const FORK: u8 = b'f';

/// Asks for a supervisor that is needed later, in the same way.
const AHEAD: u8 = b'a';

/// Asks for an answer once a copy is gone and no orphan is left. The socket for the answer comes with the
/// word, and in it the number of the copy.
const TIDY: u8 = b't';

/// How long the orphans of a supervisor that was killed may take to end.
const TIDY_LIMIT: Duration = Duration::from_secs(5);

/// Starts supervisors for one server. Dropping it leaves them running.
#[derive(Debug)]
pub(crate) struct ForkServer {
    how: Option<Supervisor>,
    running: Mutex<Option<Running>>,
    /// How many processes there were.
    n_started: AtomicU64,
}

/// Which of the processes that one server started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(pub(super) u64);

#[derive(Debug)]
struct Running {
    generation: Generation,
    socket: UnixStream,
    child: Child,
}

/// When a supervisor is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Now,
    /// Later: first it makes itself quick to begin.
    Later,
}

impl Need {
    const fn word(self) -> u8 {
        match self {
            Self::Now => FORK,
            Self::Later => AHEAD,
        }
    }
}

impl ForkServer {
    /// Makes one that starts its process with the first supervisor; without a way to, it starts none.
    pub(crate) const fn new(how: Option<Supervisor>) -> Self {
        Self { how, running: Mutex::new(None), n_started: AtomicU64::new(0) }
    }

    /// Starts a supervisor that is given the files of a seat, and does not wait for it. Returns which
    /// process makes it.
    ///
    /// Blocks while the process is started. To be called within the context of a runtime.
    ///
    /// # Errors
    /// When no process can be started; nothing will run then.
    pub(crate) fn launch(&self, seat: &Seat, need: Need) -> io::Result<Generation> {
        let mut running = self.lock();
        let files =
            [seat.far.as_fd(), seat.listener.as_fd(), seat.lock.as_fd(), seat.folder.as_fd()];
        if let Some(known) = &*running {
            match os::send(&known.socket, need.word(), &files) {
                Ok(()) => return Ok(known.generation),
                Err(error) => tracing::warn!(%error, "the fork server is gone; another is started"),
            }
        }
        let fresh = self.start()?;
        os::send(&fresh.socket, need.word(), &files)?;
        Ok(running.insert(fresh).generation)
    }

    /// Kills a process that gives no sign of life, if it was not replaced before. What runs already is not
    /// touched. Blocks while another one is started.
    pub(crate) fn replace(&self, generation: Generation) {
        if let Some(mut known) = self.lock().take_if(|known| known.generation == generation)
            && let Err(error) = known.child.start_kill()
        {
            tracing::warn!(%error, "a fork server that does not answer cannot be ended");
        }
    }

    /// Waits until nothing is left of a supervisor of this server that was killed. Blocks, but keeps no
    /// start waiting.
    pub(crate) fn tidy(&self, supervisor: Option<i32>) {
        let asked = self.lock().as_ref().map(|known| ask_for_tidiness(&known.socket, supervisor));
        let answered = asked.map(|asked| asked.and_then(|mut answer| answer.read_exact(&mut [0])));
        if let Some(Err(error)) = answered {
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
        let generation = Generation(self.n_started.fetch_add(1, Ordering::Relaxed));
        Ok(Running { generation, socket, child })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks, and returns where the answer comes.
fn ask_for_tidiness(server: &UnixStream, supervisor: Option<i32>) -> io::Result<UnixStream> {
    let (mut near, far) = UnixStream::pair()?;
    near.set_read_timeout(Some(TIDY_LIMIT))?;
    near.write_all(&supervisor.unwrap_or(0).to_ne_bytes())?;
    os::send(server, TIDY, &[far.as_fd()])?;
    Ok(near)
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
    let mut role = Role { nest, server: Some(socket), asked: Vec::new() };
    while role.turn() {}
    ExitCode::SUCCESS
}

/// The fork server's own state.
struct Role {
    nest: Nest,
    server: Option<UnixStream>,
    /// Who waits to hear that a copy is gone and no orphan is left.
    asked: Vec<(i32, UnixStream)>,
}

impl Role {
    /// Does what there is to do; tells whether there may be more.
    fn turn(&mut self) -> bool {
        let is_tidy = self.nest.tidy();
        if is_tidy {
            // A copy that was killed has left its orphans here once it was waited for, not before.
            let nest = &self.nest;
            for (_, mut answer) in self.asked.extract_if(.., |(pid, _)| !nest.has_copy(*pid)) {
                // A server that is gone is noticed below.
                let _ = answer.write_all(&[TIDY]);
            }
        }
        let Some(socket) = &self.server else {
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
            Ok(Some((TIDY, files))) => self.asked.extend(files.into_iter().filter_map(question)),
            Ok(Some((FORK, files))) => self.make_copy(files, Need::Now),
            Ok(Some((AHEAD, files))) => self.make_copy(files, Need::Later),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => self.server = None,
        }
        true
    }

    /// Makes a supervisor, which has the files of a seat. One that cannot be made is missed by the
    /// server, which hears the end of its line.
    fn make_copy(&mut self, files: Vec<OwnedFd>, need: Need) {
        if matches!(self.nest.copy(), Ok(Copy::New)) {
            drop((self.server.take(), std::mem::take(&mut self.asked)));
            let supervise = || supervise(files, need);
            let supervise = std::panic::AssertUnwindSafe(supervise);
            os::exit_now(std::panic::catch_unwind(supervise).unwrap_or(101));
        }
    }
}

/// Reads whose end is asked for; it was written before the socket was sent.
fn question(socket: OwnedFd) -> Option<(i32, UnixStream)> {
    let (mut socket, mut number) = (UnixStream::from(socket), [0; 4]);
    socket.set_nonblocking(true).and_then(|()| socket.read_exact(&mut number)).ok()?;
    Some((i32::from_ne_bytes(number), socket))
}

/// Is a supervisor, in a copy of the fork server.
fn supervise(files: Vec<OwnedFd>, need: Need) -> u8 {
    let Ok([near, listener, lock, folder]) = <[OwnedFd; 4]>::try_from(files) else { return 2 };
    let Ok(runtime) = os::move_out().and_then(|()| role::prepare()) else { return 1 };
    if need == Need::Later {
        os::warm_up();
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a server that talks to this test as to its process.
    fn server(generation: u64) -> (ForkServer, UnixStream) {
        let (socket, far) = UnixStream::pair().expect("a pair");
        let child = tokio::process::Command::new("sleep").arg("600").kill_on_drop(true).spawn();
        let child = child.expect("it runs");
        let server = ForkServer::new(None);
        *server.lock() = Some(Running { generation: Generation(generation), socket, child });
        (server, far)
    }

    // [LEASE-3]
    #[tokio::test]
    async fn each_who_asks_for_tidiness_hears_of_its_own_supervisor() {
        let (server, far) = server(0);
        let ask = |pid| {
            let running = server.lock();
            ask_for_tidiness(&running.as_ref().expect("it runs").socket, Some(pid)).expect("asked")
        };
        // The first asker is gone before it hears.
        drop(ask(7));
        let mut second = ask(8);
        let questions: Vec<_> = (0..2)
            .map(|_| os::receive(&far).expect("read").expect("a word"))
            .flat_map(|(word, files)| files.into_iter().map(move |file| (word, file)))
            .map(|(word, file)| (word, question(file).expect("a number")))
            .collect();
        let asked: Vec<_> = questions.iter().map(|(word, (pid, _))| (*word, *pid)).collect();
        assert_eq!(asked, [(TIDY, 7), (TIDY, 8)]);
        for (_, (pid, mut answer)) in questions {
            assert_eq!(answer.write_all(&[TIDY]).is_ok(), pid == 8);
        }
        second.read_exact(&mut [0]).expect("an answer");
    }

    #[tokio::test]
    async fn starts_do_not_wait_for_tidiness() {
        let (server, far) = server(0);
        std::thread::scope(|scope| {
            scope.spawn(|| server.tidy(Some(7)));
            let (_, mut files) = os::receive(&far).expect("read").expect("a word");
            let (_, mut answer) = files.pop().and_then(question).expect("a question");
            // Were it held meanwhile, the one who asks would have given up by the time it is free.
            drop(server.lock());
            answer.write_all(&[TIDY]).expect("still waited for");
        });
    }

    #[tokio::test]
    async fn what_was_replaced_already_is_not_replaced_again() {
        let (server, _far) = server(1);
        server.replace(Generation(0));
        assert!(server.lock().is_some(), "another one is there by now");
        server.replace(Generation(1));
        assert!(server.lock().is_none());
    }
}
