//! What a server may say to its client beside answers.

use std::fmt;

use async_trait::async_trait;

use raincheck_core::content::Json;

/// The other end of a connection.
#[async_trait]
pub trait Peer: fmt::Debug + Send + Sync {
    /// Asks the client for something and waits for what it answers, such as `elicitation/create`.
    ///
    /// # Errors
    /// When the client refuses, or goes away.
    ///
    /// # Cancel safety
    /// Dropping the future gives the question up.
    async fn ask(&self, method: &str, params: Json) -> Result<Json, Asking>;

    /// Tells the client something that it does not answer, such as `notifications/tasks`. Returns once it
    /// stands in the outbox; a client that is gone is not told.
    async fn tell(&self, method: &str, params: Json);
}

/// Why a question got no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Asking {
    /// The client answered with an error.
    #[error("the client refused: {0}")]
    Refused(String),
    /// The client is gone.
    #[error("the client is gone")]
    Gone,
}
