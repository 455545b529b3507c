//! Links to artifacts, written by whoever listens [ART-2].

use std::fmt;

use async_trait::async_trait;

use raincheck_core::task::Artifact;
use raincheck_core::time::Timestamp;

/// Writes links to artifacts.
#[async_trait]
pub trait Links: fmt::Debug + Send + Sync + 'static {
    /// Writes a link to each artifact, good until `expires`; `None` while nothing can serve them.
    ///
    /// Asked only when a task left artifacts, so that what serves them can be opened with the first.
    async fn write(&self, artifacts: &[Artifact], expires: Timestamp) -> Option<Vec<String>>;
}
