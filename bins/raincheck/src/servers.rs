//! The servers of the state folder: the one of `serve`, and one for each command that was wrapped.

use std::path::{Path, PathBuf};

use raincheck_app::Failure;
use raincheck_app::cli::{Serving, Shared};
use raincheck_app::paths::Paths;

use crate::{BINARY, THIS};

/// The part of the folder of this binary in which wrapped servers have folders of their own [GATE-8].
const WRAPPED: &str = "wrap";

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

/// Names the folder of a wrapped server.
pub(crate) fn home_of(home: &Path, key: &str) -> PathBuf {
    home.join(WRAPPED).join(key)
}

/// Lists wrapped servers by the names of their folders.
pub(crate) fn wrapped(home: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(home.join(WRAPPED)).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect();
    found.sort();
    found
}

/// Lists the servers that flags and configuration lead to: where these name a store, the one that has it,
/// else all.
pub(crate) fn all(shared: &Shared, serving: &Serving) -> Result<Vec<Kept>, Failure> {
    let file = shared.load(&THIS, serving)?;
    let mut all = vec![Kept { wrapped: None, shared: shared.clone() }];
    if file.store.is_none() {
        let paths = Paths::resolve(BINARY, shared)?;
        all.extend(wrapped(&paths.home).into_iter().map(|(name, home)| Kept {
            wrapped: Some(name),
            shared: Shared { home: Some(home), ..shared.clone() },
        }));
    }
    Ok(all)
}
