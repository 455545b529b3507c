//! What other servers stumbled over, with the same bytes.

use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::Content;
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_runtime::Functions;
use serde_json::{Value, json};

use super::{FETCH, arguments, cached, cached_with, fetch, harmless, refused};
use crate::session::{Session, Setup};
use raincheck_mcp::layers::cache::CacheOptions;

/// Has a tool answer with these bytes, and returns what came.
async fn told(session: &mut Session, body: &str) -> Value {
    session.good("verbatim", &json!({ "text": body }).to_string()).await
}

/// As `told`, of what is kept: returns its handle.
async fn kept(session: &mut Session, body: &str) -> String {
    let told = told(session, body).await;
    told["cache_id"].as_str().unwrap_or_else(|| panic!("no handle: {told:.300}")).to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_cut_falls_between_characters_at_every_offset() {
    // [CACHE-4] cache-cut-inside-a-character
    let mut session = cached().await;
    for n in 0..4 {
        let items = [
            "a".repeat(n) + &"→".repeat(9000),
            "👨‍👩‍👧‍👦".repeat(2500),
            "e".to_owned() + &"\u{301}".repeat(300) + &"\r\n".repeat(3000),
            "가".repeat(8000),
        ];
        let id = kept(&mut session, &json!({ "items": items }).to_string()).await;
        for (place, item) in items.iter().enumerate() {
            let (mut whole, mut n_cut) = (String::new(), 0);
            let mut at = json!({"path": format!("/items/{place}"), "page_size_kb": 1});
            loop {
                let answer = session.call(FETCH, &arguments(&id, "get_page", at)).await;
                assert!(answer.text.len() <= 1024, "{} bytes", answer.text.len());
                let page = &answer.data["data"];
                let piece = page["data"]["$str"].as_str().or(page["data"].as_str());
                let piece = piece.unwrap_or_else(|| panic!("{}", answer.text));
                let is_cut = page["_pagination"]["cuts_character"] == true;
                n_cut += usize::from(is_cut);
                let joins = ['\u{200d}', '\n'];
                let follows = whole.ends_with('\r') || !whole.ends_with('\n');
                let splits = piece.ends_with('\u{200d}')
                    || !whole.is_empty() && piece.starts_with(joins) && follows;
                assert!(!splits || is_cut, "{whole:?} and {piece:?}");
                whole.push_str(piece);
                let Some(cursor) = page["_pagination"]["next_cursor"].as_str() else { break };
                at = json!({ "cursor": cursor });
            }
            assert!(whole == *item, "item {place} of {n} comes back");
            assert!(n_cut <= usize::from(place == 2), "only the accents are longer than a page");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn data_is_sent_once_and_a_large_answer_is_short() {
    // [CALL-6] cache-payload-sent-once
    let mut session = cached().await;
    told(&mut session, &format!("{{\"t\":\"{}\"}}", "q".repeat(15_000))).await;
    assert!(session.last.len() <= 17_000, "{} bytes", session.last.len());
    let row = r#"{"id":1,"name":"row of the table","ok":true},"#;
    let rows = format!("{{\"rows\":[{}null]}}", row.repeat(240_000));
    let id = kept(&mut session, &rows).await;
    assert!(session.last.len() <= 60_000, "{} bytes", session.last.len());
    kept(&mut session, &format!("\"{}\"", "w".repeat(12_000_000))).await;
    assert!(session.last.len() <= 60_000, "{} bytes", session.last.len());
    assert_eq!(refused(&mut session, &id, "get", json!({})).await["code"], "too_large");
    let info = fetch(&mut session, &id, "info", json!({})).await;
    assert_eq!(info["metadata"]["size_bytes"], rows.len());
    let far = fetch(&mut session, &id, "get_page", json!({"page": 100_000})).await;
    assert_eq!(far["data"], json!([]), "{far}");
}

#[tokio::test(start_paused = true)]
async fn plain_text_goes_out_as_it_is_and_the_estimate_knows_it() {
    // [CACHE-3] cache-plain-text-for-plain-people
    let mut session = cached().await;
    let words = "漢字かな交じり文。";
    let zh = told(&mut session, &format!("{{\"t\":\"{}\"}}", words.repeat(900))).await;
    assert!(session.last.len() <= 28_000 && !session.last.contains("\\u6f22"), "as UTF-8");
    assert_eq!(zh["t"].as_str().map(|text| text.chars().count()), Some(8100));
    let id = kept(&mut session, &format!("{{\"t\":\"{}\"}}", words.repeat(6000))).await;
    let escaped = "\\u6f22\\u5b57".repeat(4000);
    told(&mut session, &format!("{{\"t\":\"{escaped}\",\"s\":\"a\\/b \\u0041\"}}")).await;
    assert!(session.last.len() <= 50_000, "{} bytes", session.last.len());
    let info = fetch(&mut session, &id, "info", json!({})).await;
    let tokens = info["metadata"]["estimated_tokens"].as_u64().expect("a number");
    assert!((27_000..=110_000).contains(&tokens), "{tokens}");
    told(&mut session, &format!("{{\"t\":\"{}\"}}", "😀".repeat(6000))).await;
    assert!(!session.last.contains("\\ud83d"), "as UTF-8");
}

#[tokio::test(start_paused = true)]
async fn odd_handles_are_refused_briefly_and_one_that_expired_says_so() {
    // [CACHE-5] cache-handles-that-are-gone
    let mut session = cached().await;
    let id = kept(&mut session, &format!("\"{}\"", "x".repeat(70_000))).await;
    let long = "9".repeat(100_000);
    for odd in
        ["", "../../etc/hostname", &format!("{id}\n"), &format!(" {id}"), "１２３", "null", &long]
    {
        let error = refused(&mut session, odd, "info", json!({})).await;
        assert_eq!(error["details"]["reason"], "unknown", "{odd:.40}");
        assert!(session.last.len() <= 4000, "{} bytes", session.last.len());
    }
    for call in [
        json!({"cache_id": id, "action": "explode"}),
        json!({"action": "get_page"}),
        json!({"cache_id": 7, "action": "info"}),
    ] {
        let error = session.refused(FETCH, &call.to_string()).await;
        assert_eq!(error["code"], "invalid_params", "{error}");
    }
    tokio::time::sleep(Duration::from_secs(30 * 60 + 1)).await;
    let error = refused(&mut session, &id, "get_page", json!({})).await;
    assert_eq!(error["details"]["reason"], "expired", "{error}");
    assert_eq!(error["details"]["rerun"]["tool"], "verbatim", "{error}");
}

#[tokio::test(start_paused = true)]
async fn nesting_bombs_are_a_text_like_any_other() {
    // [CACHE-1] [CACHE-10] cache-nesting-bombs
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    let objects = "{\"a\":".repeat(100_000) + "1" + &"}".repeat(100_000);
    let bodies: Arc<[String]> = Arc::from([deep, objects]);
    let functions = Functions::new().with(harmless("emit"), move |attempt, _| {
        let bodies = Arc::clone(&bodies);
        async move {
            let inputs: Value = attempt.inputs.read().expect("an object");
            let n = usize::from(inputs["objects"] == true);
            Outcome::Succeeded(vec![Content::Text(bodies[n].as_str().into())])
        }
    });
    let engine = raincheck_runtime::Options::in_memory().with_tools(Arc::new(functions));
    let setup = Setup { engine: Some(engine), scope: Scope::local(), ..Setup::default() };
    let mut session = cached_with(CacheOptions::default(), setup).await.0;
    let mut id = String::new();
    for objects in [false, true] {
        let told = session.good("emit", &json!({ "objects": objects }).to_string()).await;
        id = told["cache_id"].as_str().expect("a handle").to_owned();
        for action in ["outline", "get_page", "sample"] {
            fetch(&mut session, &id, action, json!({})).await;
            assert!(session.last.len() <= 60_000, "{} bytes", session.last.len());
        }
    }
    let parens = "(".repeat(20_001) + "." + &")".repeat(20_001);
    let error = refused(&mut session, &id, "filter", json!({"jq_filter": parens})).await;
    assert_eq!(error["code"], "invalid_filter", "{error:.300}");
    let path = "/0".repeat(100_000);
    let error = refused(&mut session, &id, "get_page", json!({ "path": path })).await;
    assert!(
        error["message"].as_str().is_some_and(|m| m.contains("at most 64 KiB")),
        "{error:.300}"
    );
    let error = refused(&mut session, &id, "get_page", json!({"path": &path[..60_000]})).await;
    assert_eq!(error["code"], "path_not_found", "{error:.300}");
    assert!(session.last.len() <= 4000, "{} bytes", session.last.len());
}
