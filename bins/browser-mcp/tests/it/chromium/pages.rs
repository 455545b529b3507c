//! The web that the browser of a test sees: the files of `tests/pages`, at two origins.
//!
//! In a file `{{here}}` and `{{there}}` become the two origins, and `{{elsewhere}}` the second by another
//! name, which makes it another site. A first line `<!-- Name: value -->` is a
//! header of the answer, and so is each such line after it. Beside the files there are
//!
//! - `/redirect?ADDRESS`: 302 to the address
//! - `/status?N`: an answer with that status and no body
//! - `/never`: no answer while the visitor waits

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The most bytes of a request's head.
const MAX_REQUEST: usize = 64 * 1024;

/// Types of files by the end of their names.
const TYPES: [(&str, &str); 5] = [
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("pdf", "application/pdf"),
    ("txt", "text/plain; charset=utf-8"),
];

/// Pages while they are served. Dropping it ends that.
pub(super) struct Pages {
    pub(super) here: String,
    pub(super) there: String,
    _serving: JoinSet<()>,
}

impl Pages {
    /// Begins to serve.
    pub(super) async fn open() -> Self {
        let (here, there) = (listener().await, listener().await);
        let origin = |listener: &TcpListener| {
            format!("http://{}", listener.local_addr().expect("an address"))
        };
        let origins = [origin(&here), origin(&there)];
        let site = Arc::new(Site { folder: folder(), origins: origins.clone() });
        let mut serving = JoinSet::new();
        serving.spawn(serve(here, Arc::clone(&site)));
        serving.spawn(serve(there, site));
        let [here, there] = origins;
        Self { here, there, _serving: serving }
    }
}

impl Pages {
    /// Returns the second origin by another name of this machine.
    pub(super) fn elsewhere(&self) -> String {
        elsewhere(&self.there)
    }
}

fn elsewhere(there: &str) -> String {
    there.replace("127.0.0.1", "localhost")
}

/// The names of all pages.
pub(super) fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder()).expect("a folder").flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".html")).collect();
    names.sort();
    names
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages")
}

async fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port")
}

struct Site {
    folder: PathBuf,
    origins: [String; 2],
}

/// What is answered.
struct Reply {
    status: String,
    headers: Vec<String>,
    body: Vec<u8>,
}

async fn serve(listener: TcpListener, site: Arc<Site>) {
    let mut visits = JoinSet::new();
    while let Ok((visitor, _)) = listener.accept().await {
        let site = Arc::clone(&site);
        visits.spawn(async move {
            // A visitor may go away at any time.
            let _ = answer(visitor, &site).await;
        });
        while visits.try_join_next().is_some() {}
    }
}

/// Reads the head of one request and answers it.
async fn answer(mut visitor: TcpStream, site: &Site) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if visitor.read_buf(&mut head).await? == 0 || head.len() > MAX_REQUEST {
            return Ok(());
        }
    }
    // What is left unread would break the connection before the answer has arrived.
    let end = head.windows(4).position(|end| end == b"\r\n\r\n").unwrap_or_default() + 4;
    let said = String::from_utf8_lossy(&head).to_lowercase();
    let length =
        said.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    while head.len() < end + length.unwrap_or(0_usize).min(MAX_REQUEST) {
        if visitor.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head);
    let target = head.split(' ').nth(1).unwrap_or_default();
    if target == "/never" {
        // Until it goes away.
        let _gone = visitor.read(&mut [0]).await?;
        return Ok(());
    }
    let Reply { status, headers, body } = site.reply(target);
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    visitor.write_all(head.as_bytes()).await?;
    visitor.write_all(&body).await?;
    visitor.shutdown().await
}

impl Site {
    fn reply(&self, target: &str) -> Reply {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match path {
            "/redirect" => Reply {
                status: "302 Found".to_owned(),
                headers: vec![format!("Location: {}", self.filled(query))],
                body: Vec::new(),
            },
            "/status" => {
                Reply { status: format!("{query} Told"), headers: Vec::new(), body: Vec::new() }
            }
            _ => self.file(path.trim_start_matches('/')),
        }
    }

    fn file(&self, name: &str) -> Reply {
        let is_plain = !name.contains(['/', '\\']);
        let Some(body) = is_plain.then(|| std::fs::read(self.folder.join(name)).ok()).flatten()
        else {
            let status = "404 Not Found".to_owned();
            return Reply { status, headers: Vec::new(), body: Vec::new() };
        };
        let kind = TYPES.iter().find(|(end, _)| name.ends_with(&format!(".{end}")));
        let kind = kind.map_or("application/octet-stream", |(_, kind)| *kind);
        let mut headers = vec![format!("Content-Type: {kind}")];
        let body = match String::from_utf8(body) {
            Ok(text) => {
                headers.extend(told_headers(&text).map(str::to_owned));
                self.filled(&text).into_bytes()
            }
            Err(binary) => binary.into_bytes(),
        };
        Reply { status: "200 OK".to_owned(), headers, body }
    }

    fn filled(&self, text: &str) -> String {
        let [here, there] = &self.origins;
        let text = text.replace("{{here}}", here).replace("{{there}}", there);
        text.replace("{{elsewhere}}", &elsewhere(there))
    }
}

/// Returns the headers that the first lines of a page name.
fn told_headers(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map_while(told_header)
}

fn told_header(line: &str) -> Option<&str> {
    let header = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    header.contains(": ").then_some(header)
}
