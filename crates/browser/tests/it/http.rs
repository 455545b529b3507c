//! One HTTP request over whatever carries bytes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The secret of every listener of these tests.
pub(crate) const SECRET: [u8; 32] = [9; 32];

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender<'a> {
    pub(crate) bearer: &'a str,
    pub(crate) port: u16,
    /// The browser.
    pub(crate) name: &'a str,
    /// The start of its extension.
    pub(crate) session: &'a str,
    /// What its extension knows.
    pub(crate) revision: u32,
}

/// Sends a request, with a body it is a post, and returns the status and the body of the answer.
pub(crate) async fn ask(
    mut io: impl AsyncRead + AsyncWrite + Unpin,
    sender: Sender<'_>,
    path: &str,
    body: Option<&str>,
) -> io::Result<(u16, String)> {
    let Sender { bearer, port, name, session, revision } = sender;
    let method = if body.is_some() { "POST" } else { "GET" };
    let body = body.unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {bearer}\r\n\
         X-Worker-Id: {name}\r\nX-Boot-Id: {session}\r\nX-Raincheck-Protocol: 1\r\nX-Raincheck-Revision: {revision}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len(),
    );
    io.write_all(request.as_bytes()).await?;
    receive(&mut io).await
}

async fn receive(io: &mut (impl AsyncRead + Unpin)) -> io::Result<(u16, String)> {
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await?);
    }
    let head = String::from_utf8(head).map_err(|_| bad("no head"))?.to_ascii_lowercase();
    let status = head.get(9..12).and_then(|status| status.parse().ok());
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.ok_or_else(|| bad("no length"))?];
    io.read_exact(&mut body).await?;
    let body = String::from_utf8(body).map_err(|_| bad("no text"))?;
    Ok((status.ok_or_else(|| bad("no status"))?, body))
}
