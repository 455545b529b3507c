//! A store that is made where it can be, and says why where it cannot.
//!
//! A server whose state folder cannot be used still answers its client: the handshake and the list need
//! no store, and a call says what is wrong and how to get around it. The folder is looked at again with
//! each attempt to open the store.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::store::{ChangeSink, Claimed, Error, StoreLayer, TaskStore};
use raincheck_core::time::Timestamp;

use crate::failure::Failure;
use crate::paths::create_private;

/// Makes the place of a store ready, or says why that cannot be.
type Ready = Box<dyn Fn() -> Result<(), Error> + Send + Sync>;

/// A store whose place is made ready before it is opened.
pub struct PlacedStore<S> {
    store: S,
    ready: Ready,
}

impl<S: TaskStore> PlacedStore<S> {
    /// Makes `ready` come before every attempt to open a store.
    pub fn new(store: S, ready: impl Fn() -> Result<(), Error> + Send + Sync + 'static) -> Self {
        Self { store, ready: Box::new(ready) }
    }

    /// Makes the folder of a store's file come before every attempt to open it. `unplaced` says why no
    /// state folder could be told, where none could.
    pub fn in_file(store: S, path: PathBuf, unplaced: Option<Failure>) -> Self {
        Self::new(store, move || {
            let Err(error) = create_folder_of(&path) else { return Ok(()) };
            Err(match &unplaced {
                Some(Failure { message, next, .. }) => Error::new(&**message).with_hint(&**next),
                None => Error::new(format!("the folder of the store cannot be made: {error}"))
                    .with_hint(HINT),
            })
        })
    }
}

/// Makes the folder of a file, with access for this user only.
///
/// # Errors
/// Why it cannot be made.
pub fn create_folder_of(path: &Path) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    create_private(path.parent().unwrap_or(Path::new("/")))
}

const HINT: &str = "make the state folder writable, or name another: --state-dir DIR (or \
                    RAINCHECK_STATE_DIR), or keep tasks in memory: --store memory";

impl<S> fmt::Debug for PlacedStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlacedStore")
    }
}

#[async_trait]
impl<S: TaskStore> StoreLayer for PlacedStore<S> {
    fn inner(&self) -> &dyn TaskStore {
        &self.store
    }

    async fn open(
        &self,
        now: Timestamp,
        lanes: Vec<(LaneId, lane::Config)>,
        reattach: Duration,
        sink: Arc<dyn ChangeSink>,
    ) -> Result<Vec<Claimed>, Error> {
        (self.ready)()?;
        self.store.open(now, lanes, reattach, sink).await
    }
}

#[cfg(test)]
mod tests {
    use raincheck_core::store::{MemoryStore, NoSink};

    use super::*;

    async fn open(store: &PlacedStore<MemoryStore>) -> Result<(), Error> {
        let now = Timestamp::from_millis(0);
        TaskStore::open(store, now, Vec::new(), Duration::ZERO, Arc::new(NoSink)).await.map(drop)
    }

    #[tokio::test]
    async fn a_folder_that_can_be_made_later_is_made_then() {
        // Case mcp-home-that-can-not-be-written. [DUR-5]
        let dir = tempfile::tempdir().expect("a folder");
        let home = dir.path().join("home");
        std::fs::write(&home, "no folder").expect("written");
        let store = PlacedStore::in_file(MemoryStore::default(), home.join("store.db"), None);
        let error = open(&store).await.expect_err("no folder");
        assert!(error.hint.is_some_and(|hint| hint.contains("--state-dir")));
        assert!(!error.message.contains(&*dir.path().to_string_lossy()), "{}", error.message);
        std::fs::remove_file(&home).expect("removed");
        open(&store).await.expect("opened");
        assert!(home.is_dir());
    }

    #[tokio::test]
    async fn without_a_state_folder_the_store_says_why() {
        let failure = Failure::usage("no folder can be told", "name one: --state-dir DIR");
        let nowhere = PathBuf::from("/dev/null/raincheck/store.db");
        let store = PlacedStore::in_file(MemoryStore::default(), nowhere, Some(failure));
        let error = open(&store).await.expect_err("no folder");
        assert_eq!(&*error.message, "no folder can be told");
        assert_eq!(error.hint.as_deref(), Some("name one: --state-dir DIR"));
    }
}
