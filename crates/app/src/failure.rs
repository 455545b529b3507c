//! A failure of a command line: what happened, and what to type next.

use std::fmt;
use std::process::ExitCode;

use crate::terminal;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It did what was asked.
    Done,
    /// It ran, and something is not as it should be.
    Failed,
    /// It cannot run as it was asked to.
    Usage,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
        })
    }
}

/// Why a command cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// How the process ends.
    pub exit: Exit,
    /// What happened, with the values in question.
    pub message: String,
    /// What to do or type next.
    pub next: String,
}

impl Failure {
    /// Makes the failure of a command that cannot run as it was asked to.
    pub fn usage(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into(), next: next.into() }
    }

    /// Makes the failure of a command that ran into something.
    pub fn failed(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, message: message.into(), next: next.into() }
    }

    /// Tells the person at the terminal, on standard error, and returns the exit code.
    #[must_use]
    pub fn report(&self) -> ExitCode {
        terminal::complain(&format!("{self}\n"));
        self.exit.into()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}\n  next: {}", self.message.trim_end(), self.next)
    }
}

impl std::error::Error for Failure {}
