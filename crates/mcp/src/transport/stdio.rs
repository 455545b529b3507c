//! MCP over lines on two streams: our own transport, so that bytes stay bytes.
//!
//! Against the transport of `rmcp` it adds: arguments as they were written, an answer to every odd
//! line, one outbox that never blocks the server, and an end within a second.

mod attach;
mod guard;
mod line;
mod outbox;
mod source;
mod streams;
mod transport;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::service::ServerInitializeError;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use raincheck_core::scope::Scope;

pub(crate) use self::line::{Lines, Read};
use self::outbox::Outbox;
use self::source::Source;
use self::streams::{Reader, Writer};
use self::transport::{Held, Stdio};
use crate::caller::Connection;
use crate::server::{Backlog, Flights, Server, Session};

pub use self::attach::{Found, Link, Owners, serve_attached, serve_shared};
pub use self::guard::{Stdout, take_stdout};
pub use self::streams::Streams;

/// How long calls that are still open may take to end once the connection is over.
pub const DRAIN: Duration = Duration::from_millis(600);

/// How long the last answers may take to be written.
const FLUSH: Duration = Duration::from_millis(200);

/// How many bytes of answers may wait before no further request is begun.
const CAP: usize = 8 << 20;

/// A session that could not be held.
#[derive(Debug, thiserror::Error)]
#[error("failed to hold the session: {0}")]
pub struct Error(String);

/// Serves one client, which owns the tasks of `scope`, until its stream ends or `stop` fires.
///
/// At the end, waiting reads answer at once with what they have, and calls without a task id end as
/// their tool says [CANCEL-7]; it returns within 800 ms. Whether the process ends then is up to whoever
/// composed it; the engine must run until it has returned.
///
/// # Errors
/// When the session breaks for another reason than its end.
///
/// # Cancel safety
/// Dropping the future ends the session without the last answers.
pub async fn serve_stdio(
    server: Server,
    scope: Scope,
    streams: Streams,
    stop: CancellationToken,
) -> Result<(), Error> {
    let source = Source::Stream(Lines::new(streams.reader, line::MAX_LINE));
    serve(server, Connection::new(scope), (source, streams.writer), stop).await
}

/// Serves a connection until its lines end or `stop` fires.
async fn serve(
    server: Server,
    connection: Connection,
    (lines, writer): (Source<Reader>, Writer),
    stop: CancellationToken,
) -> Result<(), Error> {
    let closing = connection.closing.clone();
    let backlog = Arc::new(Backlog::new(CAP));
    let outbox = Outbox::new(Arc::clone(&backlog));
    let mut writing = JoinSet::new();
    writing.spawn(outbox.clone().write_to(writer));
    let session = Session::new(server, connection);
    let transport = Stdio {
        lines,
        flights: Flights::new(backlog),
        outbox: outbox.clone(),
        is_open: session.is_open(),
        held: Held::default(),
        stop,
        closing: closing.clone(),
    };
    let served = hold(session, transport, closing.clone()).await;
    closing.cancel();
    outbox.close();
    if timeout(FLUSH, writing.join_next()).await.is_err() {
        tracing::debug!("the client left answers unread");
    }
    served
}

/// Runs the service over the transport until the connection is over and its calls have ended.
async fn hold<R>(
    session: Session,
    transport: Stdio<R>,
    closing: CancellationToken,
) -> Result<(), Error>
where
    R: tokio::io::AsyncRead + Send + Unpin + 'static,
{
    // Boxed, so that the compiler proves here that the future can move between threads; from
    // outside it cannot see through the generics.
    let opening: Pin<Box<dyn Future<Output = _> + Send>> =
        Box::pin(rmcp::serve_server(session.clone(), transport));
    let running = match opening.await {
        Ok(running) => running,
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(Error(error.to_string())),
    };
    let client = running.peer().clone();
    let mut ended = std::pin::pin!(running.waiting());
    tokio::select! {
        _ = &mut ended => {}
        () = session.announce(client) => {}
        () = closing.cancelled_owned() => {
            if timeout(DRAIN, ended).await.is_err() {
                tracing::debug!("calls were still open at the end of the connection");
            }
        }
    }
    Ok(())
}
