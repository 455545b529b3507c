//! A session that may have to be answered by another process [ATTACH-1].
//!
//! Several processes of one user share a store, and one of them owns it. Each answers by itself what
//! needs no store; the rest goes, line by line and with its bytes unchanged, to whoever owns the store.
//! `roles` says in two tables what a process is and where its lines go, `relay` is the value that follows
//! them, `shell` moves the lines. Who owns the store is found out by an [`Owners`].

mod relay;
mod roles;
mod shell;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use raincheck_core::scope::Scope;

use self::shell::Shell;
use super::line::{self, Lines};
use super::outbox::Outbox;
use super::source::Source;
use super::streams::Streams;
use super::transport::{Held, Stdio};
use super::{CAP, Error, FLUSH, hold};
use crate::caller::Connection;
use crate::server::{Backlog, Flights, Server, Session};

/// How many lines may wait for the session of this process.
const FED: usize = 64;

/// Finds out who owns what processes share.
#[async_trait]
pub trait Owners: fmt::Debug + Send + Sync + 'static {
    /// Becomes the owner, attaches to it, or says that neither can be. It is asked at the first request
    /// that needs the store, when the owner is gone, and now and then while there is none.
    ///
    /// # Cancel safety
    /// Dropping the future may leave this process the owner.
    async fn find(&self) -> Found;
}

/// Who owns what processes share.
#[derive(Debug)]
pub enum Found {
    /// This process, from now on. Its engine is running, or starting.
    Ours,
    /// Another one, which takes this process in.
    Theirs(Link),
    /// Another one, which does not. What this process's own engine answers says why.
    Apart,
}

/// A connection to the owner.
pub struct Link {
    /// What the owner says.
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    /// What it is told.
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// The [name](raincheck_runtime::Handle::store_name) of its store; `None` when that ends with the
    /// owner, or could not be opened.
    pub store: Option<Arc<str>>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Serves one client, as [`serve_stdio`](super::serve_stdio) does, or has it served by the process that
/// owns the store. `process` is a name that no other process has.
///
/// A client notices nothing of who answers, nor of a change of the owner.
///
/// # Errors
/// When the session breaks for another reason than its end.
///
/// # Cancel safety
/// Dropping the future ends the session without the last answers.
pub async fn serve_shared(
    server: Server,
    scope: Scope,
    streams: Streams,
    stop: CancellationToken,
    owners: Arc<dyn Owners>,
    process: &str,
) -> Result<(), Error> {
    let connection = Connection { name: Some(process.into()), ..Connection::new(scope) };
    let closing = connection.closing.clone();
    let backlog = Arc::new(Backlog::new(CAP));
    let outbox = Outbox::new(Arc::clone(&backlog));
    let mut writer = JoinSet::new();
    writer.spawn(outbox.clone().write_to(streams.writer));
    let (feed, fed) = mpsc::channel(FED);
    let session = Session::new(server.clone(), connection);
    // The session of this process ends with what it is fed, or once it is the only one.
    let own_stop = CancellationToken::new();
    let transport = Stdio {
        lines: Source::Fed(fed),
        flights: Flights::new(backlog),
        outbox: outbox.clone(),
        is_open: session.is_open(),
        held: Held::default(),
        stop: own_stop.clone(),
        closing: closing.clone(),
    };
    let lines = Lines::new(streams.reader, line::MAX_LINE);
    let shell = Shell::new(server, owners, process, (lines, outbox.clone()), feed);
    let relaying = async {
        // With it ends what the session is fed, unless that has the client's stream by now.
        shell.run(stop.clone()).await;
        stop.cancelled().await;
        own_stop.cancel();
    };
    let holding: Pin<Box<dyn Future<Output = _> + Send>> =
        Box::pin(hold(session, transport, closing.clone()));
    let served = until_ended(holding, relaying).await;
    closing.cancel();
    outbox.close();
    if timeout(FLUSH, writer.join_next()).await.is_err() {
        tracing::debug!("the client left answers unread");
    }
    served
}

/// Relays until the session has ended.
async fn until_ended(
    mut holding: Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>,
    relaying: impl Future<Output = ()>,
) -> Result<(), Error> {
    tokio::select! {
        biased;
        served = &mut holding => return served,
        () = relaying => {}
    }
    holding.await
}

/// Serves the client of an attached process, which owns the tasks of `scope`, until its stream ends or
/// `handed_over` fires. `process` is its name.
///
/// At the end of its stream its calls end as those of any client do [CANCEL-7]. When the session is handed
/// over nothing is answered any more and no task is touched: the process asks the next owner.
///
/// # Errors
/// When the session breaks for another reason than its end.
pub async fn serve_attached(
    server: Server,
    scope: Scope,
    streams: Streams,
    process: &str,
    handed_over: CancellationToken,
) -> Result<(), Error> {
    let connection = Connection {
        name: Some(process.into()),
        handed_over: handed_over.clone(),
        ..Connection::new(scope)
    };
    let lines = Lines::new(streams.reader, line::MAX_LINE + line::NUMBER);
    let source = Source::Numbered { lines, process: process.into() };
    let served =
        super::serve(server, connection, (source, streams.writer), CancellationToken::new());
    tokio::select! {
        biased;
        () = handed_over.cancelled() => Ok(()),
        served = served => served,
    }
}
