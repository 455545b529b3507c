//! Which tab is a caller's, after commands that did nothing in the one that they named.

use std::pin::pin;

use raincheck_core::error::Kind;
use raincheck_core::lifecycle::State;
use raincheck_runtime::{Request, Submission};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::world::{Extension, SECOND, World, failure, is_about, request, script_in};

/// What is asked for without naming a tab.
fn reload() -> Request {
    request(&json!({ "action": "reload" }))
}

/// Works in tab 7, which is the caller's from then on.
async fn works_in_7(world: &World, browser: &Extension) {
    browser.poll(SECOND).await;
    world.script(7, "1").await;
    let entry = browser.accept().await;
    assert_eq!(browser.say(&entry, "complete", r#""tab_id":7"#).await, "accepted");
}

/// Gives a command that names no tab, and returns the one that it went to.
async fn tab_of_the_next(world: &World, browser: &Extension) -> Value {
    let id = world.submit(reload()).await.id();
    let entry = browser.accept().await;
    assert!(is_about(&entry, id), "{entry}");
    browser.say(&entry, "complete", "").await;
    entry["tab_id"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_command_that_did_nothing_in_the_tab_that_it_named_leaves_the_caller_s_as_it_was() {
    // [BROWSER-70]
    let refused = |code: &str, reason: &str| {
        format!(
            r#""error":{{"code":"{code}","reason":"{reason}","message":"no","guarantee":"not_executed"}}"#
        )
    };
    let in_9 = |more: String| format!(r#""tab_id":9,{more}"#);
    let ends = [
        ("error", refused("peer_not_ready", "tab_gone"), 7),
        ("error", refused("peer_not_ready", "paused"), 7),
        ("error", refused("peer_not_ready", "busy"), 7),
        ("error", in_9(refused("url_blocked", "origin_closed")), 7),
        ("cancelled", refused("cancelled", "stopped_by_user"), 7),
        // It was kept out of the tab when it had its turn there.
        ("error", in_9(refused("peer_not_ready", "paused")), 7),
        ("error", in_9(refused("cancelled", "stopped_by_user")), 7),
        ("cancelled", in_9(refused("cancelled", "odd")), 7),
        // The answer names the tab, and says what to do there.
        ("error", in_9(refused("tool_failed", "element_not_ready")), 9),
        ("error", in_9(refused("peer_not_ready", "dialog_open")), 9),
        // It may have begun.
        ("error", r#""error":{"code":"worker_lost","message":"no"}"#.to_owned(), 9),
        ("cancelled", in_9(r#""error":{"code":"cancelled","message":"no"}"#.to_owned()), 9),
        ("complete", r#""result":1"#.to_owned(), 9),
    ];
    for (status, more, tab) in ends {
        let world = World::new();
        let browser = world.extension("a", "1");
        works_in_7(&world, &browser).await;
        world.script(9, "1").await;
        let entry = browser.accept().await;
        assert_eq!(entry["tab_id"], 9);
        assert_eq!(browser.say(&entry, status, &more).await, "accepted");
        assert_eq!(tab_of_the_next(&world, &browser).await, tab, "{status}: {more}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_that_no_browser_took_leaves_the_caller_s_tab_as_it_was() {
    // [BROWSER-70]
    let world = World::new();
    let browser = world.extension("a", "1");
    works_in_7(&world, &browser).await;
    // Nobody fetches it.
    let unheard = world.script(8, "1").await;
    assert_eq!(world.end(unheard).await.record.state, State::Failed);
    // It was cancelled in line.
    let id = world.script(9, "1").await;
    world.cancel(id).await;
    // The key was given before: nothing is done anew.
    let keyed = |tab| Request { key: Some("k".into()), ..script_in(tab, "1") };
    world.submit(keyed(7)).await;
    world.submit(keyed(7)).await;
    assert!(world.handle.submit(keyed(10)).await.is_err());
    assert_eq!(browser.accept().await["tab_id"], 7);
    let next = world.submit(reload()).await;
    assert_eq!(next.task.lane.as_str(), "tab:7");
}

#[tokio::test(start_paused = true)]
async fn what_follows_at_once_goes_to_the_tab_that_was_named_last() {
    // [BROWSER-19] [BROWSER-70]
    let world = World::new();
    let browser = world.extension("a", "1");
    works_in_7(&world, &browser).await;
    world.script(9, "1").await;
    let entry = browser.accept().await;
    let next = world.submit(reload()).await;
    assert_eq!(next.task.lane.as_str(), "tab:9");
    // Not what is given after that one has failed.
    let gone = r#""error":{"code":"peer_not_ready","reason":"tab_gone","message":"no","guarantee":"not_executed"}"#;
    browser.say(&entry, "error", gone).await;
    let entry = browser.accept().await;
    assert_eq!(entry["tab_id"], 9, "{entry}");
    browser.say(&entry, "error", gone).await;
    assert_eq!(tab_of_the_next(&world, &browser).await, 7);
}

#[tokio::test(start_paused = true)]
async fn what_is_about_no_tab_chooses_none() {
    // [BROWSER-70]
    let world = World::new();
    let browser = world.extension("a", "1");
    works_in_7(&world, &browser).await;
    let lists =
        [json!({ "what": "downloads", "tab_id": 9 }), json!({ "what": "tabs", "tab_id": 9 })];
    for list in lists {
        let request = Request { tool: "observe".into(), ..request(&list) };
        world.submit(request).await;
        let entry = browser.accept().await;
        browser.say(&entry, "complete", r#""result":[]"#).await;
        assert_eq!(tab_of_the_next(&world, &browser).await, 7, "{list}");
    }
    for action in ["tab_close", "record_stop"] {
        world.submit(request(&json!({ "action": action, "tab_id": 9 }))).await;
        let entry = browser.accept().await;
        browser.say(&entry, "complete", "").await;
        assert_eq!(tab_of_the_next(&world, &browser).await, 7, "{action}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tab_that_is_named_later_is_not_that_of_what_was_given_before() {
    // [BROWSER-70]
    let world = World::new();
    let browser = world.extension("a", "1");
    works_in_7(&world, &browser).await;
    // Both are given while the store does not lease.
    let dialog = world.submit(request(&json!({ "action": "dialog", "accept": true })));
    let named = world.submit(script_in(9, "1"));
    let (dialog, _) = tokio::join!(dialog, named);
    let entries = browser.poll(SECOND).await;
    let dialog = entries.iter().find(|entry| is_about(entry, dialog.id())).expect("delivered");
    assert_eq!(dialog["tab_id"], 7);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_no_tab_goes_to_none_that_its_caller_was_refused() {
    // [BROWSER-70]
    let nameless = [
        json!({ "action": "dialog", "accept": true }),
        json!({ "action": "tab_select" }),
        json!({ "action": "tab_close" }),
        json!({ "what": "request", "id": "r1" }),
        json!({ "action": "reload" }),
    ];
    for given in nameless {
        let world = World::new();
        let browser = world.extension("a", "1");
        works_in_7(&world, &browser).await;
        // Nobody fetches it.
        let unheard = world.script(8, "1").await;
        assert_eq!(world.end(unheard).await.record.state, State::Failed);
        let tool = if given["what"].is_null() { "interact" } else { "observe" };
        world.submit(Request { tool: tool.into(), ..request(&given) }).await;
        assert_eq!(browser.command().await["tab_id"], 7, "{given}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_ended_before_a_browser_began_with_it_leaves_the_caller_s_tab_as_it_was() {
    // [BROWSER-70]
    let world = World::new();
    let browser = world.extension("a", "1");
    works_in_7(&world, &browser).await;
    // It was delivered, and not taken on.
    let id = world.script(9, "1").await;
    browser.command().await;
    world.cancel(id).await;
    world.end(id).await;
    assert_eq!(tab_of_the_next(&world, &browser).await, 7);
    // A newer extension could do it.
    let browser = browser.of_first_revision();
    let id = world.submit(request(&json!({ "action": "reload", "tab_id": 9, "changes": true })));
    let id = id.await.id();
    browser.poll(SECOND).await;
    assert_eq!(failure(&world.end(id).await).kind, Kind::PeerIncompatible);
    assert_eq!(tab_of_the_next(&world, &browser).await, 7);
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_was_not_there_is_not_that_of_a_tab_that_is_named_alone() {
    // [BROWSER-70] [BROWSER-7]
    let named = json!({ "what": "default_tab", "tab_id": 8 });
    let default_tab = Request { tool: "configure".into(), ..request(&named) };
    let away = json!({ "action": "reload", "tab_id": 8, "browser_id": "b" });
    for (first, tab) in [(None, 7), (Some(script_in(8, "1")), 8), (Some(default_tab), 8)] {
        let world = World::new();
        let browser = world.extension("a", "1");
        works_in_7(&world, &browser).await;
        for _ in 0..3 {
            browser.poll(2 * SECOND).await;
        }
        let away = world.submit(request(&away)).await;
        assert_eq!(failure(&world.end(away.id()).await).kind, Kind::InvalidParams);
        if let Some(first) = first {
            let first = world.handle.submit(first).await.expect("taken");
            if matches!(first, Submission::Task(_)) {
                let entry = browser.accept().await;
                assert_eq!(entry["tab_id"], tab);
                browser.say(&entry, "complete", "").await;
            }
        }
        assert_eq!(tab_of_the_next(&world, &browser).await, tab);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tab_that_was_named_by_a_call_that_is_being_accepted_is_its_caller_s_once_that_is() {
    // [BROWSER-70]
    let world = World::new();
    let browser = world.extension("a", "1");
    works_in_7(&world, &browser).await;
    world.store.hold_submits();
    let mut named = pin!(world.script(9, "1"));
    assert!(timeout(SECOND, &mut named).await.is_err());
    // Given before the other one is answered, by a client that does not wait for that.
    let mut beside = pin!(world.submit(reload()));
    assert!(timeout(SECOND, &mut beside).await.is_err());
    world.store.take_submits();
    let (_, beside) = tokio::join!(named, beside);
    assert_eq!(beside.task.lane.as_str(), "tab:7");
    let next = world.submit(reload()).await;
    assert_eq!(next.task.lane.as_str(), "tab:9");
}

#[tokio::test(start_paused = true)]
async fn whose_a_command_is_that_runs_is_known_however_many_others_are_given_meanwhile() {
    // [BROWSER-71]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let of = |name: &str, tab| Request { connection: Some(name.into()), ..script_in(tab, "1") };
    let first = world.submit(of("one", 7)).await.id();
    browser.accept().await;
    // Ids are in the order of their milliseconds.
    tokio::time::sleep(SECOND).await;
    for _ in 0..5000 {
        let id = world.submit(of("two", 8)).await.id();
        world.cancel(id).await;
    }
    assert_eq!(world.bridge.connection_of(first).as_deref(), Some("one"));
}

#[tokio::test(start_paused = true)]
async fn a_tab_that_was_found_and_is_closed_to_commands_is_not_its_caller_s() {
    // [BROWSER-70]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    world.submit(reload()).await;
    let closed = r#""tab_id":9,"found":true,"error":{"code":"url_blocked","reason":"origin_closed","message":"no","guarantee":"not_executed"}"#;
    browser.say(&browser.accept().await, "error", closed).await;
    assert_eq!(tab_of_the_next(&world, &browser).await, Value::Null);
}
