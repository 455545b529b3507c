//! Every limit of the wire holds at its value, and not below it [SEC-6].

use raincheck_browser::Settings;
use raincheck_core::content::MAX_DEPTH;
use raincheck_core::lifecycle::State;

use crate::world::{SECOND, World, item, result, script_in};

/// Posts a body.
async fn post(browser: &crate::world::Extension, path: &str, body: &str) -> u16 {
    browser.ask(path, Some(body)).await.0
}

#[tokio::test(start_paused = true)]
async fn a_result_of_any_length_up_to_the_cap_is_taken() {
    let most = Settings::default().max_body;
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    // One byte more is answered 413 by the listener, before it is read.
    for length in [most, most - 1] {
        let id = world.submit(script_in(7, "1")).await.id();
        let entry = browser.accept().await;
        let around = item(&entry, "complete", r#""result":"""#).len();
        let text = "x".repeat(length - around);
        let body = item(&entry, "complete", &format!(r#""result":"{text}""#));
        assert_eq!(body.len(), length);
        assert_eq!(post(&browser, "/query-result", &body).await, 200, "{length}");
        let view = world.end(id).await;
        assert_eq!(view.record.state, State::Succeeded);
        assert!(result(&view).contains(&text), "{length}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_post_has_as_many_items_as_the_cap_says() {
    let world = World::new();
    let browser = world.extension("a", "1");
    for path in ["/query-result", "/events"] {
        for (n, status) in [(4096, 200), (4097, 400)] {
            let body = format!("[{}]", vec!["{}"; n].join(","));
            assert_eq!(post(&browser, path, &body).await, status, "{path} {n}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_nests_as_deep_as_the_cap_says() {
    let world = World::new();
    let browser = world.extension("a", "1");
    browser.poll(SECOND).await;
    world.script(7, "1").await;
    let entry = browser.accept().await;
    for (depth, word) in [(MAX_DEPTH + 1, "invalid_request"), (MAX_DEPTH, "accepted")] {
        let deep = format!(r#""result":{}{}"#, "[".repeat(depth), "]".repeat(depth));
        assert_eq!(browser.say(&entry, "complete", &deep).await, word, "{depth}");
    }
}

#[tokio::test(start_paused = true)]
async fn as_many_browsers_as_the_cap_says_are_connected() {
    let world = World::with(Settings { max_browsers: 2, ..Settings::default() });
    let (first, second) = (world.extension("a", "1"), world.extension("b", "1"));
    for browser in [&first, &second, &first] {
        browser.poll(SECOND / 10).await;
    }
    let (status, _) = world.extension("c", "1").ask("/pending-queries", None).await;
    assert_eq!(status, 503);
}

#[tokio::test(start_paused = true)]
async fn names_are_as_long_as_the_cap_says() {
    let world = World::new();
    let (most, more) = ("n".repeat(128), "n".repeat(129));
    for (name, status) in [(most, 200), (more, 400)] {
        let name: &'static str = name.leak();
        for (browser, session) in [(name, "1"), ("a", name)] {
            let asked = world.extension(browser, session).ask("/pending-queries", None).await;
            assert_eq!(asked.0, status, "{}", name.len());
        }
    }
}
