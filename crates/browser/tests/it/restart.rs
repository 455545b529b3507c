//! A new server on the store of the last one.

use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::lifecycle::State;
use raincheck_runtime::Request;
use tokio::time::{Instant, sleep};

use crate::world::{SECOND, World, failure, is_about, result, script_in, seconds_since};

#[tokio::test(start_paused = true)]
async fn an_answer_that_the_last_server_did_not_hear_counts_once() {
    // [LEASE-6] [DUR-3]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let entry = browser.accept().await;
    let world = world.restarted().await;
    let browser = world.extension("a", "1");
    assert!(browser.poll(SECOND).await.is_empty(), "it is not handed out again");
    assert_eq!(world.state(id).await, State::Running);
    assert_eq!(browser.say(&entry, "complete", r#""result":1"#).await, "accepted");
    assert_eq!(browser.say(&entry, "complete", r#""result":2"#).await, "already_terminal");
    let view = world.end(id).await;
    assert_eq!((result(&view).as_str(), view.record.attempt), (r#"{"result":1}"#, 1));
    let world = world.restarted().await;
    let browser = world.extension("a", "1");
    assert_eq!(browser.say(&entry, "complete", r#""result":1"#).await, "already_terminal");
    assert_eq!(result(&world.view(id).await), r#"{"result":1}"#);
}

#[tokio::test(start_paused = true)]
async fn what_was_delivered_and_never_accepted_is_delivered_again_under_a_new_fence() {
    // [LEASE-1] [LEASE-5]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let first = browser.command().await;
    let world = world.restarted().await;
    let browser = world.extension("a", "1");
    let second = browser.command().await;
    assert!(is_about(&second, id));
    assert!(second["fence"].as_u64() > first["fence"].as_u64());
    assert_eq!(browser.say(&first, "accepted", "").await, "stale");
    assert_eq!(browser.say(&second, "accepted", "").await, "accepted");
    assert_eq!(world.state(id).await, State::Running);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_survived_may_not_begin_while_the_store_fails() {
    // [LEASE-5] [DUR-1] [DUR-5]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let first = browser.command().await;
    world.store.break_down();
    let world = world.restarted().await;
    let browser = world.extension("a", "1");
    assert_eq!(browser.say(&first, "accepted", "").await, "storage_unavailable");
    world.store.mend();
    let second = browser.accept().await;
    assert!(is_about(&second, id));
    assert!(second["fence"].as_u64() > first["fence"].as_u64());
}

#[tokio::test(start_paused = true)]
async fn the_order_of_a_tab_survives() {
    // [DUR-3] [QUEUE-1]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let first = world.script(7, "1").await;
    let entry = browser.accept().await;
    let mut rest = Vec::new();
    for n in 2..5 {
        rest.push(world.script(7, &n.to_string()).await);
    }
    let world = world.restarted().await;
    let browser = world.extension("a", "1");
    assert!(browser.poll(SECOND).await.is_empty(), "the tab is taken");
    browser.say(&entry, "complete", r#""result":1"#).await;
    assert_eq!(world.end(first).await.record.state, State::Succeeded);
    for id in rest {
        let entry = browser.accept().await;
        assert!(is_about(&entry, id));
        browser.say(&entry, "complete", r#""result":1"#).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_does_not_come_back_loses_what_it_ran() {
    // [LEASE-6] [LEASE-4]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let request = Request { max_runtime: Some(300 * SECOND), ..script_in(7, "1") };
    let id = world.submit(request).await.id();
    browser.accept().await;
    let world = world.restarted().await;
    let begin = Instant::now();
    let error = failure(&world.end(id).await);
    assert_eq!((error.kind, error.guarantee()), (Kind::PeerLost, Some(Guarantee::Unknown)));
    let took = seconds_since(begin);
    assert!((35.0..36.0).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_of_a_run_that_survived_reaches_its_browser() {
    // [CANCEL-2] [DUR-3]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let entry = browser.accept().await;
    let world = world.restarted().await;
    assert_eq!(world.cancel(id).await, State::CancelRequested);
    sleep(SECOND).await;
    let browser = world.extension("a", "1");
    let told = browser.command().await;
    assert!(told["type"] == "cancel" && is_about(&told, id), "{told}");
    assert_eq!(browser.say(&entry, "cancelled", "").await, "accepted");
    assert_eq!(world.end(id).await.record.state, State::Cancelled);
}
