//! Artifacts through a listener [ART-2].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use raincheck_core::ids::ArtifactId;
use raincheck_core::time::Timestamp;
use raincheck_loopback::Secret;
use raincheck_loopback::artifacts::{
    ArtifactSource, Artifacts, OpenArtifact, Signer, open_beneath, policy,
};
use tempfile::TempDir;

use crate::harness::{PORT, Reply, Rig, options, start_of};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const SOON: Timestamp = Timestamp::from_millis(1_700_000_060_000);

/// Files by id in one folder; each is named `{id} ü.html`.
struct Shelf(PathBuf);

fn name(id: &str) -> String {
    format!("sub/{id} ü.html")
}

#[async_trait]
impl ArtifactSource for Shelf {
    async fn open(&self, id: &ArtifactId) -> Option<OpenArtifact> {
        let file = open_beneath(&self.0, Path::new(id.as_str())).ok()?;
        let size = file.metadata().ok()?.len();
        Some(OpenArtifact { file: file.into(), name: name(id.as_str()).into(), size })
    }
}

struct Store {
    rig: Rig,
    signer: Signer,
    _dir: TempDir,
}

/// Starts a listener with the artifacts `art_1` and `art_2`, and a secret file beside their folder.
fn store() -> Store {
    let dir = tempfile::tempdir().expect("a folder");
    let shelf = dir.path().join("shelf");
    std::fs::create_dir(&shelf).expect("made");
    std::fs::write(dir.path().join("secret"), "root:").expect("written");
    for id in ["art_1", "art_2"] {
        std::fs::write(shelf.join(id), content(id)).expect("written");
    }
    let signer = Signer::new(Secret::from_bytes([3; 32]));
    let artifacts = Artifacts::new(signer.clone(), Arc::new(Shelf(shelf)), Arc::new(|| NOW));
    let rig = start_of(options().serving(artifacts.router(), policy()));
    Store { rig, signer, _dir: dir }
}

/// More than one buffer of the reader.
fn content(id: &str) -> Vec<u8> {
    let script = format!("<script>{id}</script>");
    script.bytes().cycle().take(100_000).collect()
}

impl Store {
    fn link(&self, id: &str, expires: Timestamp) -> String {
        let url = self.signer.url(&self.rig.info.url, &ArtifactId::from(id), &name(id), expires);
        url.strip_prefix(&self.rig.info.url).expect("a link of this listener").to_owned()
    }

    async fn ask(&self, method: &str, target: &str, headers: &str) -> Reply {
        let request =
            format!("{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\n{headers}\r\n");
        self.rig.send(request.as_bytes()).await.expect("a reply")
    }

    async fn get(&self, target: &str) -> Reply {
        self.ask("GET", target, "").await
    }
}

#[tokio::test]
async fn a_link_gives_the_whole_file_as_a_file() {
    let store = store();
    let reply = store.get(&store.link("art_1", SOON)).await;
    assert_eq!(reply.status, 200, "[ART-2]");
    assert!(reply.body == content("art_1"), "[ART-1] every byte");
    let expected = [
        ("content-length", "100000"),
        ("content-type", "application/octet-stream"),
        ("x-content-type-options", "nosniff"),
        ("content-disposition", "attachment; filename*=UTF-8''art_1%20%C3%BC.html"),
        ("content-security-policy", "sandbox; default-src 'none'"),
        ("cache-control", "private, no-store"),
    ];
    for (header, value) in expected {
        assert_eq!(reply.header(header), Some(value), "[SEC-9] {header}");
    }
}

#[tokio::test]
async fn whatever_is_not_exactly_a_link_gets_the_same_404() {
    let store = store();
    let link = store.link("art_1", SOON);
    let (path, query) = link.split_once('?').expect("a query");
    let gone = store.link("art_9", SOON);
    let odd = [
        store.link("art_1", NOW),
        gone,
        path.to_owned(),
        format!("{path}?{query}0"),
        format!("{path}?{query}&x=1"),
        format!("{path}?sig=&exp="),
        format!("{path}/?{query}"),
        format!("{path}%2f..%2f..%2fsecret?{query}"),
        format!("{path}/../../../secret?{query}"),
        format!("{path}%00?{query}"),
        format!("{path}%ff?{query}"),
        format!("{path}%zz?{query}"),
        format!("/artifacts/art_1?{query}"),
        format!("/artifacts/art_1/?{query}"),
        format!("/artifacts/../secret?{query}"),
        format!("/artifacts/%2e%2e/secret?{query}"),
        format!("/artifacts//etc/passwd?{query}"),
        "/artifacts".to_owned(),
        "/artifacts/".to_owned(),
        "/artifacts/..%5c..%5csecret".to_owned(),
        "/../../secret".to_owned(),
        link.replace("art_1", "art_2"),
        link.replacen("art_1", "art_2", 1),
        link.replace("sub%2F", ""),
        store.link("../secret", SOON),
    ];
    let first = store.get("/nowhere").await;
    assert_eq!(first.status, 404);
    for target in odd {
        let reply = store.get(&target).await;
        assert_eq!((reply.status, &reply.body), (404, &first.body), "[ART-2] {target}");
    }
    assert_eq!(store.ask("POST", &link, "").await.status, 404, "[ART-2]");
    assert_eq!(store.get(&link).await.status, 200, "the untouched link still answers");
}

#[tokio::test]
async fn a_part_is_given_when_a_part_is_asked_for() {
    let store = store();
    let link = store.link("art_1", SOON);
    let part = store.ask("GET", &link, "Range: bytes=99990-\r\n").await;
    assert_eq!((part.status, &part.body[..]), (206, &content("art_1")[99_990..]));
    assert_eq!(part.header("content-range"), Some("bytes 99990-99999/100000"));
    let outside = store.ask("GET", &link, "Range: bytes=100000-\r\n").await;
    assert_eq!(outside.status, 416);
    assert_eq!(outside.header("content-range"), Some("bytes */100000"));
}

#[tokio::test]
async fn a_strange_host_or_page_gets_no_file_even_with_a_link() {
    let store = store();
    let link = store.link("art_1", SOON);
    let origin = store.ask("GET", &link, "Origin: https://evil.example\r\n").await;
    assert_eq!(origin.status, 403, "[SEC-2]");
    let request = format!("GET {link} HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    let host = store.rig.send(request.as_bytes()).await.expect("a reply");
    assert_eq!(host.status, 403, "[SEC-2]");
}

#[tokio::test]
async fn the_head_of_a_file_can_be_asked_for() {
    let store = store();
    let link = store.link("art_1", SOON);
    let reply = store.ask("HEAD", &link, "Connection: close\r\n").await;
    assert_eq!((reply.status, reply.header("content-length")), (200, Some("100000")));
    assert!(reply.body.is_empty());
}
