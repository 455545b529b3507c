//! An answer that is too large to send, and three calls that read what matters of it.

use serde_json::{Value, json};

use super::super::programs::N_OBJECTS;
use super::super::session::Session;
use super::super::{Unmet, expect};

/// The tool that reads cached responses.
const FETCH: &str = "fetch_cached_response";

/// The filter of the second call.
const LIGHTS: &str = r#"[.objects[] | select(.kind == "light" and .shadow == false) | .name]"#;

/// How many lights cast no shadow.
const N_LIGHTS: usize = 20;

pub(super) async fn show(session: &Session) -> Result<(), Unmet> {
    let show = session.transcript;
    show.heading("5. A large answer becomes a handle, and three calls find what matters in it")?;
    let listed = session.call("list_scene", json!({})).await?;
    let is_cached = listed.data.get("cached").and_then(Value::as_bool);
    expect(is_cached == Some(true), || format!("it is not cached: {}", listed.data))?;
    let id = listed.text("/cache_id")?.to_owned();
    let size = listed.json("/data/size_kb");
    show.answer(listed.took, &format!("{size} KiB under the handle {id}"))?;
    let outline = listed.json("/outline");
    expect(outline.contains("objects"), || format!("another outline: {outline}"))?;
    show.detail(&format!("filters to try: {}", listed.json("/outline/filters")))?;

    let filter = json!({ "action": "filter", "cache_id": id, "jq_filter": LIGHTS });
    let made = session.call(FETCH, filter).await?;
    let lights = made.data.pointer("/data/outputs/0").and_then(Value::as_array);
    let n_lights = lights.map(Vec::len);
    expect(n_lights == Some(N_LIGHTS), || format!("other lights: {}", made.data))?;
    let first = made.json("/data/outputs/0/0");
    show.answer(made.took, &format!("{N_LIGHTS} lights without a shadow, {first} the first"))?;

    let page =
        json!({ "action": "get_page", "cache_id": id, "path": "/objects", "page_size_kb": 4 });
    let page = session.call(FETCH, page).await?;
    let total = page.data.pointer("/data/_pagination/total_items").and_then(Value::as_u64);
    expect(total == Some(N_OBJECTS), || format!("another page: {}", page.data))?;
    let at = page.json("/data/_pagination/end_index");
    let pages = page.json("/data/_pagination/total_pages");
    show.answer(page.took, &format!("page 1 of {pages}: {at} of {N_OBJECTS} objects in 4 KiB"))
}
