//! The transport of one request: `rmcp` serves it alone, so that whatever belongs to it goes out in
//! its own response.

use std::future::{Future, Ready, ready};
use std::io;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{JsonRpcMessage, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use super::channel::{End, Outlet};
use super::owner::Place;
use super::session::{Asked, HttpSession, text};
use crate::wire::Id;

/// One request until it is answered.
#[derive(Debug)]
pub(super) struct Exchange {
    /// The request, until it is taken.
    pub(super) request: Option<RxJsonRpcMessage<RoleServer>>,
    pub(super) out: Outlet,
    pub(super) place: Place,
    /// The session that it belongs to, and its id there.
    pub(super) session: Option<(Arc<HttpSession>, Id)>,
    pub(super) asked: Asked,
    pub(super) is_answered: bool,
}

impl Exchange {
    fn answer(&mut self, item: &TxJsonRpcMessage<RoleServer>, end: End) {
        if self.place.is_wanted()
            && let Some(bytes) = text(item)
        {
            self.out.put(bytes, Some(end));
        }
        self.is_answered = true;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some((session, id)) = &self.session {
            session.end(id);
        }
    }
}

impl Transport<RoleServer> for Exchange {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let mut sent: Ready<Result<(), Self::Error>> = ready(Ok(()));
        match &item {
            JsonRpcMessage::Response(_) => self.answer(&item, End::Result),
            JsonRpcMessage::Error(error) => {
                let code = error.error.code.0;
                self.answer(&item, End::Error(code));
            }
            JsonRpcMessage::Notification(note) => {
                let is_progress =
                    matches!(note.notification, ServerNotification::ProgressNotification(_));
                match text(&item) {
                    Some(bytes) if is_progress => drop(self.out.put_if_room(bytes)),
                    Some(bytes) => drop(self.out.put(bytes, None)),
                    None => {}
                }
            }
            JsonRpcMessage::Request(_) => {
                let asked = self.session.as_ref().and_then(|(session, _)| {
                    self.asked.ask(session, item).filter(|bytes| self.out.put(bytes.clone(), None))
                });
                if asked.is_none() {
                    sent = ready(Err(io::ErrorKind::NotConnected.into()));
                }
            }
        }
        sent
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        if self.is_answered {
            return None;
        }
        match self.request.take() {
            Some(request) => Some(request),
            None => self.asked.answer().await,
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}
