//! One lane for each tab, held while no browser is there.

use raincheck_browser::Settings;
use raincheck_core::content::Json;
use raincheck_core::error::Kind;
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::task::{Outcome, WaitReason};
use raincheck_runtime::{Request, Submission};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::world::{SECOND, World, is_about, request, script_in};

#[tokio::test(start_paused = true)]
async fn commands_wait_for_a_browser_and_go_on_in_order() {
    // [QUEUE-5] [QUEUE-1]
    let world = World::new();
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(world.script(7, &n.to_string()).await);
    }
    for id in &ids {
        let record = world.view(*id).await.record;
        assert_eq!(
            (record.state, record.waiting),
            (State::Waiting, Some(WaitReason::new("waiting_for_browser")))
        );
    }
    let browser = world.extension("a", "1");
    for id in ids {
        let entry = browser.accept().await;
        assert!(is_about(&entry, id));
        assert!(browser.poll(SECOND).await.is_empty(), "one at a time");
        browser.say(&entry, "complete", r#""result":1"#).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_tab_does_not_wait_for_another() {
    // [QUEUE-1]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    world.script(1, "1").await;
    browser.accept().await;
    let other = world.script(2, "2").await;
    assert!(is_about(&browser.accept().await, other));
}

#[tokio::test(start_paused = true)]
async fn a_browser_counts_as_gone_a_moment_after_its_last_word() {
    // [QUEUE-5]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let early = world.script(7, "1").await;
    assert_eq!(world.state(early).await, State::Scheduled);
    assert!(is_about(&browser.command().await, early));
    sleep(4 * SECOND).await;
    let late = world.script(7, "2").await;
    assert_eq!(world.state(late).await, State::Waiting);
    let entry = browser.command().await;
    assert!(is_about(&entry, late), "{entry}");
}

#[tokio::test(start_paused = true)]
async fn a_poll_whose_extension_goes_away_ends() {
    // [QUEUE-5]
    let world = World::new();
    let browser = world.extension("a", "1");
    assert!(timeout(10 * SECOND, browser.poll(30 * SECOND)).await.is_err());
    sleep(4 * SECOND).await;
    let id = world.script(7, "1").await;
    assert_eq!(world.state(id).await, State::Waiting);
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_comes_while_the_store_fails_gets_its_commands_once_it_is_back() {
    // [QUEUE-5]
    let world = World::new();
    let request = Request { ready: Some(60 * SECOND), ..script_in(7, "1") };
    let id = world.submit(request).await.id();
    world.store.break_down();
    let browser = world.extension("a", "1");
    assert!(browser.poll(5 * SECOND).await.is_empty());
    world.store.mend();
    assert!(is_about(&browser.command().await, id));
}

#[tokio::test(start_paused = true)]
async fn what_is_done_to_a_tab_beside_its_lane_is_done_to_the_default_tab() {
    // [BROWSER-5]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let chosen = json!({ "what": "default_tab", "tab_id": 7 });
    let inputs = Json::of(&chosen).expect("JSON");
    let answer = world.handle.submit(Request::new("configure", inputs, Scope::local())).await;
    assert!(matches!(answer, Ok(Submission::Answer(Outcome::Succeeded(_)))), "{answer:?}");
    for (action, tab) in [("tab_close", json!(7)), ("dialog", json!(7)), ("tab_new", json!(null))] {
        let inputs = json!({ "action": action });
        let inputs =
            if action == "dialog" { json!({ "action": action, "accept": true }) } else { inputs };
        world.submit(request(&inputs)).await;
        assert_eq!(browser.accept().await["tab_id"], tab, "{action}");
    }
}

#[tokio::test(start_paused = true)]
async fn lanes_of_tabs_without_a_command_make_room_for_others_and_no_other_lane_does() {
    // [QUEUE-1] [QUEUE-2]
    // Two lanes are always there.
    let world = World::with(Settings { max_tabs: 6, ..Settings::default() });
    let mut waiting = Vec::new();
    for tab in 1..=4 {
        waiting.push(world.script(tab, "1").await);
    }
    let full = world.handle.submit(script_in(5, "1")).await.expect_err("there is no room");
    assert_eq!(full.kind, Kind::QueueFull, "{full:?}");
    let browser = world.extension("a", "1");
    // All but the last are done; its tab has one more in line.
    let last = world.script(4, "2").await;
    for entry in browser.poll(SECOND).await {
        browser.say(&entry, "accepted", "").await;
        if !is_about(&entry, waiting[3]) {
            browser.say(&entry, "complete", r#""result":1"#).await;
        }
    }
    let n_tabs = async || {
        let lanes = world.handle.lanes().await.expect("lanes");
        lanes.iter().filter(|it| it.lane.as_str().starts_with("tab:")).count()
    };
    for tab in 5..40 {
        let id = world.script(tab, "1").await;
        let entry = browser.accept().await;
        assert!(is_about(&entry, id), "[QUEUE-1] tab 4 is busy: {entry}");
        browser.say(&entry, "complete", r#""result":1"#).await;
        assert!(n_tabs().await <= 5);
    }
    assert_eq!(world.state(waiting[3]).await, State::Running);
    assert_eq!(world.state(last).await, State::Queued);
}
