//! One connection: HTTP/1.1 with timers, its place under the cap, and a peer that must read.

use std::fmt;
use std::future::Future as _;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use crate::awake::{self, Sleep, Timer};
use crate::gate::Near;
use crate::options::Limits;

/// Room for a head that is over the limit, so that it is answered instead of cut off.
const HEAD_BUFFER: usize = 128 * 1024;

/// Room for headers that are too many, so that they are answered instead of cut off.
const HEADER_ROOM: usize = 512;

/// Serves a connection until its peer ends it, a limit is passed, or `stopping`.
pub(super) async fn serve<Io>(
    io: Held<Io>,
    (router, near): (Router, Near),
    limits: Limits,
    stopping: CancellationToken,
) where
    Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let answer = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(near);
        // It is always ready.
        router.clone().call(request)
    });
    let connection = http1::Builder::new()
        .timer(Timer)
        .header_read_timeout(limits.head)
        .max_buf_size(HEAD_BUFFER)
        .max_headers(HEADER_ROOM)
        .serve_connection(TokioIo::new(io), answer)
        .with_upgrades();
    let mut connection = pin!(connection);
    let end = tokio::select! {
        end = connection.as_mut() => end,
        () = stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = end {
        tracing::debug!(%error, "connection ended");
    }
}

/// A connection that holds a place under the cap for as long as it lives, also after an upgrade, and
/// that fails when its peer leaves what is written unread for too long.
pub(crate) struct Held<Io> {
    io: Io,
    unread: Duration,
    timer: Option<Sleep>,
    _place: OwnedSemaphorePermit,
}

impl<Io> Held<Io> {
    pub(super) const fn new(io: Io, place: OwnedSemaphorePermit, unread: Duration) -> Self {
        Self { io, unread, timer: None, _place: place }
    }

    /// Returns the connection alone: it has no place under the cap any more, and no timer.
    pub(crate) fn into_inner(self) -> Io {
        self.io
    }

    /// Passes on how a write went, or its failure when the peer has been given long enough.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        write: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if write.is_ready() {
            self.timer = None;
            return write;
        }
        let unread = self.unread;
        let timer = self.timer.get_or_insert_with(|| awake::sleep(unread));
        ready!(Pin::new(timer).poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<Io: AsyncRead + Unpin> AsyncRead for Held<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for Held<Io> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.io).poll_write(context, bytes);
        self.watch(context, write)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.io).poll_write_vectored(context, slices);
        self.watch(context, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flush = Pin::new(&mut self.io).poll_flush(context);
        self.watch(context, flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

impl<Io> fmt::Debug for Held<Io> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("unread", &self.unread).finish_non_exhaustive()
    }
}
