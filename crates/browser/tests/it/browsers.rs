//! Several browsers at once.

use raincheck_browser::Settings;
use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_runtime::Request;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::world::{SECOND, World, failure, is_about, request, seconds_since};

#[tokio::test(start_paused = true)]
async fn a_command_goes_to_the_browser_that_it_names() {
    // [QUEUE-1]
    let world = World::new();
    let (one, two) = (world.extension("one", "1"), world.extension("two", "1"));
    one.poll(SECOND).await;
    two.poll(SECOND).await;
    let named = json!({ "action": "reload", "tab_id": 7, "browser_id": "one" });
    let named = world.submit(request(&named)).await.id();
    let other = json!({ "action": "reload", "tab_id": 7, "browser_id": "two" });
    let other = world.submit(request(&other)).await.id();
    let (first, second) = tokio::join!(one.accept(), two.accept());
    assert!(is_about(&first, named) && is_about(&second, other));
    assert_eq!(one.say(&first, "complete", "").await, "accepted");
    assert_eq!(world.end(named).await.record.state, State::Succeeded);
    assert_eq!(world.state(other).await, State::Running);
}

#[tokio::test(start_paused = true)]
async fn the_tab_that_a_first_command_found_is_its_caller_s_however_that_ended() {
    // [BROWSER-53]
    let world = World::new();
    let browser = world.extension("one", "1");
    browser.poll(SECOND).await;
    for (tab, status) in [(7, "error"), (8, "timeout"), (9, "cancelled"), (10, "complete")] {
        let by = |owner: &str| Request {
            scope: Scope::new(format!("{owner} {tab}")),
            ..request(&json!({ "action": "reload" }))
        };
        world.submit(by("first")).await;
        let first = browser.accept().await;
        let found = format!(r#""tab_id":{tab},"found":true"#);
        assert_eq!(browser.say(&first, status, &found).await, "accepted");
        world.submit(by("second")).await;
        let second = browser.accept().await;
        let others = second["others"].as_array().expect("others");
        assert!(others.contains(&json!(tab)), "{status}: {second}");
        assert_eq!(browser.say(&second, "complete", "").await, "accepted");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tab_alone_finds_its_browser() {
    // [BROWSER-7]
    let world = World::new();
    let (one, two) = (world.extension("one", "1"), world.extension("two", "1"));
    one.poll(SECOND).await;
    two.poll(SECOND).await;
    let events = json!([
        { "kind": "tab", "tab_id": 7, "event": "open" }, { "kind": "tab", "tab_id": 8, "event": "open" },
    ]);
    one.ask("/events", Some(&events.to_string())).await;
    let shared = json!({ "kind": "tab", "tab_id": 8, "event": "open" });
    two.ask("/events", Some(&shared.to_string())).await;
    // The other one polls; the tab is not its.
    let mut held = std::pin::pin!(two.command());
    assert!(timeout(SECOND, &mut held).await.is_err());
    let id = world.script(7, "1").await;
    assert!(is_about(&one.accept().await, id));
    // A number that both use is refused before anything runs.
    let id = world.script(8, "1").await;
    let ended = world.end(id).await.record;
    assert_eq!(ended.state, State::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_nobody_knows_is_told_at_once_with_those_that_are_there() {
    // [BROWSER-7]
    let world = World::new();
    let one = world.extension("one", "1");
    one.poll(SECOND).await;
    let named = |name: &str| json!({ "action": "reload", "tab_id": 7, "browser_id": name });
    let ended = async |request| {
        let begin = Instant::now();
        let id = world.submit(request).await.id();
        let view = world.end(id).await;
        (failure(&view), seconds_since(begin))
    };
    // It may be about to come.
    let (early, waited) = ended(request(&named("two"))).await;
    assert_eq!((early.kind, waited), (Kind::AcceptTimeout, 3.0), "{early:?}");
    sleep(2 * SECOND).await;
    one.poll(SECOND).await;
    let (unknown, waited) = ended(request(&named("two"))).await;
    assert_eq!((unknown.kind, waited), (Kind::InvalidParams, 0.0), "{unknown:?}");
    assert_eq!(unknown.guarantee(), Some(Guarantee::NotExecuted));
    for part in ["`browser_id`", "`two`", "connected: `one`"] {
        assert!(unknown.message.contains(part), "{unknown:?}");
    }
    // Somebody waits for it.
    let patient = Request { ready: Some(60 * SECOND), ..request(&named("two")) };
    let patient = world.submit(patient).await.id();
    let two = world.extension("two", "1");
    assert!(is_about(&two.accept().await, patient));
    // One that was there, and is silent now, is waited for.
    sleep(60 * SECOND).await;
    one.poll(SECOND).await;
    let (silent, _) = ended(request(&named("two"))).await;
    assert_eq!(silent.kind, Kind::AcceptTimeout, "{silent:?}");
}

#[tokio::test(start_paused = true)]
async fn the_tab_of_a_caller_in_one_browser_is_not_looked_for_in_another_one() {
    // [BROWSER-7] [BROWSER-19]
    let world = World::new();
    let (one, two) = (world.extension("one", "1"), world.extension("two", "1"));
    one.poll(SECOND).await;
    two.poll(SECOND).await;
    let open = json!({ "kind": "tab", "tab_id": 7, "event": "open" }).to_string();
    one.ask("/events", Some(&open)).await;
    world.script(7, "1").await;
    let entry = one.accept().await;
    one.say(&entry, "complete", r#""tab_id":7"#).await;
    for action in [
        json!({ "action": "reload", "browser_id": "two" }),
        json!({ "action": "tab_select", "browser_id": "two" }),
    ] {
        world.submit(request(&action)).await;
        let entry = two.accept().await;
        assert_eq!(entry["tab_id"], json!(null), "{action}");
        two.say(&entry, "error", r#""error":"no""#).await;
    }
    // A number that several use is no choice.
    two.ask("/events", Some(&open)).await;
    let chosen = json!({ "what": "default_tab", "tab_id": 7 });
    let chosen = Request { tool: "configure".into(), ..request(&chosen) };
    let error = world.handle.submit(chosen).await.expect_err("two have it");
    assert_eq!(error.kind, Kind::InvalidParams);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_names_none_goes_to_the_one_that_polls() {
    let world = World::new();
    let (one, two) = (world.extension("one", "1"), world.extension("two", "1"));
    two.poll(SECOND).await;
    let mut held = std::pin::pin!(one.command());
    assert!(timeout(SECOND, &mut held).await.is_err());
    let id = world.script(7, "1").await;
    assert!(is_about(&held.await, id));
    assert!(two.poll(SECOND).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_browser_too_many_is_refused_until_another_is_gone() {
    let world = World::with(Settings { max_browsers: 2, ..Settings::default() });
    let (one, two) = (world.extension("one", "1"), world.extension("two", "1"));
    one.poll(SECOND).await;
    two.poll(SECOND).await;
    let three = world.extension("three", "1");
    let (status, answer) = three.ask("/pending-queries?wait_ms=0", None).await;
    assert_eq!((status, &answer["code"]), (503, &"queue_full".into()), "{answer}");
    sleep(4 * SECOND).await;
    assert_eq!(three.ask("/pending-queries?wait_ms=0", None).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_newer_poll_of_a_browser_ends_the_older_one() {
    let world = World::new();
    let browser = world.extension("a", "1");
    let begin = Instant::now();
    let mut older = std::pin::pin!(browser.poll(20 * SECOND));
    assert!(timeout(SECOND, &mut older).await.is_err());
    let newer = browser.command();
    let call = async {
        assert!(older.await.is_empty());
        assert!(seconds_since(begin) < 1.1);
        world.script(7, "1").await
    };
    let (entry, id) = tokio::join!(newer, call);
    assert!(is_about(&entry, id));
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_is_held_when_the_server_ends_is_refused() {
    // [BROWSER-8] An answer of no entries would be asked again, with the secret, whoever has the port then.
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let mut held = std::pin::pin!(browser.ask("/pending-queries?wait_ms=20000", None));
    assert!(timeout(SECOND, &mut held).await.is_err());
    world.close();
    let (status, answer) = held.await;
    assert_eq!((status, &answer["code"]), (503, &"peer_not_ready".into()), "{answer}");
}
