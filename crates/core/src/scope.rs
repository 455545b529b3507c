//! Who owns a task [SCOPE-1].

use std::fmt;
use std::sync::Arc;

/// The owner of a task; everybody else is told that the task does not exist [SCOPE-2].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(Arc<str>);

impl Scope {
    /// The scope of a server on stdio that was given no other.
    pub const LOCAL: &'static str = "local";

    /// Takes the text as the owner's name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// Returns the constant scope `local`.
    #[must_use]
    pub fn local() -> Self {
        Self::new(Self::LOCAL)
    }

    /// Returns the owner's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}
