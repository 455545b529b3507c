//! A server that could not run judges no browser by that time [LEASE-8].

use raincheck_browser::Settings;
use raincheck_core::lifecycle::State;
use tokio::time::{advance, sleep};

use crate::world::{SECOND, World, script_in};
use raincheck_runtime::Request;

/// Shorter than the leases of the engine, longer than what browsers are given.
const STOP: u32 = 12;

fn settings() -> Settings {
    Settings { reconnect_grace: 5 * SECOND, linger: 3 * SECOND, ..Settings::default() }
}

fn long(tab: i64) -> Request {
    Request { max_runtime: Some(600 * SECOND), ..script_in(tab, "1") }
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_runs_a_command_is_heard_after_a_stop_before_it_counts_as_lost() {
    let world = World::with(settings());
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.submit(long(7)).await.id();
    let entry = browser.accept().await;
    for _ in 0..3 {
        sleep(4 * SECOND).await;
        advance(STOP * SECOND).await;
        sleep(SECOND / 2).await;
        browser.poll(SECOND / 4).await;
    }
    assert_eq!(browser.say(&entry, "complete", r#""result":1"#).await, "accepted");
    assert_eq!(world.end(id).await.record.state, State::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_stays_away_after_a_stop_still_counts_as_lost() {
    let world = World::with(settings());
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.submit(long(7)).await.id();
    browser.accept().await;
    sleep(4 * SECOND).await;
    advance(STOP * SECOND).await;
    let begin = tokio::time::Instant::now();
    let view = world.end(id).await;
    assert_eq!(view.record.state, State::Failed);
    let after = begin.elapsed();
    assert!(after >= 2 * SECOND && after <= 6 * SECOND, "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn a_browser_between_two_polls_is_still_there_after_a_stop() {
    let world = World::with(settings());
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    sleep(SECOND).await;
    advance(STOP * SECOND).await;
    let id = world.script(7, "1").await;
    assert_eq!(world.view(id).await.record.waiting, None, "its lane is held");
    assert_eq!(browser.poll(SECOND).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_command_keeps_its_time_to_end_over_a_stop() {
    let world = World::with(settings());
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.submit(long(7)).await.id();
    let entry = browser.accept().await;
    world.cancel(id).await;
    sleep(SECOND).await;
    advance(4 * SECOND + SECOND / 2).await;
    sleep(SECOND).await;
    assert_eq!(browser.say(&entry, "cancelled", "").await, "accepted");
    assert_eq!(world.end(id).await.record.state, State::Cancelled);
}
