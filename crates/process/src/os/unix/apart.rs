//! Starting a process that is to outlive this one.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tokio::process::Child;

use super::{raw, strays};

/// Starts a program as the leader of a session of its own, with nothing but two descriptors: `stdin`
/// as standard input and `output` as standard output and error.
///
/// Dropping the child leaves it running; it is waited for all the same.
pub(crate) fn spawn_apart(
    program: &OsStr,
    arguments: &[OsString],
    folder: &Path,
    stdin: OwnedFd,
    output: File,
) -> io::Result<Child> {
    let mut command = Command::new(program);
    command
        .arg0("raincheck-supervisor")
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(output.try_clone()?))
        .stderr(Stdio::from(output));
    raw::leave_session(&mut command, strays());
    tokio::process::Command::from(command).spawn()
}
