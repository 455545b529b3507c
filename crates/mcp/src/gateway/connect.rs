//! Making a connection to the other server.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::calls::Calls;

/// How a connection says that its other end closed it.
pub(super) const CLOSED: &str = "it closed the connection";

/// Why the other server is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Why {
    /// In our words.
    pub(super) words: String,
    /// The last that it said itself, such as lines on standard error.
    pub(super) said: String,
}

impl Why {
    pub(super) fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), said: String::new() }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// What runs beside a connection: its end is the end of the connection, and says why.
pub(super) type Beside = Pin<Box<dyn Future<Output = Why> + Send>>;

/// A connection as streams of lines.
pub(super) struct Wires {
    pub(super) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) writer: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) beside: Beside,
    /// Tells what runs beside the connection to end; the streams were closed before.
    pub(super) end: CancellationToken,
}

/// A way to the other server.
#[async_trait]
pub(super) trait Connect: Send + Sync + 'static {
    /// Names the other server in words of ours, without anything secret.
    fn name(&self) -> String;

    /// Makes a connection. What the other server says outside of it goes to `calls`.
    async fn connect(&self, calls: &Arc<Calls>) -> Result<Wires, Why>;
}

/// The streams of a connection, in the making.
type Opening = Pin<
    Box<
        dyn Future<
                Output = io::Result<(
                    Box<dyn AsyncRead + Send + Unpin>,
                    Box<dyn AsyncWrite + Send + Unpin>,
                )>,
            > + Send,
    >,
>;

/// Streams that somebody else opens.
pub(super) struct Opened {
    name: String,
    open: Box<dyn Fn() -> Opening + Send + Sync>,
}

impl Opened {
    pub(super) fn new<O, F, R, W>(name: &str, open: O) -> Self
    where
        O: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = io::Result<(R, W)>> + Send + 'static,
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let open = move || -> Opening {
            let opening = open();
            Box::pin(async move {
                let (reader, writer) = opening.await?;
                Ok((Box::new(reader) as Box<_>, Box::new(writer) as Box<_>))
            })
        };
        Self { name: name.to_owned(), open: Box::new(open) }
    }
}

#[async_trait]
impl Connect for Opened {
    fn name(&self) -> String {
        format!("`{}`", self.name)
    }

    async fn connect(&self, _: &Arc<Calls>) -> Result<Wires, Why> {
        let opened = (self.open)().await;
        let (reader, writer) =
            opened.map_err(|error| Why::new(format!("it cannot be reached: {error}")))?;
        let end = CancellationToken::new();
        let ended = end.clone();
        let beside = Box::pin(async move {
            ended.cancelled().await;
            Why::new(CLOSED)
        });
        Ok(Wires { reader, writer, beside, end })
    }
}
