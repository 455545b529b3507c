//! Who may begin with a command, and how long a silent browser keeps it.

use std::time::Duration;

use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::lifecycle::State;
use raincheck_runtime::Request;
use tokio::time::{Instant, sleep};

use crate::world::{SECOND, World, failure, is_about, script_in, seconds_since};

#[tokio::test(start_paused = true)]
async fn a_delivery_that_may_have_been_lost_goes_out_again_as_it_was() {
    // [LEASE-5]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    world.script(7, "1").await;
    let first = browser.command().await;
    assert!(browser.poll(Duration::ZERO).await.is_empty(), "it may be on its way");
    sleep(SECOND).await;
    assert_eq!(browser.command().await, first);
}

#[tokio::test(start_paused = true)]
async fn a_new_start_of_the_extension_gets_what_the_old_one_never_accepted_under_a_new_fence() {
    // [LEASE-1] [LEASE-5]
    let world = World::new();
    let old = world.extension("a", "1");
    old.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let first = old.command().await;
    let new = world.extension("a", "2");
    let second = new.command().await;
    assert!(is_about(&second, id));
    assert!(second["fence"].as_u64() > first["fence"].as_u64());
    assert_eq!(second["attempt"], 1, "no attempt was spent");
    assert_eq!(new.say(&first, "accepted", "").await, "stale");
    assert_eq!(old.say(&first, "complete", r#""result":1"#).await, "stale");
    assert_eq!(new.say(&second, "accepted", "").await, "accepted");
    assert_eq!(world.state(id).await, State::Running);
}

#[tokio::test(start_paused = true)]
async fn what_was_accepted_is_never_given_to_a_new_start() {
    // [LEASE-3] [LEASE-6]
    let world = World::new();
    let old = world.extension("a", "1");
    old.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let entry = old.accept().await;
    let new = world.extension("a", "2");
    assert!(new.poll(4 * SECOND).await.is_empty());
    let words = r#""error":{"code":"worker_lost","message":"the worker was restarted"}"#;
    assert_eq!(new.say(&entry, "error", words).await, "accepted");
    let error = failure(&world.end(id).await);
    assert_eq!((error.kind, error.guarantee()), (Kind::WorkerLost, Some(Guarantee::Unknown)));
}

#[tokio::test(start_paused = true)]
async fn what_a_new_start_does_not_speak_of_is_lost_soon() {
    // [LEASE-6, BROWSER-10]
    let world = World::new();
    let old = world.extension("a", "1");
    old.poll(SECOND).await;
    let request = Request { max_runtime: Some(300 * SECOND), ..script_in(7, "1") };
    let id = world.submit(request).await.id();
    let entry = old.accept().await;
    let new = world.extension("a", "2");
    assert!(new.poll(4 * SECOND).await.is_empty());
    assert_eq!(world.state(id).await, State::Running);
    let begin = Instant::now();
    let error = failure(&world.end(id).await);
    assert_eq!((error.kind, error.guarantee()), (Kind::PeerLost, Some(Guarantee::Unknown)));
    assert!(begin.elapsed() <= 2 * SECOND, "{:?}", begin.elapsed());
    assert_eq!(new.say(&entry, "complete", r#""result":1"#).await, "already_terminal");
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_runs_a_command_may_be_silent_for_a_while() {
    // [LEASE-6] [LEASE-4]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let request = Request { max_runtime: Some(300 * SECOND), ..script_in(7, "1") };
    let id = world.submit(request).await.id();
    let entry = browser.accept().await;
    sleep(30 * SECOND).await;
    assert!(browser.poll(20 * SECOND).await.is_empty());
    sleep(30 * SECOND).await;
    assert_eq!(browser.say(&entry, "pending", "").await, "accepted");
    let begin = Instant::now();
    let view = world.end(id).await;
    let error = failure(&view);
    assert_eq!((error.kind, error.guarantee()), (Kind::PeerLost, Some(Guarantee::Unknown)));
    let took = seconds_since(begin);
    assert!((35.0..35.1).contains(&took), "{took}");
    assert_eq!(browser.say(&entry, "complete", r#""result":1"#).await, "already_terminal");
    assert!(world.view(id).await.payload.expect("readable").late.is_some(), "[LEASE-7]");
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_is_held_is_a_sign_of_life() {
    // [LEASE-6]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let request = Request { max_runtime: Some(300 * SECOND), ..script_in(7, "1") };
    let id = world.submit(request).await.id();
    let entry = browser.accept().await;
    for _ in 0..9 {
        assert!(browser.poll(30 * SECOND).await.is_empty());
    }
    assert_eq!(world.state(id).await, State::Running);
    assert_eq!(browser.say(&entry, "complete", r#""result":1"#).await, "accepted");
}
