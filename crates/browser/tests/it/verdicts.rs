//! One verdict for each item that the extension posts.

use raincheck_core::lifecycle::State;
use raincheck_runtime::Request;
use tokio::time::sleep;

use crate::world::{SECOND, World, item, result, script_in};

#[tokio::test(start_paused = true)]
async fn a_bad_item_stands_in_no_others_way() {
    // [LEASE-1]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let entry = browser.accept().await;
    let mut old = entry.clone();
    old["fence"] = 1.into();
    let verdicts = browser
        .post(&[
            r#"{"correlation_id":"corr_nobody","status":"complete"}"#.to_owned(),
            r#"{"status":"complete","result":1}"#.to_owned(),
            r#"["complete"]"#.to_owned(),
            item(&entry, "finished", ""),
            item(&old, "complete", ""),
            item(&entry, "complete", r#""result":1"#),
            item(&entry, "complete", r#""result":2"#),
        ])
        .await;
    let wanted = [
        "unknown",
        "invalid_request",
        "invalid_request",
        "invalid_request",
        "stale",
        "accepted",
        "already_terminal",
    ];
    assert_eq!(verdicts, wanted);
    assert_eq!(result(&world.end(id).await), r#"{"result":1}"#);
}

#[tokio::test(start_paused = true)]
async fn a_command_may_not_begin_while_the_store_fails() {
    // [DUR-5] [LEASE-5]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let entry = browser.command().await;
    world.store.break_down();
    assert_eq!(browser.say(&entry, "accepted", "").await, "storage_unavailable");
    world.store.mend();
    assert_eq!(browser.say(&entry, "accepted", "").await, "accepted");
    assert_eq!(world.state(id).await, State::Running);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_kept_by_the_extension_until_the_store_takes_it() {
    // [DUR-5] [LEASE-6]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let request = Request { max_runtime: Some(60 * SECOND), ..script_in(7, "1") };
    let id = world.submit(request).await.id();
    let entry = browser.accept().await;
    world.store.break_down();
    let verdict = browser.say(&entry, "complete", r#""result":1"#).await;
    assert_eq!(verdict, "storage_unavailable");
    world.store.mend();
    sleep(2 * SECOND).await;
    assert_eq!(browser.say(&entry, "complete", r#""result":1"#).await, "already_terminal");
    let view = world.end(id).await;
    assert_eq!(result(&view), r#"{"result":1}"#);
    assert!(view.payload.expect("readable").late.is_none(), "it is the same answer");
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_kept_by_the_extension_until_the_store_takes_it() {
    // [DUR-5] [LEASE-7]
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    let id = world.script(7, "1").await;
    let entry = browser.accept().await;
    assert_eq!(world.end(id).await.record.state, State::TimedOut);
    world.store.break_down();
    let verdict = browser.say(&entry, "complete", r#""result":1"#).await;
    assert_eq!(verdict, "storage_unavailable");
    world.store.mend();
    assert_eq!(browser.say(&entry, "complete", r#""result":1"#).await, "already_terminal");
    assert!(world.view(id).await.payload.expect("readable").late.is_some());
}
