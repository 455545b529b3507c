//! What goes out in one response: messages on their way to the body, counted until they are sent.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::server::Backlog;

/// One message of the server.
#[derive(Debug)]
pub(super) struct Out {
    /// Its JSON.
    pub(super) bytes: Bytes,
    /// Whether it is the answer to the request, and with which error of the protocol.
    pub(super) end: Option<End>,
}

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With a result.
    Result,
    /// With an error of this code.
    Error(i32),
}

/// Where messages are put in. Cloning shares it.
#[derive(Clone, Debug)]
pub(super) struct Outlet {
    backlog: Arc<Backlog>,
    to: mpsc::UnboundedSender<Out>,
}

/// Where the body takes them from.
#[derive(Debug)]
pub(super) struct Inlet {
    backlog: Arc<Backlog>,
    from: mpsc::UnboundedReceiver<Out>,
}

/// Makes both ends; what waits between them is counted in `backlog`.
pub(super) fn channel(backlog: &Arc<Backlog>) -> (Outlet, Inlet) {
    let (to, from) = mpsc::unbounded_channel();
    (Outlet { backlog: Arc::clone(backlog), to }, Inlet { backlog: Arc::clone(backlog), from })
}

impl Outlet {
    /// Puts a message in; `false` when nobody will read it.
    pub(super) fn put(&self, bytes: Vec<u8>, end: Option<End>) -> bool {
        let n_bytes = bytes.len();
        self.backlog.add(n_bytes);
        let is_in = self.to.send(Out { bytes: bytes.into(), end }).is_ok();
        if !is_in {
            self.backlog.remove(n_bytes);
        }
        is_in
    }

    /// Tells whether somebody may still read it.
    pub(super) fn is_open(&self) -> bool {
        !self.to.is_closed()
    }

    /// Puts a message in when there is room and somebody may read it; otherwise drops it and returns
    /// `false`.
    pub(super) fn put_if_room(&self, bytes: Vec<u8>) -> bool {
        self.backlog.has_room() && self.put(bytes, None)
    }

    /// Tells whether both lead to the same body.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.to.same_channel(&other.to)
    }
}

impl Inlet {
    /// Takes the next message; `None` when nothing will follow. It stays counted.
    ///
    /// # Cancel safety
    /// Safe: a message is taken or not.
    pub(super) async fn next(&mut self) -> Option<Out> {
        self.from.recv().await
    }

    /// As [`next`](Self::next).
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Out>> {
        self.from.poll_recv(context)
    }

    /// Notes that so many bytes of what was taken have gone out.
    pub(super) fn sent(&self, n_bytes: usize) {
        self.backlog.remove(n_bytes);
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        self.from.close();
        while let Ok(out) = self.from.try_recv() {
            self.backlog.remove(out.bytes.len());
        }
    }
}
