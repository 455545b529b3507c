//! Answers that are too large to send, kept under a handle [CALL-6].

mod cases;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use raincheck_core::content::{Content, Json};
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_core::tool::{Hints, ToolSpec};
use raincheck_mcp::Options;
use raincheck_mcp::layers::cache::{CacheLayer, CacheOptions, ClientLimits, Warming};
use raincheck_mcp::surfaces::browser::Browser;
use raincheck_runtime::Functions;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::marks::NoTabs;
use crate::session::{Session, Setup, without_marks};

const FETCH: &str = "fetch_cached_response";

/// A session with a cache, and the cache.
async fn cached_with(options: CacheOptions, setup: Setup) -> (Session, CacheLayer) {
    let cache = CacheLayer::new(options);
    let setup = Setup { options: Options::new("0.0.0").wrap(cache.clone()), ..setup };
    (Session::open_with(setup).await, cache)
}

async fn cached() -> Session {
    cached_with(CacheOptions::default(), Setup::default()).await.0
}

/// Options under which answers above so many characters are kept.
fn above(chars: usize) -> CacheOptions {
    CacheOptions { limits: ClientLimits::default().of_all(chars), ..CacheOptions::default() }
}

/// An argument of `echo` with so many items.
fn items(n: usize) -> Value {
    let item = |n: usize| json!({"id": n, "name": format!("item {n:05}"), "pad": "x".repeat(60)});
    json!({"title": "scene", "items": (0..n).map(item).collect::<Vec<_>>()})
}

/// Has an answer of `echo` cached and returns its handle.
async fn handle(session: &mut Session, inputs: &Value) -> String {
    let told = session.good("echo", &inputs.to_string()).await;
    assert_eq!(told["cached"], true, "{told}");
    told["cache_id"].as_str().expect("a handle").to_owned()
}

async fn fetch(session: &mut Session, id: &str, action: &str, more: Value) -> Value {
    let answer = session.call(FETCH, &arguments(id, action, more)).await;
    assert!(!answer.is_error, "{action}: {}", answer.text);
    assert_eq!(answer.data["success"], true, "{}", answer.text);
    answer.data["data"].clone()
}

async fn refused(session: &mut Session, id: &str, action: &str, more: Value) -> Value {
    session.refused(FETCH, &arguments(id, action, more)).await
}

fn arguments(id: &str, action: &str, more: Value) -> String {
    let mut all = json!({"cache_id": id, "action": action});
    let Value::Object(more) = more else { panic!("{more}") };
    all.as_object_mut().expect("an object").extend(more);
    all.to_string()
}

#[tokio::test(start_paused = true)]
async fn an_oversize_answer_becomes_a_handle_and_its_pages_give_the_bytes_back() {
    // [CALL-6] [CACHE-1] [CACHE-4]
    let mut session = cached().await;
    let inputs = items(600);
    let answer = session.call("echo", &inputs.to_string()).await;
    let told = &answer.data;
    assert!(answer.text.len() <= 48_000 && !answer.is_error, "{}", answer.text);
    assert_eq!((&told["success"], &told["cached"]), (&json!(true), &json!(true)));
    let size = inputs.to_string().len();
    assert_eq!(told["data"]["estimated_tokens"], size.div_ceil(3));
    assert_eq!(told["data"]["cache_id"], told["cache_id"]);
    assert!(told["data"]["usage_hint"].as_str().is_some_and(|hint| hint.contains(FETCH)));
    assert!(told["outline"].to_string().contains("items"), "{}", told["outline"]);
    let link = &answer.raw["result"]["content"][1];
    assert_eq!((&link["type"], &link["size"]), (&json!("resource_link"), &json!(size)));

    let id = told["cache_id"].as_str().expect("a handle").to_owned();
    let (mut all, mut page) = (Vec::new(), told.clone());
    let mut slice = page["page"].clone();
    loop {
        all.extend(slice["items"].as_array().expect("items").iter().cloned());
        let Some(cursor) = page["_pagination"]["next_cursor"].as_str() else { break };
        let next = json!({"cursor": cursor});
        let answer = session.call(FETCH, &arguments(&id, "get_page", next)).await;
        assert!(answer.text.len() <= 32 << 10, "{} bytes", answer.text.len());
        page = answer.data["data"].clone();
        slice = page["data"].clone();
    }
    assert_eq!(Value::Array(all), inputs["items"]);
    let beyond = fetch(&mut session, &id, "get_page", json!({"page": 99})).await;
    assert_eq!(beyond["_pagination"]["has_next"], false, "{beyond}");
    assert!(!beyond["data"].to_string().contains("item "), "{beyond}");
}

#[tokio::test(start_paused = true)]
async fn characters_count_and_not_bytes_and_each_client_has_its_limit() {
    // [CACHE-3]
    let mut session = cached().await;
    for (text, is_cached) in [
        ("v".repeat(47_900), false),
        ("日".repeat(40_000), false),
        ("v".repeat(48_100), true),
        ("👍".repeat(25_000), true),
    ] {
        let told = session.good("echo", &json!({"v": text}).to_string()).await;
        assert_eq!(told["cached"] == true, is_cached, "{} bytes", text.len());
    }
    let setup = Setup { client: "codex-mcp-client", ..Setup::default() };
    let mut small = cached_with(CacheOptions::default(), setup).await.0;
    let id = handle(&mut small, &items(150)).await;
    let page = small.call(FETCH, &arguments(&id, "get_page", json!({}))).await;
    assert!(page.text.len() <= 10_000, "{} bytes", page.text.len());
    let error = refused(&mut small, &id, "get_page", json!({"page_size_kb": 32})).await;
    assert_eq!(error["code"], "invalid_params", "{error}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("at most 9")), "{error}");
    let error = refused(&mut small, &id, "get", json!({})).await;
    assert_eq!((&error["code"], &error["guarantee"]), (&json!("too_large"), &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_kept_is_refused_with_its_first_part_and_no_handle() {
    // [CACHE-2]
    let options = CacheOptions { entry_bytes: 50_000, ..CacheOptions::default() };
    let mut session = cached_with(options, Setup::default()).await.0;
    let kept = handle(&mut session, &json!({"v": "v".repeat(48_500)})).await;
    let answer = session.call("echo", &items(900).to_string()).await;
    assert!(answer.is_error && answer.text.len() < 10_000, "{}", answer.text);
    let error = &answer.data["error"];
    assert_eq!((&error["code"], &error["guarantee"]), (&json!("too_large"), &json!("executed")));
    let first = error["details"]["first_part"].as_str().expect("a first part");
    assert!(
        first.starts_with(r#"{"title":"scene""#) || first.starts_with(r#"{"items""#),
        "{first}"
    );
    assert!(error["untrusted_ends"].is_string(), "{error}");
    assert!(!answer.text.contains("cache_id"), "{}", answer.text);
    fetch(&mut session, &kept, "get_page", json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_stays_failed_and_what_stands_beside_stays_there() {
    // [CACHE-1]
    let mut session = cached_with(above(100), Setup::default()).await.0;
    let failed = session.call("fail", "{}").await;
    assert!(failed.is_error && failed.data["cached"] == true, "{}", failed.text);
    assert_eq!(failed.data["success"], false);
    let mut session = cached_with(above(10), Setup::default()).await.0;
    let picture = session.call("picture", "{}").await;
    let blocks = picture.raw["result"]["content"].as_array().expect("blocks").clone();
    let kinds: Vec<&str> = blocks.iter().filter_map(|block| block["type"].as_str()).collect();
    assert_eq!(kinds, ["text", "image", "resource_link"]);
}

#[tokio::test(start_paused = true)]
async fn a_stored_value_takes_the_place_of_an_argument_before_the_tool_runs() {
    // [CACHE-6]
    let mut session = cached().await;
    let inputs = items(600);
    let id = handle(&mut session, &inputs).await;
    let call = json!({"v": {"$cache": id, "path": "/items/3"},
        "deep": [{"n": {"$cache": id, "path": "/items/4/name"}}]});
    let told = session.good("echo", &call.to_string()).await;
    assert_eq!(told["v"].to_string(), inputs["items"][3].to_string());
    assert_eq!(told["deep"][0]["n"], "item 00004");
    let title = json!({"v": {"$cache": id, "path": "/title"}}).to_string();
    let task = session.submit("echo", &title).await;
    assert_eq!(session.end_of(&task).await["result"]["v"], "scene");
    let never = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    for (bad, code) in [
        (json!({"$cache": id, "path": "/nowhere"}), "path_not_found"),
        (json!({"$cache": id, "path": "nowhere"}), "invalid_params"),
        (json!({"$cache": never}), "cache_miss"),
        (json!({"$cache": "../etc"}), "cache_miss"),
        (json!({"$cache": 5}), "invalid_params"),
    ] {
        let error = session.refused("echo", &json!({"v": bad}).to_string()).await;
        assert_eq!((&error["code"], &error["guarantee"]), (&json!(code), &json!("not_executed")));
    }
    let error = refused(&mut session, &id, "get_page", json!({"path": "/nowhere"})).await;
    assert!(error["message"].as_str().is_some_and(|m| m.contains("the whole of it")), "{error}");
    assert_eq!(error["details"]["nearest"], "", "{error}");
    let listed = session.good("list_tasks", "{}").await;
    assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(3), "nothing else ran: {listed}");
}

#[tokio::test(start_paused = true)]
async fn a_handle_of_another_scope_reads_like_one_that_never_was() {
    // [CACHE-5] [SCOPE-2]
    let (mut session, cache) = cached_with(CacheOptions::default(), Setup::default()).await;
    let (kept, gone) =
        (handle(&mut session, &items(600)).await, handle(&mut session, &items(601)).await);
    fetch(&mut session, &gone, "delete", json!({})).await;
    let error = refused(&mut session, &gone, "get_page", json!({})).await;
    assert_eq!(error["details"]["reason"], "deleted");
    assert_eq!(error["details"]["rerun"]["tool"], "echo");
    let mut other = session.of_scope_with("other", Options::new("0.0.0").wrap(cache));
    other.shake_hands("2025-06-18", "case").await;
    let never = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    for action in ["get", "get_page", "info", "outline", "sample", "delete"] {
        let unknown = other.call(FETCH, &arguments(never, action, json!({}))).await;
        assert_eq!(unknown.data["error"]["details"]["reason"], "unknown", "{}", unknown.text);
        for id in [&kept, &gone] {
            let foreign = other.call(FETCH, &arguments(id, action, json!({}))).await;
            assert_eq!(foreign.text, unknown.text, "{action}");
        }
    }
    assert_eq!(other.good(FETCH, r#"{"action":"list"}"#).await["data"]["count"], 0);
    let uri = json!({"uri": format!("response://{kept}")}).to_string();
    let read = other.request("resources/read", &uri).await;
    assert_eq!(read["error"]["data"]["details"]["reason"], "unknown", "{read}");
    assert!(!read.to_string().contains("untrusted"), "{read}");
    let odd = other.call(FETCH, &arguments(&"9".repeat(100_000), "get", json!({}))).await;
    assert!(odd.is_error && odd.text.len() < 4000, "{} bytes", odd.text.len());
}

#[tokio::test(start_paused = true)]
async fn entries_are_resources_too() {
    // [CACHE-7]
    let mut session = cached().await;
    let id = handle(&mut session, &items(600)).await;
    let listed = session.request("resources/list", "{}").await;
    let uri = format!("response://{id}");
    assert_eq!(listed["result"]["resources"][0]["uri"], json!(uri), "{listed}");
    let templates = session.request("resources/templates/list", "{}").await;
    let template = &templates["result"]["resourceTemplates"][0]["uriTemplate"];
    assert_eq!(template, "response://{cache_id}{?path,page}");
    let wanted = json!({"uri": format!("{uri}?path=%2Fitems%2F3&page=1")}).to_string();
    let read = session.request("resources/read", &wanted).await;
    let text = read["result"]["contents"][0]["text"].as_str().expect("a text");
    assert!(text.contains("item 00003") && text.contains("untrusted_ends"), "{text}");
    let error = session.request("resources/read", r#"{"uri":"file:///etc/passwd"}"#).await;
    assert_eq!(error["error"]["data"]["code"], "invalid_params", "{error}");

    let mut plain = Session::open().await;
    let error = plain.request("resources/list", "{}").await;
    assert_eq!(error["error"]["code"], -32601, "not without a cache: {error}");
}

#[tokio::test(start_paused = true)]
async fn what_is_known_of_an_entry_is_no_read_of_it_and_holds_no_secret() {
    // [CACHE-4] [CACHE-9]
    let mut session = cached_with(above(200), Setup::default()).await.0;
    let inputs = json!({"frames": 3, "token": "s3cr", "pad": "x".repeat(500)});
    let told = session.good("typed", &inputs.to_string()).await;
    let id = told["cache_id"].as_str().expect("a handle").to_owned();
    let info = fetch(&mut session, &id, "info", json!({})).await;
    assert_eq!(info["metadata"]["params"]["token"], "[redacted]", "{info}");
    assert_eq!(
        (&info["metadata"]["tool"], &info["metadata"]["access_count"]),
        (&json!("typed"), &json!(0))
    );
    fetch(&mut session, &id, "get_page", json!({})).await;
    fetch(&mut session, &id, "info", json!({})).await;
    let info = fetch(&mut session, &id, "info", json!({})).await;
    assert_eq!(info["metadata"]["access_count"], 1, "{info}");
}

#[tokio::test(start_paused = true)]
async fn the_list_of_tools_stays_small_and_tells_a_client_what_it_may_keep() {
    // [CACHE-3]
    let listed = |value: &Value| {
        let tools = value["result"]["tools"].as_array().expect("tools").clone();
        let of = |name: &str| tools.iter().find(|tool| tool["name"] == name).cloned();
        (of("echo").expect("echo"), of(FETCH).expect("the tool of the cache"))
    };
    let mut session = cached().await;
    let (echo, fetch) = listed(&session.request("tools/list", "{}").await);
    let meta = "anthropic/maxResultSizeChars";
    assert!(echo.get("_meta").is_none(), "{echo}");
    assert_eq!(fetch["_meta"][meta], 500_000, "{fetch}");
    assert!(fetch.to_string().len() < 1500, "{} bytes", fetch.to_string().len());
    let mut raised = cached_with(above(200_000), Setup::default()).await.0;
    let (echo, _) = listed(&raised.request("tools/list", "{}").await);
    assert_eq!(echo["_meta"][meta], 200_000, "{echo}");
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_no_list_gave_is_refused() {
    let mut session = cached().await;
    for list in ["tools/list", "resources/list", "resources/templates/list"] {
        let refused = session.request(list, r#"{"cursor":"bogus"}"#).await;
        assert_eq!(refused["error"]["code"], -32602, "{list}: {refused}");
        let taken = session.request(list, r#"{"cursor":null}"#).await;
        assert!(taken["result"].is_object(), "{list}: {taken}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_the_cache_is_never_cached_again() {
    // [CACHE-3]
    let setup = Setup { client: "claude-code", ..Setup::default() };
    let mut session = cached_with(CacheOptions::default(), setup).await.0;
    let id = handle(&mut session, &items(2000)).await;
    let page = session.call(FETCH, &arguments(&id, "get_page", json!({"page_size_kb": 200}))).await;
    assert!(
        page.text.len() > 100_000 && page.data.get("cached").is_none(),
        "{} bytes",
        page.text.len()
    );
    assert_eq!(session.good(FETCH, r#"{"action":"list"}"#).await["data"]["count"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_made_ahead_and_refreshed_under_its_handle() {
    // [CACHE-8]
    let object = || Json::parse(r#"{"type":"object"}"#).expect("JSON");
    let n_calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&n_calls);
    let hints = Hints { read_only: true, ..Hints::default() };
    let scene =
        ToolSpec { hints, lane: "cpu_small".into(), ..ToolSpec::new("scene", "S", object()) };
    let burn = ToolSpec { lane: "cpu_small".into(), ..ToolSpec::new("burn", "B", object()) };
    let functions = Functions::new()
        .with(scene, move |_, _| {
            let n = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let json = Json::parse(format!(r#"{{"n":{n},"items":[1,2]}}"#)).expect("JSON");
                Outcome::Succeeded(vec![Content::Json(json)])
            }
        })
        .with(burn, |_, _| async { panic!("it is not called") });
    let call = |tool: &str| Warming {
        tool: tool.into(),
        inputs: Json::empty_object(),
        every: Some(Duration::from_secs(60)),
    };
    let options =
        CacheOptions { warm: vec![call("scene"), call("burn")], ..CacheOptions::default() };
    let engine = raincheck_runtime::Options::in_memory().with_tools(Arc::new(functions));
    let setup = Setup { engine: Some(engine), scope: Scope::local(), ..Setup::default() };
    let (mut session, cache) = cached_with(options, setup).await;
    let (engine, stop) = (session.handle.clone(), CancellationToken::new());
    let mut running = JoinSet::new();
    let ends = stop.clone();
    running.spawn(async move { cache.run(&engine, ends).await });
    session.good("list_tasks", "{}").await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(61)).await;
        let list = session.good(FETCH, r#"{"action":"list"}"#).await["data"].clone();
        assert_eq!(list["count"], 1, "{list}");
        let id = list["items"][0]["cache_id"].as_str().expect("a handle").to_owned();
        let whole = fetch(&mut session, &id, "get", json!({})).await;
        seen.push((id, whole["data"]["n"].as_u64().expect("a number")));
    }
    stop.cancel();
    running.join_next().await.expect("it ran").expect("no panic");
    assert!(seen.iter().all(|(id, _)| *id == seen[0].0), "one handle: {seen:?}");
    assert!(seen.windows(2).all(|two| two[0].1 < two[1].1), "newer each time: {seen:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_page_said_stays_its_own_when_it_is_cached_ahead() {
    // [CACHE-8] [CACHE-11] [SEC-10]
    let hints = Hints { read_only: true, ..Hints::default() };
    let spec = ToolSpec::new("observe", "O", Json::parse(r#"{"type":"object"}"#).expect("JSON"));
    let spec = ToolSpec { hints, lane: "cpu_small".into(), ..spec };
    let functions = Functions::new().with(spec, |_, _| async {
        let json = Json::parse("{\"title\":\"a\u{202e}b\"}").expect("JSON");
        Outcome::Succeeded(vec![Content::Json(json)])
    });
    let inputs = Json::empty_object();
    let warm = vec![Warming { tool: "observe".into(), inputs, every: None }];
    let cache = CacheLayer::new(CacheOptions { warm, ..CacheOptions::default() });
    let engine = raincheck_runtime::Options::in_memory().with_tools(Arc::new(functions));
    let options = Options::new("0.0.0").offer(Browser::new(NoTabs)).wrap(cache.clone());
    let setup = Setup { engine: Some(engine), scope: Scope::local(), options, ..Setup::default() };
    let mut session = Session::open_with(setup).await;
    let (engine, stop) = (session.handle.clone(), CancellationToken::new());
    let mut running = JoinSet::new();
    let ends = stop.clone();
    running.spawn(async move { cache.run(&engine, ends).await });
    session.good(FETCH, r#"{"action":"list"}"#).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let list = session.good(FETCH, r#"{"action":"list"}"#).await["data"].clone();
    let id = list["items"][0]["cache_id"].as_str().expect("a handle").to_owned();
    let whole = session.call(FETCH, &arguments(&id, "get", json!({}))).await;
    assert!(whole.text.contains("what the page said"), "{}", whole.text);
    assert!(!whole.text.contains('\u{202e}') && whole.text.contains("\\u202e"), "{}", whole.text);
    stop.cancel();
    running.join_next().await.expect("it ran").expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn the_same_page_has_the_same_words() {
    // [RESULT-1]
    let mut session = cached().await;
    let id = handle(&mut session, &items(600)).await;
    let page = arguments(&id, "get_page", json!({"page": 2, "page_size_kb": 8}));
    let (first, again) = (session.call(FETCH, &page).await, session.call(FETCH, &page).await);
    assert_eq!(without_marks(&first.text), without_marks(&again.text));
}

/// Has a cache make its calls ahead while `work` goes on.
fn warmed(cache: CacheLayer, session: &Session) -> impl AsyncFnOnce() + use<> {
    let (engine, stop) = (session.handle.clone(), CancellationToken::new());
    let mut running = JoinSet::new();
    let ends = stop.clone();
    running.spawn(async move { cache.run(&engine, ends).await });
    async move || {
        stop.cancel();
        running.join_next().await.expect("it ran").expect("no panic");
    }
}

/// A tool that may be called ahead.
fn harmless(name: &str) -> ToolSpec {
    let hints = Hints { read_only: true, ..Hints::default() };
    let object = Json::parse(r#"{"type":"object"}"#).expect("JSON");
    ToolSpec { hints, lane: "cpu_small".into(), ..ToolSpec::new(name, "S", object) }
}

#[tokio::test(start_paused = true)]
async fn what_is_called_ahead_takes_no_handle_that_a_user_has() {
    // [CACHE-8]
    let n_calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&n_calls);
    let functions = Functions::new().with(harmless("scene"), move |_, _| {
        let n = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let json = Json::parse(format!(r#"{{"n":{n},"pad":"{}"}}"#, "x".repeat(2600)));
            Outcome::Succeeded(vec![Content::Json(json.expect("JSON"))])
        }
    });
    let every = Some(Duration::from_secs(60));
    let call = Warming { tool: "scene".into(), inputs: Json::empty_object(), every };
    let options = CacheOptions { warm: vec![call], ..above(2000) };
    let engine = raincheck_runtime::Options::in_memory().with_tools(Arc::new(functions));
    let setup = Setup { engine: Some(engine), scope: Scope::local(), ..Setup::default() };
    let (mut session, cache) = cached_with(options, setup).await;
    let told = session.good("scene", "{}").await;
    let id = told["cache_id"].as_str().expect("a handle").to_owned();
    let ends = warmed(cache, &session);
    tokio::time::sleep(Duration::from_secs(130)).await;
    assert!(n_calls.load(Ordering::SeqCst) >= 3, "it was called ahead");
    let mine = fetch(&mut session, &id, "get_page", json!({})).await;
    assert_eq!(mine["data"]["n"], 0, "what the user was answered stays: {mine}");
    let list = session.good(FETCH, r#"{"action":"list"}"#).await["data"].clone();
    assert_eq!(list["count"], 2, "and the other call has a handle of its own: {list}");
    ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_ahead_that_takes_too_long_ends_before_the_next_one_begins() {
    // [CACHE-8]
    /// How many run, how many ran at once, and how many have begun.
    #[derive(Default)]
    struct Counts(AtomicUsize, AtomicUsize, AtomicUsize);

    struct Running(Arc<Counts>);

    impl Drop for Running {
        fn drop(&mut self) {
            self.0.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    let counts = Arc::new(Counts::default());
    let begin = |counts: &Arc<Counts>| {
        let n = counts.0.fetch_add(1, Ordering::SeqCst) + 1;
        counts.1.fetch_max(n, Ordering::SeqCst);
        counts.2.fetch_add(1, Ordering::SeqCst);
        Running(Arc::clone(counts))
    };
    let (one, other) = (Arc::clone(&counts), Arc::clone(&counts));
    let stubborn = ToolSpec { supports_cancel: false, run_timeout: None, ..harmless("stubborn") };
    let endless = ToolSpec { run_timeout: None, ..harmless("endless") };
    let functions = Functions::new()
        .with(stubborn, move |_, _| {
            let running = begin(&one);
            async move {
                tokio::time::sleep(Duration::from_secs(2000)).await;
                drop(running);
                Outcome::Succeeded(vec![Content::Json(Json::empty_object())])
            }
        })
        .with(endless, move |_, context| {
            let running = begin(&other);
            async move {
                context.cancellation_token().cancelled().await;
                drop(running);
                Outcome::Cancelled
            }
        });
    let call =
        |tool: &str, every| Warming { tool: tool.into(), inputs: Json::empty_object(), every };
    let warm = vec![call("stubborn", None), call("endless", Some(Duration::from_secs(60)))];
    let engine = raincheck_runtime::Options::in_memory().with_tools(Arc::new(functions));
    let setup = Setup { engine: Some(engine), scope: Scope::local(), ..Setup::default() };
    let options = CacheOptions { warm, ..CacheOptions::default() };
    let (mut session, cache) = cached_with(options, setup).await;
    let ends = warmed(cache, &session);
    tokio::time::sleep(Duration::from_secs(5000)).await;
    assert_eq!(counts.1.load(Ordering::SeqCst), 1, "never two at once");
    assert!(counts.2.load(Ordering::SeqCst) >= 4, "{:?} began", counts.2);
    let list = session.good(FETCH, r#"{"action":"list"}"#).await["data"].clone();
    assert_eq!(list["count"], 0, "that answer came, and has expired since: {list}");
    ends().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_known_of_an_entry_fits_what_its_client_takes() {
    // [CACHE-3]
    let setup = Setup { client: "codex-mcp-client", ..Setup::default() };
    let mut session = cached_with(CacheOptions::default(), setup).await.0;
    let id = handle(&mut session, &items(150)).await;
    let filter = format!(".items{}", " ".repeat(7000));
    let made = fetch(&mut session, &id, "filter", json!({"jq_filter": filter})).await;
    for id in [&id, made["cache_id"].as_str().expect("a handle")] {
        let answer = session.call(FETCH, &arguments(id, "info", json!({}))).await;
        assert!(answer.text.len() <= 10_000, "{} bytes", answer.text.len());
        let metadata = &answer.data["data"]["metadata"];
        assert!(metadata["params_bytes"].as_u64().is_some_and(|n| n > 10_000), "{metadata}");
        assert_eq!(metadata["jq_filter"].is_string(), metadata["source_cache_id"].is_string());
    }
}

#[tokio::test(start_paused = true)]
async fn a_cursor_brings_no_page_that_its_client_would_cut() {
    // [CACHE-3]
    let setup = Setup { client: "claude-code", scope: Scope::local(), ..Setup::default() };
    let (mut session, cache) = cached_with(CacheOptions::default(), setup).await;
    let id = handle(&mut session, &items(4000)).await;
    let page = fetch(&mut session, &id, "get_page", json!({"page_size_kb": 200})).await;
    let cursor = page["_pagination"]["next_cursor"].clone();
    let options = Options::new("0.0.0").wrap(cache);
    let mut small = session.of_scope_with(Scope::local().as_str(), options);
    small.shake_hands("2025-06-18", "codex").await;
    let error = refused(&mut small, &id, "get_page", json!({"cursor": cursor})).await;
    assert_eq!(error["code"], "invalid_params", "{error}");
    assert!(error["message"].as_str().is_some_and(|m| m.contains("200 KiB")), "{error}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("at most 9")), "{error}");
    fetch(&mut session, &id, "get_page", json!({"cursor": cursor})).await;
}

#[tokio::test(start_paused = true)]
async fn what_references_bring_counts_as_what_is_asked() {
    // [CACHE-6] [CALL-7]
    let mut session = cached().await;
    let id = handle(&mut session, &json!({"v": "v".repeat(15 << 20)})).await;
    let call = json!({"s": 30, "v": {"$cache": id, "path": "/v"}}).to_string();
    let mut asked = Vec::new();
    for _ in 0..5 {
        asked.push(session.begin_call("nap", &call).await);
    }
    let mut refused = Vec::new();
    for id in asked {
        let answer = session.answer(&id).await;
        let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
        let told: Value = serde_json::from_str(text).expect("JSON");
        refused.extend(told.get("error").cloned());
    }
    assert_eq!(refused.len(), 1, "15 MiB five times are more than a connection may ask");
    let error = &refused[0];
    assert_eq!(
        (&error["code"], &error["guarantee"]),
        (&json!("queue_full"), &json!("not_executed"))
    );
    session.good("nap", &call).await;
    let one = json!({"$cache": id});
    let error = session.refused("nap", &json!({"s": 30, "v": [one, one, one]}).to_string()).await;
    assert_eq!(error["code"], "too_large", "whatever else is asked: {error}");
}

/// A session of a browser's server whose cache holds what its tool `observe` answered ahead, and its
/// handle.
async fn page_says(contents: Content) -> (Session, String) {
    let functions = Functions::new().with(harmless("observe"), move |_, _| {
        let contents = contents.clone();
        async move { Outcome::Succeeded(vec![contents]) }
    });
    let inputs = Json::empty_object();
    let warm = vec![Warming { tool: "observe".into(), inputs, every: None }];
    let cache = CacheLayer::new(CacheOptions { warm, ..CacheOptions::default() });
    let engine = raincheck_runtime::Options::in_memory().with_tools(Arc::new(functions));
    let options = Options::new("0.0.0").offer(Browser::new(NoTabs)).wrap(cache.clone());
    let setup = Setup { engine: Some(engine), scope: Scope::local(), options, ..Setup::default() };
    let mut session = Session::open_with(setup).await;
    let ends = warmed(cache, &session);
    session.good(FETCH, r#"{"action":"list"}"#).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let list = session.good(FETCH, r#"{"action":"list"}"#).await["data"].clone();
    ends().await;
    let id = list["items"][0]["cache_id"].as_str().expect("a handle").to_owned();
    (session, id)
}

#[tokio::test(start_paused = true)]
async fn what_a_page_said_is_measured_as_it_goes_out() {
    // [CACHE-3] [CACHE-4] [SEC-10]
    let acts = "\u{202e}".repeat(58);
    let rows: Vec<String> = (0..40).map(|n| format!("{acts}needle {n}{acts}")).collect();
    let name = "\u{202e}".repeat(600);
    let json = json!({"rows": rows, (name): rows});
    let json = Json::parse(json.to_string()).expect("JSON");
    let (mut session, id) = page_says(Content::Json(json)).await;
    for kb in [1, 2, 5, 9] {
        let (mut n_hits, mut cursor) = (0, None::<Value>);
        for _ in 0..200 {
            let mut more = json!({"query": "needle", "page_size_kb": kb});
            more.as_object_mut().expect("an object").extend(cursor.map(|at| ("cursor".into(), at)));
            let answer = session.call(FETCH, &arguments(&id, "search", more)).await;
            assert!(answer.text.len() <= kb << 10, "{} bytes of {kb} KiB", answer.text.len());
            let data = &answer.data["data"];
            n_hits += data["hits"].as_array().expect("hits").len();
            cursor = data.get("next_cursor").cloned();
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(n_hits, 80, "none is left out at {kb} KiB");
    }
    let path = json!({"path": format!("/{}", "\u{202e}".repeat(600)), "page_size_kb": 6});
    for action in ["get_page", "sample"] {
        let answer = session.call(FETCH, &arguments(&id, action, path.clone())).await;
        assert!(!answer.is_error, "{}", answer.text);
        assert!(answer.text.len() <= 6 << 10, "{action}: {} bytes", answer.text.len());
    }
}
