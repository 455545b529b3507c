//! A handler of this process as the other server.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::ServerHandler;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio_util::sync::CancellationToken;

use super::calls::Calls;
use super::connect::{Connect, Why, Wires};

/// How many bytes may be on their way between the two.
const PIPE: usize = 256 << 10;

/// A handler: each connection is served by the same one.
pub(super) struct InProcess<H>(Arc<H>);

impl<H> InProcess<H> {
    pub(super) fn new(handler: H) -> Self {
        Self(Arc::new(handler))
    }
}

#[async_trait]
impl<H: ServerHandler> Connect for InProcess<H> {
    fn name(&self) -> String {
        "the handler".to_owned()
    }

    async fn connect(&self, _: &Arc<Calls>) -> Result<Wires, Why> {
        let handler = Arc::clone(&self.0);
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let (reader, writer) = tokio::io::split(ours);
        let end = CancellationToken::new();
        let ended = end.clone();
        let beside = async move {
            let (reader, writer) = tokio::io::split(theirs);
            // What we write is bounded where it comes in: a line that is left out here would never be answered.
            let transport =
                AsyncRwTransport::new_server(reader, writer).with_max_line_length(usize::MAX);
            let served = rmcp::service::serve_server_with_ct(handler, transport, ended).await;
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::gateway::link::{Answering, Failure, Hears, Link};
    use crate::gateway::message::RpcError;

    /// A server without tools of its own: it refuses every call.
    struct Existing;

    impl ServerHandler for Existing {}

    /// Hears nothing.
    struct Deaf;

    #[async_trait]
    impl Hears for Deaf {
        async fn notified(&self, _: &str, _: Option<&serde_json::value::RawValue>) {}

        async fn noise(&self, _: &[u8]) {}

        fn asked(&self, method: &str, _: Option<&serde_json::value::RawValue>) -> Answering {
            let answer = Err(RpcError::no_method(method));
            Box::pin(async move { answer })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_connection_has_the_handler_and_every_line_is_answered() {
        // [GATE-7] [GATE-9]
        let handler = InProcess::new(Existing);
        for round in ["first", "second"] {
            let wires = handler.connect(&Arc::default()).await;
            let Ok(Wires { reader, writer, beside, .. }) = wires else { panic!("{round}") };
            let (link, outbox) = Link::new();
            let talk = async {
                let introduction = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                    "clientInfo": {"name": "case", "version": "0"}});
                link.request("initialize", introduction).await.expect("a handshake");
                link.notify("notifications/initialized", None::<()>);
                let large = "x".repeat(17 << 20);
                let call = json!({"name": "none", "arguments": {"large": large}});
                let refused = link.request("tools/call", call).await.expect_err("no such tool");
                assert!(matches!(refused, Failure::Refused(_)), "{round}: {refused:?}");
            };
            tokio::select! {
                () = talk => {}
                why = link.run(reader, writer, outbox, &Deaf) => panic!("{round}: {why}"),
                why = beside => panic!("{round}: {why}"),
            }
        }
    }
}
