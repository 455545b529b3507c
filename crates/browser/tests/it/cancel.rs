//! A cancel in every stage of a command.

use raincheck_core::content::Json;
use raincheck_core::error::Guarantee;
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_runtime::Request;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::world::{SECOND, World, failure, is_about, result, seconds_since, text_of};

#[tokio::test(start_paused = true)]
async fn what_stands_in_line_is_cancelled_at_once_and_never_delivered() {
    // [CANCEL-1]
    let world = World::new();
    let browser = world.extension("a", "1");
    let waits = world.script(7, "0").await;
    assert_eq!(world.cancel(waits).await, State::Cancelled);
    assert!(browser.poll(SECOND).await.is_empty());
    let first = world.script(7, "1").await;
    let second = world.script(7, "2").await;
    let entry = browser.accept().await;
    assert!(is_about(&entry, first));
    assert_eq!(world.cancel(second).await, State::Cancelled);
    assert_eq!(browser.say(&entry, "complete", r#""result":1"#).await, "accepted");
    assert!(browser.poll(5 * SECOND).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_was_delivered_and_not_accepted_is_cancelled_and_may_not_begin() {
    // [CANCEL-2] [LEASE-5]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let entry = browser.command().await;
    let begin = Instant::now();
    assert_eq!(world.cancel(id).await, State::CancelRequested);
    assert_eq!(world.end(id).await.record.state, State::Cancelled);
    assert!(seconds_since(begin) < 0.01);
    assert_eq!(browser.say(&entry, "accepted", "").await, "already_terminal");
    assert_eq!(browser.say(&entry, "complete", r#""result":1"#).await, "already_terminal");
}

#[tokio::test(start_paused = true)]
async fn the_browser_is_told_to_stop_and_says_that_it_did() {
    // [CANCEL-2]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let entry = browser.accept().await;
    let next = world.script(7, "2").await;
    let cancel = async {
        sleep(SECOND).await;
        world.cancel(id).await
    };
    let (told, state) = tokio::join!(browser.command(), cancel);
    assert_eq!((&told["type"], state), (&"cancel".into(), State::CancelRequested));
    assert!(is_about(&told, id));
    assert_eq!(browser.say(&entry, "cancelled", "").await, "accepted");
    assert_eq!(world.end(id).await.record.state, State::Cancelled);
    assert!(is_about(&browser.command().await, next), "the tab is free");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_was_there_before_the_cancel_was_seen_counts() {
    // [CANCEL-5]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let entry = browser.accept().await;
    assert_eq!(world.cancel(id).await, State::CancelRequested);
    assert_eq!(browser.say(&entry, "complete", r#""result":1"#).await, "accepted");
    let view = world.end(id).await;
    assert_eq!((view.record.state, result(&view).as_str()), (State::Succeeded, r#"{"result":1}"#));
    assert!(view.record.cancel.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_does_not_stop_is_given_up_after_the_grace_and_is_unknown() {
    // [CANCEL-6] [LEASE-7] [LEASE-10] [BROWSER-23]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let entry = browser.accept().await;
    let next = world.script(7, "2").await;
    let begin = Instant::now();
    world.cancel(id).await;
    let ended = failure(&world.end(id).await);
    assert_eq!(ended.guarantee(), Some(Guarantee::Unknown), "{ended}");
    assert!(ended.hint().contains("reload: true"), "{ended}");
    let took = seconds_since(begin);
    assert!((5.0..5.1).contains(&took), "{took}");
    assert_eq!(browser.say(&entry, "complete", r#""result":1"#).await, "already_terminal");
    let late = world.view(id).await.payload.expect("readable").late.clone();
    assert_eq!(text_of(late.as_ref()), r#"{"result":1}"#);
    assert!(is_about(&browser.command().await, next), "the tab is free");
}

#[tokio::test(start_paused = true)]
async fn what_may_go_on_is_no_cancel_and_what_ends_it_outlives_the_server() {
    // [BROWSER-23] [LEASE-10]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let entry = browser.accept().await;
    assert_eq!(world.cancel(id).await, State::CancelRequested);
    let goes_on = r#""error":{"code":"tool_failed","reason":"not_stopped","guarantee":"unknown","goes_on":true}"#;
    assert_eq!(browser.say(&entry, "error", goes_on).await, "accepted");
    let ended = failure(&world.end(id).await);
    assert_eq!(ended.guarantee(), Some(Guarantee::Unknown), "{ended}");
    // What ends it is a command of its own: delivered once, also by the next server.
    let inputs = json!({ "what": "end_script", "of": entry["correlation_id"], "tab_id": 7 });
    let ending = Request::new("end_script", Json::of(&inputs).expect("JSON"), Scope::local());
    let ending = world.submit(ending).await.id();
    let begun = browser.accept().await;
    assert!(is_about(&begun, ending), "{begun}");
    assert_eq!(
        (&begun["params"]["action"], &begun["params"]["of"]),
        (&json!("end_script"), &entry["correlation_id"])
    );
    let world = world.restarted().await;
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let result = r#""result":{"ended":true,"reloaded":true}"#;
    assert_eq!(browser.say(&begun, "complete", result).await, "accepted");
    assert_eq!(world.end(ending).await.record.state, State::Succeeded);
    assert_eq!(world.state(id).await, State::Failed, "an end is final");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_of_what_has_ended_changes_nothing() {
    // [CANCEL-4]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let entry = browser.accept().await;
    browser.say(&entry, "complete", r#""result":1"#).await;
    assert_eq!(world.cancel(id).await, State::Succeeded);
    assert!(browser.poll(SECOND).await.is_empty(), "nobody is told to stop");
}

#[tokio::test(start_paused = true)]
async fn a_request_to_stop_that_was_lost_goes_out_again_on_the_poll_that_is_held() {
    // [BROWSER-12]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let entry = browser.accept().await;
    world.cancel(id).await;
    let lost = browser.command().await;
    let begin = Instant::now();
    assert_eq!(browser.command().await, lost);
    let took = seconds_since(begin);
    assert!((0.75..0.76).contains(&took), "{took}");
    assert_eq!(browser.say(&entry, "cancelled", "").await, "accepted");
    assert_eq!(world.end(id).await.record.state, State::Cancelled);
}
