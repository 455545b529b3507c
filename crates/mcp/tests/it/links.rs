//! Links to artifacts [ART-2].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use raincheck_core::task::Artifact;
use raincheck_core::time::Timestamp;
use raincheck_mcp::{Links, Options};

use crate::session::{Session, Setup};

/// Writes links while `is_open`, and counts how often it was asked.
#[derive(Debug, Default)]
struct Book {
    is_open: bool,
    n_asked: AtomicUsize,
    n_moved: AtomicUsize,
}

#[async_trait::async_trait]
impl Links for Book {
    async fn write(&self, artifacts: &[Artifact], expires: Timestamp) -> Option<Vec<String>> {
        self.n_asked.fetch_add(1, Ordering::SeqCst);
        let n = self.n_moved.load(Ordering::SeqCst);
        let here = if n == 0 { "here".to_owned() } else { format!("there-{n}") };
        let link = |one: &Artifact| format!("http://{here}/{}/{}?{expires}", one.id, one.name);
        self.is_open.then(|| artifacts.iter().map(link).collect())
    }
}

async fn open(is_open: bool) -> (Session, Arc<Book>) {
    let book = Arc::new(Book { is_open, ..Book::default() });
    let links: Arc<dyn Links> = Arc::clone(&book) as _;
    let options = Options { links: Some(links), ..Options::new("0.0.0") };
    (Session::open_with(Setup { options, ..Setup::default() }).await, book)
}

#[tokio::test(start_paused = true)]
async fn every_artifact_has_a_link_that_ends_with_its_task() {
    let (mut session, _) = open(true).await;
    let id = session.submit("leave", r#"{"names":["a b","c"]}"#).await;
    let ended = session.end_of(&id).await;
    let expires = ended["expires_at"].as_str().expect("an instant");
    for (place, name) in ["a b", "c"].into_iter().enumerate() {
        let artifact = &ended["artifacts"][place];
        let id = artifact["artifact_id"].as_str().expect("an id");
        assert_eq!(artifact["name"], name);
        assert_eq!(artifact["download_url"], format!("http://here/{id}/{name}?{expires}"));
        assert_eq!(artifact["expires_at"], expires, "[ART-2]");
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_readings_only_the_links_may_differ() {
    // [RESULT-1] [CALL-8]
    let (mut session, book) = open(true).await;
    let id = session.submit("leave", r#"{"names":["a"]}"#).await;
    let mut before = session.end_of(&id).await;
    book.n_moved.fetch_add(1, Ordering::SeqCst);
    let mut after = session.end_of(&id).await;
    let link = |ended: &mut serde_json::Value| ended["artifacts"][0]["download_url"].take();
    assert_ne!(link(&mut before), link(&mut after));
    assert_eq!(before, after);
}

#[tokio::test(start_paused = true)]
async fn what_writes_links_is_only_needed_for_artifacts() {
    let (mut session, book) = open(true).await;
    let id = session.submit("echo", "{}").await;
    session.end_of(&id).await;
    let nap = session.submit("nap", r#"{"s":60}"#).await;
    session.good("get_task_result", &format!(r#"{{"task_id":"{nap}"}}"#)).await;
    assert_eq!(book.n_asked.load(Ordering::SeqCst), 0, "[ART-2]");
    let id = session.submit("leave", r#"{"names":["a","b","c"]}"#).await;
    session.end_of(&id).await;
    assert_eq!(book.n_asked.load(Ordering::SeqCst), 1, "once for all of them");
}

#[tokio::test(start_paused = true)]
async fn without_a_listener_artifacts_are_listed_without_a_link() {
    let (closed, _) = open(false).await;
    for mut session in [closed, Session::open().await] {
        let id = session.submit("leave", r#"{"names":["a"]}"#).await;
        let ended = session.end_of(&id).await;
        assert_eq!(ended["artifacts"][0]["name"], "a", "[ART-1]");
        assert_eq!(ended["artifacts"][0].get("download_url"), None, "{ended}");
    }
}
