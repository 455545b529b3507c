//! Why a listener cannot be opened.

use std::fmt;
use std::io;

/// What a caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The options contradict each other or the rules; correct them.
    Options,
    /// The address cannot be listened on; choose another.
    Address,
    /// A private file or its folder cannot be used; correct its owner or place.
    File,
    /// The file system of a folder refuses locks; choose another folder.
    Lock,
    /// The operating system gives no random bytes; nothing can be done here.
    Random,
    /// Nobody answers where a listener is said to be, or not whoever wrote the endpoint file.
    Unreachable,
}

/// A listener that could not be opened, or not be reached.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<io::Error>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(crate) fn because(mut self, source: io::Error) -> Self {
        self.source = Some(source);
        self
    }

    /// Returns what a caller can do about it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

/// Fills an array with random bytes of the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) => {
            let message = "the operating system gives no random bytes";
            let source = io::Error::other(error.to_string());
            Err(Error::new(ErrorKind::Random, message).because(source))
        }
    }
}

/// Returns 128 random bits in hex: a name that nobody else uses.
pub(crate) fn random_name() -> Result<String, Error> {
    Ok(format!("{:032x}", u128::from_be_bytes(random()?)))
}
