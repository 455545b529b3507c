//! What a command comes to once it runs, and what comes after that.

use std::time::Duration;

use raincheck_browser::Settings;
use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::lifecycle::State;
use raincheck_core::task::Outcome;
use raincheck_runtime::Request;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::world::{
    SECOND, World, failure, item, request, result, script_in, seconds_since, text_of,
};

#[tokio::test(start_paused = true)]
async fn a_result_is_kept_as_it_was_written() {
    // [RESULT-1]
    let cases = [
        (
            r#""result":{"b":1.0,"a":[1e2,"ä\u0000"]}"#,
            r#"{"result":{"b":1.0,"a":[1e2,"ä\u0000"]}}"#,
        ),
        (r#""result":null,"engine":"debugger""#, r#"{"result":null,"engine":"debugger"}"#),
        ("", "{}"),
    ];
    for (more, kept) in cases {
        let world = World::new();
        let browser = world.extension("a", "1");
        browser.poll(SECOND).await;
        let id = world.script(7, "1").await;
        let entry = browser.accept().await;
        assert_eq!(browser.say(&entry, "complete", more).await, "accepted");
        let view = world.end(id).await;
        assert_eq!((view.record.state, result(&view).as_str()), (State::Succeeded, kept));
        assert_eq!(result(&world.view(id).await), kept);
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_ends_a_run_that_says_nothing_and_keeps_what_comes_later() {
    // [TIME-3] [LEASE-7]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let entry = browser.accept().await;
    let begin = Instant::now();
    let view = world.end(id).await;
    let error = failure(&view);
    assert_eq!((view.record.state, error.kind), (State::TimedOut, Kind::RunTimeout));
    assert_eq!(error.guarantee(), Some(Guarantee::Unknown));
    let took = seconds_since(begin);
    assert!((10.0..10.5).contains(&took), "{took}");
    assert_eq!(browser.say(&entry, "complete", r#""result":"late""#).await, "already_terminal");
    assert_eq!(browser.say(&entry, "complete", r#""result":"twice""#).await, "already_terminal");
    let payload = world.view(id).await.payload.expect("a readable task");
    assert_eq!(text_of(payload.late.as_ref()), r#"{"result":"late"}"#);
    assert_ne!(payload.outcome, payload.late);
}

#[tokio::test(start_paused = true)]
async fn a_command_has_the_limit_that_its_caller_names_and_the_extension_keeps_it() {
    // [TIME-3]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let request = Request { max_runtime: Some(2 * SECOND), ..script_in(7, "1") };
    let id = world.submit(request).await.id();
    let entry = browser.accept().await;
    assert_eq!(entry["deadline_ms"], 2000);
    sleep(2 * SECOND).await;
    let words = r#""error":{"code":"execution_timeout","message":"stopped after 2 s"}"#;
    assert_eq!(browser.say(&entry, "timeout", words).await, "accepted");
    let view = world.end(id).await;
    assert_eq!(view.record.state, State::TimedOut);
    let error = failure(&view);
    assert_eq!(&*error.message, "the extension stopped it at its time limit");
    assert_eq!(&*error.quoted.expect("quoted").text, "stopped after 2 s");
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_confirmed_once_it_is_committed() {
    // [DUR-1] [LEASE-6]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let entry = browser.accept().await;
    world.store.hold_commits();
    {
        let mut told = std::pin::pin!(browser.say(&entry, "complete", r#""result":1"#));
        let early = tokio::time::timeout(5 * SECOND, &mut told).await;
        assert!(early.is_err(), "told before the commit");
        // The extension gives up, and posts it again.
    }
    let again = browser.say(&entry, "complete", r#""result":1"#);
    let commit = async {
        sleep(Duration::from_millis(10)).await;
        world.store.commit();
    };
    let (verdict, ()) = tokio::join!(again, commit);
    assert_eq!(verdict, "already_terminal");
    let view = world.end(id).await;
    assert_eq!(result(&view), r#"{"result":1}"#);
    assert!(view.payload.expect("readable").late.is_none(), "it is the same answer");
}

#[tokio::test(start_paused = true)]
async fn progress_shows_while_it_runs() {
    // [RESULT-2]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let entry = browser.accept().await;
    let words = r#""progress":{"current":1,"total":4},"partial":[1]"#;
    assert_eq!(browser.say(&entry, "progress", words).await, "accepted");
    let view = world.view(id).await;
    assert_eq!(view.partial.expect("a partial result").get(), "[1]");
    assert!(view.progress.is_some());
}

#[tokio::test(start_paused = true)]
async fn what_a_refused_address_showed_is_not_kept_in_time_or_late() {
    // [BROWSER-16] [BROWSER-11]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let navigate = json!({ "action": "navigate", "tab_id": 7, "url": "https://example.com/" });
    let shown = r#""result":{"url":"http://169.254.169.254/","text":"key"}"#;

    let id = world.submit(request(&navigate)).await.id();
    let entry = browser.accept().await;
    assert_eq!(browser.say(&entry, "complete", shown).await, "accepted");
    assert_eq!(failure(&world.end(id).await).kind, Kind::UrlBlocked);

    let id = world.submit(request(&navigate)).await.id();
    let entry = browser.accept().await;
    assert_eq!(world.end(id).await.record.state, State::TimedOut);
    // Nobody waits for it any more.
    sleep(6 * SECOND).await;
    assert_eq!(browser.say(&entry, "complete", shown).await, "already_terminal");
    let late = world.view(id).await.payload.expect("a readable task").late.clone();
    assert!(matches!(&late, Some(Outcome::Failed(e)) if e.kind == Kind::UrlBlocked), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn an_end_whose_post_is_given_up_while_its_output_is_saved_is_recorded_all_the_same() {
    // [LEASE-6] [BROWSER-40]
    let folder = tempfile::tempdir().expect("a folder");
    let files_dir = Some(folder.path().to_owned());
    let world = World::with(Settings { files_dir, ..Settings::default() });
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let saves = json!({
        "action": "execute_js", "tab_id": 7, "script": "1", "save_to": "out.json",
    });
    let id = world.submit(request(&saves)).await.id();
    let entry = browser.accept().await;
    let items = [item(&entry, "complete", r#""result":1"#)];
    let is_saving = async {
        while std::fs::read_dir(folder.path()).expect("a folder").next().is_none() {
            tokio::task::yield_now().await;
        }
    };
    // The extension goes as soon as there is something of the file.
    tokio::select! {
        _ = browser.post(&items) => {}
        () = is_saving => {}
    }
    let view = world.end(id).await;
    assert_eq!(view.record.state, State::Succeeded);
    assert!(result(&view).contains("saved_to"), "{view:?}");
    assert_eq!(std::fs::read(folder.path().join("out.json")).expect("there"), b"1");
}
