//! A supervisor that waits for its program, in a folder that waits for its task.
//!
//! To make the folders and files of an attempt and to fork cost more than all the rest of the start of
//! a short program. So both are made after a start for the next one, whose task is given the folder by
//! its new name.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::forks::Generation;
use super::wire::Said;

/// A supervisor that was started, and the folder of its task to be.
#[derive(Debug)]
pub(crate) struct Ready {
    /// The line to it.
    pub(crate) near: UnixStream,
    pub(crate) generation: Generation,
    pub(crate) task: PathBuf,
}

/// How a supervisor is that was started before it was needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// It waits for its program, with the number of its process.
    Waits(u32),
    /// It is not there yet.
    NotYet,
    Gone,
}

impl Ready {
    /// Looks how it is. Once it waits it is not to be asked again.
    pub(super) fn look(&self) -> Readiness {
        let mut line = [0; 64];
        let read = self.near.set_nonblocking(true).and_then(|()| (&self.near).read(&mut line));
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Readiness::NotYet,
            Ok(0) | Err(_) => return Readiness::Gone,
            Ok(_) => {}
        }
        let said = line.split(|byte| *byte == b'\n').next().map(serde_json::from_slice);
        let Some(Ok(Said::Here { pid })) = said else { return Readiness::Gone };
        // It says nothing more by itself: what there is to read is its end.
        match (&self.near).read(&mut line) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Readiness::Waits(pid),
            Ok(_) | Err(_) => Readiness::Gone,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn ready() -> (Ready, UnixStream) {
        let (near, far) = UnixStream::pair().expect("a pair");
        (Ready { near, generation: Generation(0), task: PathBuf::new() }, far)
    }

    #[test]
    fn a_supervisor_that_ended_while_it_waited_is_given_no_program() {
        let (one, mut far) = ready();
        assert_eq!(one.look(), Readiness::NotYet);
        far.write_all(b"{\"here\":{\"pid\":7}}\n").expect("told");
        assert_eq!(one.look(), Readiness::Waits(7));
        let (one, mut far) = ready();
        far.write_all(b"{\"here\":{\"pid\":7}}\n").expect("told");
        drop(far);
        assert_eq!(one.look(), Readiness::Gone);
        let (one, far) = ready();
        drop(far);
        assert_eq!(one.look(), Readiness::Gone);
    }
}
