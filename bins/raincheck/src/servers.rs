//! The servers of the state folder: the one of `serve`, and one for each command that was wrapped.

use raincheck_app::Failure;
use raincheck_app::cli::{Serving, Shared};
use raincheck_app::paths::Paths;
use raincheck_app::wrapped::homes;

use crate::{BINARY, THIS};

/// What the server of `serve` is called beside wrapped ones.
const SERVE: &str = "serve";

/// A server that may have kept something.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// The folder of a wrapped server; `None` for the one of `serve`, or a store that is named.
    pub(crate) wrapped: Option<String>,
    /// The flags with which it keeps it there.
    pub(crate) shared: Shared,
}

impl Kept {
    /// Returns what it is called beside others.
    pub(crate) fn name(&self) -> &str {
        self.wrapped.as_deref().unwrap_or(SERVE)
    }
}

/// Lists the servers that flags and configuration lead to: where these name a store, the one that has it,
/// else all.
pub(crate) fn all(shared: &Shared, serving: &Serving) -> Result<Vec<Kept>, Failure> {
    let file = shared.load(&THIS, serving)?;
    let mut all = vec![Kept { wrapped: None, shared: shared.clone() }];
    if file.store.is_none() {
        let paths = Paths::resolve(BINARY, shared)?;
        all.extend(homes(&paths.home).into_iter().map(|(name, home)| Kept {
            wrapped: Some(name),
            shared: Shared { home: Some(home), ..shared.clone() },
        }));
    }
    Ok(all)
}
