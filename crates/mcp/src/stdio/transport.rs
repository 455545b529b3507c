//! The transport that `rmcp` reads requests from and gives answers to.

use std::collections::HashSet;
use std::future::{Future, Ready, ready};

use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest,
    ErrorCode, GetExtensions as _, GetMeta as _, InitializedNotification, JsonRpcMessage,
    ProtocolVersion, RequestId, ServerNotification,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleServer};
use serde::Serialize;
use tokio::io::AsyncRead;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::line::{Lines, Read};
use super::message::{self, Incoming, Refusal};
use super::outbox::Outbox;
use crate::connection::Connection;

/// How many requests may be unanswered at once.
const MAX_REQUESTS: usize = 4096;

/// Lines in, lines out. Requests are read only while the outbox has room: a client that does not
/// read delays its own answers, and nothing else.
#[derive(Debug)]
pub(crate) struct Stdio<R> {
    lines: Lines<R>,
    outbox: Outbox,
    unanswered: HashSet<RequestId>,
    is_open: bool,
    stop: CancellationToken,
    closing: CancellationToken,
}

impl<R: AsyncRead + Unpin> Stdio<R> {
    /// Reads from `lines` until their end, or until `stop` fires; then fires `closing`.
    pub(crate) fn new(
        lines: Lines<R>,
        outbox: Outbox,
        stop: CancellationToken,
        closing: CancellationToken,
    ) -> Self {
        Self { lines, outbox, unanswered: HashSet::new(), is_open: false, stop, closing }
    }

    /// Reads the next message that the service has to see.
    async fn next(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.outbox.room().await;
            let incoming = match self.lines.next().await {
                Ok(Read::Line(line)) => message::parse(&line),
                Ok(Read::TooLong) => {
                    let words = format!("a line may have {} bytes", super::line::MAX_LINE);
                    let error = ErrorData::invalid_request(words, None);
                    Incoming::Refused(Refusal::new(None, error))
                }
                Ok(Read::End) => return None,
                Err(error) => {
                    tracing::warn!(%error, "standard input cannot be read any more");
                    return None;
                }
            };
            if let Some(message) = self.admit(incoming) {
                return Some(message);
            }
        }
    }

    /// Answers what needs no service, and passes on the rest.
    fn admit(&mut self, incoming: Incoming) -> Option<RxJsonRpcMessage<RoleServer>> {
        match incoming {
            Incoming::Request(request, id) => self.admit_request(*request, id),
            Incoming::Cancelled(id, reason) => {
                if !self.is_open || !self.unanswered.remove(&id) {
                    return None;
                }
                let params = CancelledNotificationParam::new(Some(id), reason);
                let cancelled = CancelledNotification::new(params);
                Some(JsonRpcMessage::notification(ClientNotification::from(cancelled)))
            }
            Incoming::Initialized => {
                let ready = ClientNotification::from(InitializedNotification::default());
                self.is_open.then(|| JsonRpcMessage::notification(ready))
            }
            Incoming::Nothing => None,
            Incoming::Refused(refusal) => {
                self.write(&refusal);
                None
            }
        }
    }

    fn admit_request(
        &mut self,
        mut request: ClientRequest,
        id: RequestId,
    ) -> Option<RxJsonRpcMessage<RoleServer>> {
        if self.unanswered.len() >= MAX_REQUESTS {
            let words = format!("{MAX_REQUESTS} requests are unanswered; wait for one of them");
            let data = serde_json::json!({"code": "queue_full", "retryable": true});
            let error = ErrorData::new(ErrorCode(-32000), words, Some(data));
            self.write(&Refusal::new(Some(id), error));
            return None;
        }
        if !self.unanswered.insert(id.clone()) {
            let words = "a request with this `id` is still unanswered";
            self.write(&Refusal::new(Some(id), ErrorData::invalid_request(words, None)));
            return None;
        }
        self.is_open = self.is_open || opens(&request);
        let connection = Connection { arrival: Instant::now(), closing: self.closing.clone() };
        request.extensions_mut().insert(connection);
        Some(JsonRpcMessage::request(request, id))
    }

    fn write(&self, message: &impl Serialize) {
        if let Some(line) = to_line(message) {
            self.outbox.put(line);
        }
    }
}

/// Tells whether a request begins the session: from then on notifications mean something.
fn opens(request: &ClientRequest) -> bool {
    let is_probe =
        matches!(request, ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_));
    let meta = request.get_meta();
    let is_self_contained = || {
        let version = meta.protocol_version();
        meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
            && version.is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
    };
    matches!(request, ClientRequest::InitializeRequest(_)) || (!is_probe && is_self_contained())
}

fn to_line(message: &impl Serialize) -> Option<Vec<u8>> {
    let mut line = serde_json::to_vec(message)
        .inspect_err(|error| tracing::error!(%error, "an answer could not be written"))
        .ok()?;
    line.push(b'\n');
    Some(line)
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Stdio<R> {
    type Error = std::io::Error;

    /// Puts the message into the outbox before it returns, so that the order of calls is the order of lines.
    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sent: Ready<Result<(), Self::Error>> = ready(Ok(()));
        match &item {
            JsonRpcMessage::Response(response) => {
                self.unanswered.remove(&response.id);
                self.write(&item);
            }
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.unanswered.remove(id);
                }
                self.write(&item);
            }
            JsonRpcMessage::Notification(note) => {
                let is_progress =
                    matches!(note.notification, ServerNotification::ProgressNotification(_));
                match to_line(&item) {
                    Some(line) if is_progress => self.outbox.put_if_room(line),
                    Some(line) => self.outbox.put(line),
                    None => {}
                }
            }
            JsonRpcMessage::Request(_) => self.write(&item),
        }
        sent
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let (stop, outbox) = (self.stop.clone(), self.outbox.clone());
        let message = tokio::select! {
            biased;
            () = stop.cancelled_owned() => None,
            () = outbox.broken() => None,
            message = self.next() => message,
        };
        if message.is_none() {
            self.closing.cancel();
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.closing.cancel();
        self.outbox.close();
        Ok(())
    }
}
