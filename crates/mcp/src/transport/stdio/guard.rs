//! Keeps standard output for the protocol: nothing else in the process can reach it any more.

use std::io;

/// The real standard output, taken away from everybody else.
#[derive(Debug)]
pub struct Stdout {
    #[cfg(unix)]
    pub(super) fd: std::os::fd::OwnedFd,
}

/// Takes standard output: what the process prints from now on goes to standard error instead.
///
/// Call it first in `main`, before a runtime or a thread exists. The private descriptor is not
/// inherited by child processes. Elsewhere than on Unix nothing is redirected.
///
/// # Errors
/// When a standard stream is closed.
pub fn take_stdout() -> io::Result<Stdout> {
    #[cfg(unix)]
    {
        let fd = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Ok(Stdout { fd })
    }
    #[cfg(not(unix))]
    Ok(Stdout {})
}
