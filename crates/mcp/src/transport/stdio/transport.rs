//! The transport that `rmcp` reads requests from and gives answers to.

use std::collections::VecDeque;
use std::future::{Future, Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{
    ClientNotification, ClientRequest, GetExtensions as _, InitializedNotification, JsonRpcMessage,
    RequestId, ServerNotification,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleServer};
use tokio::io::AsyncRead;
use tokio_util::sync::CancellationToken;

use super::line::Read;
use super::outbox::Outbox;
use super::source::Source;
use crate::caller::RequestKey;
use crate::server::{Flights, read_request, read_response, to_line, written};
use crate::transport::refusals::{Refused, refused};
use crate::wire::{Id, Message, parse};

/// How many bytes may stand for what is read while the outbox has no room, beside the requests, which
/// their table bounds: refusals that were written and answers of the client. A cancel and the end of the
/// stream cost nothing, so that they are seen behind whatever was asked.
const READ_AHEAD: usize = 1 << 20;

/// What a line in the outbox takes beside its bytes.
const LINE_COST: usize = 128;

/// Lines in, lines out. Requests are begun only while the outbox has room: a client that does not
/// read delays its own answers, and nothing else.
#[derive(Debug)]
pub(crate) struct Stdio<R> {
    pub(super) lines: Source<R>,
    pub(super) outbox: Outbox,
    pub(super) flights: Flights,
    /// Whether the session has begun: from then on notifications mean something.
    pub(super) is_open: Arc<AtomicBool>,
    /// What was read and has to wait for room.
    pub(super) held: Held,
    /// Ends the session.
    pub(super) stop: CancellationToken,
    /// Is fired when the connection is over.
    pub(super) closing: CancellationToken,
}

/// Messages that were read before there was room for their answers.
#[derive(Debug, Default)]
pub(super) struct Held {
    messages: VecDeque<RxJsonRpcMessage<RoleServer>>,
    /// What stands for the lines that were read since there was no room.
    n_ahead: usize,
    is_ended: bool,
}

impl<R: AsyncRead + Unpin> Stdio<R> {
    /// Reads the next message that the service has to see. While the outbox has no room the lines are
    /// read on for a while; at their end nothing waits for room any more.
    async fn next(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let has_room = self.outbox.has_room();
            if has_room {
                self.held.n_ahead = 0;
            }
            if has_room || self.held.is_ended {
                if let Some(message) = self.held.messages.pop_front() {
                    return Some(message);
                }
                if self.held.is_ended {
                    return None;
                }
            }
            let may_read = has_room || self.held.n_ahead < READ_AHEAD;
            let read = tokio::select! {
                biased;
                () = self.outbox.room(), if !has_room => continue,
                read = self.lines.next(), if may_read => read,
            };
            match read {
                Ok((Read::Line(line), key)) => {
                    let message = self.admit(&line, key);
                    self.held.messages.extend(message);
                }
                Ok((Read::TooLong, _)) => {
                    let words = format!("a line may have {} bytes", super::line::MAX_LINE);
                    self.write(&Refused::new(None, ErrorData::invalid_request(words, None)));
                }
                Ok((Read::End, _)) => self.held.is_ended = true,
                Err(error) => {
                    tracing::warn!(%error, "standard input cannot be read any more");
                    self.held.is_ended = true;
                }
            }
        }
    }

    /// Answers what needs no service, and passes on the rest.
    fn admit(
        &mut self,
        line: &[u8],
        key: Option<RequestKey>,
    ) -> Option<RxJsonRpcMessage<RoleServer>> {
        match parse(line) {
            Message::Request { id, method, params } => match read_request(&method, params) {
                Ok(request) => self.begin(request, id, line.len(), key),
                Err(words) => {
                    self.write(&Refused::new(Some(id), ErrorData::invalid_params(words, None)));
                    None
                }
            },
            Message::Cancelled(id) => {
                // The service is not told: an id is free when its handler has ended, not before.
                self.flights.cancel(&id);
                None
            }
            Message::Initialized => {
                let ready = ClientNotification::from(InitializedNotification::default());
                self.is_open().then(|| JsonRpcMessage::notification(ready))
            }
            Message::Response { id, outcome } if self.is_open() => {
                self.held.n_ahead += line.len() + LINE_COST;
                Some(match read_response(outcome) {
                    Ok(result) => JsonRpcMessage::response(result, id.into()),
                    Err(error) => JsonRpcMessage::error(error, Some(id.into())),
                })
            }
            Message::Response { .. } | Message::Nothing => None,
            Message::Invalid(invalid) => {
                self.write(&Refused::from(invalid));
                None
            }
        }
    }

    fn begin(
        &mut self,
        mut request: ClientRequest,
        id: Id,
        n_bytes: usize,
        key: Option<RequestKey>,
    ) -> Option<RxJsonRpcMessage<RoleServer>> {
        match self.flights.begin(&id, n_bytes) {
            Ok(flight) => {
                let is_call = matches!(request, ClientRequest::CallToolRequest(_));
                let flight = if is_call { flight.in_turn() } else { flight };
                request.extensions_mut().insert(flight.asked_as(key));
                Some(JsonRpcMessage::request(request, id.into()))
            }
            Err(refusal) => {
                self.write(&Refused::new(Some(id), refused(refusal)));
                None
            }
        }
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Answers a request, unless it was cancelled; its id is free after that.
    fn answer(&self, id: &RequestId, message: &TxJsonRpcMessage<RoleServer>) {
        let id = Id::from(id);
        if self.flights.is_wanted(&id) {
            self.put(message);
        }
        self.flights.end(&id);
    }

    fn put(&self, message: &TxJsonRpcMessage<RoleServer>) {
        if let Some(line) = to_line(message) {
            self.outbox.put(line);
        }
    }

    fn write(&mut self, refused: &Refused) {
        if let Some(line) = written(refused) {
            self.held.n_ahead += line.len() + LINE_COST;
            self.outbox.put(line);
        }
    }
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
            JsonRpcMessage::Response(response) => self.answer(&response.id, &item),
            JsonRpcMessage::Error(error) => match &error.id {
                Some(id) => self.answer(id, &item),
                None => self.put(&item),
            },
            JsonRpcMessage::Notification(note) => {
                let is_progress =
                    matches!(note.notification, ServerNotification::ProgressNotification(_));
                match to_line(&item) {
                    Some(line) if is_progress => self.outbox.put_if_room(line),
                    Some(line) => self.outbox.put(line),
                    None => {}
                }
            }
            JsonRpcMessage::Request(_) => self.put(&item),
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
