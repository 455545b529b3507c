//! A handler of this process as the other server.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rmcp::ServerHandler;
use tokio_util::sync::CancellationToken;

use super::calls::Calls;
use super::connect::{Connect, Why, Wires};

/// How many bytes may be on their way between the two.
const PIPE: usize = 256 << 10;

/// A handler that waits for its connection.
pub(super) struct InProcess<H>(Mutex<Option<H>>);

impl<H> InProcess<H> {
    pub(super) fn new(handler: H) -> Self {
        Self(Mutex::new(Some(handler)))
    }
}

#[async_trait]
impl<H: ServerHandler> Connect for InProcess<H> {
    fn name(&self) -> String {
        "the handler".to_owned()
    }

    async fn connect(&self, _: &Arc<Calls>) -> Result<Wires, Why> {
        let handler = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(handler) = handler else {
            return Err(Why::new("its connection ended, and a handler gets only one"));
        };
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let (reader, writer) = tokio::io::split(ours);
        let end = CancellationToken::new();
        let ended = end.clone();
        let beside = async move {
            let served = rmcp::service::serve_server_with_ct(handler, theirs, ended).await;
            match served {
                Ok(running) => match running.waiting().await {
                    Ok(_) => Why::new("it ended"),
                    Err(_) => Why::new("it panicked"),
                },
                Err(error) => Why::new(format!("the handshake failed: {error}")),
            }
        };
        let beside = Box::pin(beside);
        Ok(Wires { reader: Box::new(reader), writer: Box::new(writer), beside, end })
    }
}
