//! Three seconds to be accepted, and nothing runs that was not.

use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::lifecycle::State;
use raincheck_core::task::WaitReason;
use raincheck_runtime::Request;
use tokio::time::{Instant, sleep, timeout};

use crate::world::{SECOND, World, failure, is_about, result, script_in, seconds_since};

#[tokio::test(start_paused = true)]
async fn without_a_browser_a_command_ends_after_three_seconds() {
    // [TIME-4] [LEASE-4]
    let world = World::new();
    let begin = Instant::now();
    let record = world.submit(script_in(7, "1")).await;
    assert_eq!(
        (record.state, record.waiting.clone()),
        (State::Waiting, Some(WaitReason::new("waiting_for_browser")))
    );
    let view = world.end(record.id()).await;
    let error = failure(&view);
    assert_eq!(
        (error.kind, error.guarantee()),
        (Kind::AcceptTimeout, Some(Guarantee::NotExecuted))
    );
    assert!((seconds_since(begin) - 3.0).abs() < 0.01, "{}", seconds_since(begin));
    let browser = world.extension("a", "1");
    assert!(browser.poll(SECOND).await.is_empty(), "it is over");
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_does_not_answer_gets_three_seconds_and_may_not_begin_later() {
    // [TIME-4] [LEASE-5]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let begin = Instant::now();
    let id = world.script(7, "1").await;
    let entry = browser.command().await;
    assert_eq!((&entry["accept_ms"], &entry["deadline_ms"]), (&3000.into(), &10_000.into()));
    assert_eq!((&entry["tab_id"], &entry["params"]["script"]), (&7.into(), &"1".into()));
    let error = failure(&world.end(id).await);
    assert_eq!(
        (error.kind, error.guarantee()),
        (Kind::AcceptTimeout, Some(Guarantee::NotExecuted))
    );
    assert!((seconds_since(begin) - 3.0).abs() < 0.01, "{}", seconds_since(begin));
    assert_eq!(browser.say(&entry, "accepted", "").await, "already_terminal");
    assert_eq!(browser.say(&entry, "pending", "").await, "already_terminal");
}

#[tokio::test(start_paused = true)]
async fn a_command_waits_longer_for_a_browser_when_it_is_told_to() {
    // [TIME-4]
    let world = World::new();
    let request = Request { ready: Some(10 * SECOND), ..script_in(7, "1") };
    let id = world.submit(request).await.id();
    sleep(9 * SECOND).await;
    let browser = world.extension("a", "1");
    let entry = browser.command().await;
    assert!(is_about(&entry, id));
    sleep(2 * SECOND).await;
    assert_eq!(browser.say(&entry, "accepted", "").await, "accepted");
    assert_eq!(world.state(id).await, State::Running);
}

#[tokio::test(start_paused = true)]
async fn a_browser_may_begin_once_that_is_committed() {
    // [LEASE-5] [DUR-1]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    world.script(7, "1").await;
    let entry = browser.command().await;
    world.store.hold_commits();
    let mut accept = std::pin::pin!(browser.say(&entry, "accepted", ""));
    assert!(timeout(2 * SECOND, &mut accept).await.is_err(), "told before the commit");
    world.store.commit();
    assert_eq!(accept.await, "accepted");
}

#[tokio::test(start_paused = true)]
async fn whatever_is_said_about_a_command_takes_it_on() {
    // [LEASE-5]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let ids = [world.script(1, "1").await, world.script(2, "2").await];
    let mut entries = Vec::new();
    while entries.len() < 2 {
        entries.extend(browser.poll(SECOND).await);
    }
    let place = |id| entries.iter().position(|entry| is_about(entry, id)).expect("delivered");
    let [first, second] = ids.map(|id| &entries[place(id)]);
    assert_eq!(browser.say(first, "pending", "").await, "accepted");
    assert_eq!(world.state(ids[0]).await, State::Running);
    assert_eq!(browser.say(second, "complete", r#""result":2"#).await, "accepted");
    assert_eq!(result(&world.end(ids[1]).await), r#"{"result":2}"#);
    sleep(5 * SECOND).await;
    assert_eq!(world.state(ids[0]).await, State::Running, "the time to accept is over");
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_was_lost_goes_out_again_on_the_poll_that_is_held() {
    // [BROWSER-10]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let lost = browser.command().await;
    let begin = Instant::now();
    let entry = browser.command().await;
    assert_eq!(entry, lost);
    let took = seconds_since(begin);
    assert!((0.75..0.76).contains(&took), "{took}");
    assert_eq!(browser.say(&entry, "complete", r#""result":1"#).await, "accepted");
    assert_eq!(result(&world.end(id).await), r#"{"result":1}"#);
}
