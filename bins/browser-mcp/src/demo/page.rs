//! The page that the browser shows, from a listener of its own.

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::Unmet;
use super::scripts::PAGE;

/// The most bytes of a request.
const MAX_REQUEST: usize = 16 * 1024;

/// The page while it is served. Dropping it ends that.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) url: String,
    _serving: JoinSet<()>,
}

impl Page {
    /// Begins to serve it.
    pub(super) async fn open() -> Result<Self, Unmet> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener));
        Ok(Self { url, _serving: serving })
    }
}

async fn serve(listener: TcpListener) {
    let mut visits = JoinSet::new();
    while let Ok((visitor, _)) = listener.accept().await {
        visits.spawn(async move {
            if let Err(error) = answer(visitor).await {
                tracing::debug!(%error, "a visitor of the page went away");
            }
        });
        while visits.try_join_next().is_some() {}
    }
}

/// Reads the head of one request and answers it.
async fn answer(mut visitor: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if visitor.read_buf(&mut head).await? == 0 || head.len() > MAX_REQUEST {
            return Ok(());
        }
    }
    let (status, body) =
        if head.starts_with(b"GET / ") { ("200 OK", PAGE) } else { ("404 Not Found", "") };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    visitor.write_all(answer.as_bytes()).await?;
    visitor.shutdown().await
}
