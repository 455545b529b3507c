//! Leave to make an answer.

use std::fmt;

use async_trait::async_trait;

/// Bounds how many answers are made and not read at once [CALL-7]. Leave lasts until the answer went
/// out.
#[async_trait]
pub(crate) trait Leave: fmt::Debug + Send + Sync {
    /// Takes leave when there is some now, or was before.
    fn try_now(&self) -> bool;

    /// Waits for leave.
    async fn wait(&self);

    /// Gives leave back before an answer was made.
    fn give_back(&self);

    /// Counts bytes that the request brings along as if it had been longer by them, until it is answered;
    /// `false` when there is no room for them.
    #[cfg(feature = "cache")]
    fn try_bring(&self, bytes: usize) -> bool;
}
