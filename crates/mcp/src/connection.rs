//! What a transport tells the facade about a request, beside the request itself.

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use raincheck_core::content::Json;

/// The arguments of a call, exactly as they came.
#[derive(Clone, Debug)]
pub(crate) struct Arguments(pub(crate) Json);

/// The connection a request came on.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// When the request was read; wait budgets count from here [CALL-2].
    pub(crate) arrival: Instant,
    /// Fires when the connection ends: nobody will read a late answer.
    pub(crate) closing: CancellationToken,
}
