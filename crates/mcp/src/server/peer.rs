//! The client's end of a connection, by the protocol's own types.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, CustomRequest, ProgressNotificationParam, ProgressToken, ServerRequest,
};
use rmcp::service::{Peer, ServiceError};
use tokio::sync::broadcast;

use raincheck_core::content::Json;

use super::line;
use crate::caller::{self, Asking, Note, Notify};
use crate::surface::Notice;

/// Asks the client questions.
#[derive(Debug)]
pub(super) struct Client(pub(super) Peer<RoleServer>);

#[async_trait]
impl caller::Peer for Client {
    async fn ask(&self, method: &str, params: Json) -> Result<Json, Asking> {
        let refused = |error: &dyn std::fmt::Display| Asking::Refused(error.to_string());
        let params = params.read().map_err(|error| refused(&error))?;
        let request = ServerRequest::CustomRequest(CustomRequest::new(method, Some(params)));
        match self.0.send_request(request).await {
            Ok(ClientResult::CustomResult(result)) => {
                Json::of(&result.0).map_err(|error| refused(&error))
            }
            Ok(result) => Json::of(&result).map_err(|error| refused(&error)),
            Err(ServiceError::McpError(error)) => Err(refused(&error.message)),
            Err(_) => Err(Asking::Gone),
        }
    }

    async fn tell(&self, method: &str, params: Json) {
        let note = line::verbatim_note(method, &params);
        if let Err(error) = self.0.send_notification(note.into()).await {
            tracing::debug!(%error, "nobody hears a notification any more");
        }
    }
}

/// Tells a client what layers say by themselves, while it has a session.
pub(super) async fn tell(
    client: Peer<RoleServer>,
    mut notices: broadcast::Receiver<Notice>,
    is_open: Arc<AtomicBool>,
) {
    loop {
        let notice = match notices.recv().await {
            Ok(notice) => notice,
            Err(broadcast::error::RecvError::Lagged(_)) => continue,
            Err(broadcast::error::RecvError::Closed) => return,
        };
        if !is_open.load(Ordering::Acquire) {
            continue;
        }
        let told = match notice {
            Notice::ResourcesChanged => client.notify_resource_list_changed().await,
            Notice::PromptsChanged => client.notify_prompt_list_changed().await,
        };
        if let Err(error) = told {
            tracing::debug!(%error, "a client was not told of a change");
        }
    }
}

/// Tells the client the progress of one call.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) peer: Peer<RoleServer>,
    pub(super) token: ProgressToken,
}

#[async_trait]
impl Notify for Progress {
    async fn notify(&self, Note { value, total, words }: Note) {
        let mut param = ProgressNotificationParam::new(self.token.clone(), value);
        if let Some(total) = total {
            param = param.with_total(total);
        }
        if let Some(words) = words {
            param = param.with_message(words);
        }
        if let Err(error) = self.peer.notify_progress(param).await {
            tracing::debug!(%error, "nobody hears the progress any more");
        }
    }
}
