//! What an answer still tells of output that went into a file: what the next call needs, and counts.

use serde_json::{Map, Value};

/// What answers with a value that a page, or a script in it, chose: its members are the output, whatever their names.
const OF_PAGES: &[&str] = &["execute_js", "storage", "cookies"];

/// Members that are the output itself, wherever they stand.
const OUTPUT: &[&str] = &[
    "text", "data", "head", "script", "value", "tools", "headers", "body", "local", "session",
    "cookies", "console", "network", "dialogs", "events", "fields",
];

/// Members that fence words of pages, in the place of which there are none any more.
const FENCES: &[&str] = &["untrusted_begins", "untrusted_ends"];

/// The longest member that is told, and the longest gist, in bytes of JSON.
const MAX_MEMBER: usize = 1000;
const MAX: usize = 6000;

/// How deep it is looked for small members in large ones.
const MAX_DEPTH: usize = 3;

/// Returns the small members of a result that is saved. A list is told by its length: as `n_NAME` where it is a member,
/// and as `count` where it is the result.
pub(crate) fn of(what: &str, result: &Value) -> Map<String, Value> {
    let gist = match (result.as_array(), result.as_object()) {
        (Some(items), _) => of_list(what, items),
        (_, Some(members)) if !OF_PAGES.contains(&what) => of_members(members, MAX_DEPTH),
        _ => Map::new(),
    };
    if size(&gist) <= MAX {
        return gist;
    }
    gist.into_iter().filter(|(_, value)| !value.is_array() && !value.is_object()).collect()
}

/// A script of several batches is told by the names of all of them, and by what the first says of all.
fn of_list(what: &str, items: &[Value]) -> Map<String, Value> {
    let mut gist = Map::from_iter([("count".to_owned(), items.len().into())]);
    if what != "record_stop" {
        return gist;
    }
    let members =
        |name: &'static str| items.iter().filter_map(move |item| item.get(name)?.as_object());
    for name in ["values", "recorded"] {
        let all: Map<String, Value> =
            members(name).flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
        if !all.is_empty() {
            gist.insert(name.to_owned(), Value::Object(all));
        }
    }
    gist
}

fn of_members(members: &Map<String, Value>, depth: usize) -> Map<String, Value> {
    let mut gist = Map::new();
    for (name, value) in members {
        if FENCES.contains(&name.as_str()) {
            continue;
        }
        let is_output = OUTPUT.contains(&name.as_str());
        // Names that a recording gave may be any.
        let inner = value.as_object().filter(|_| name != "values");
        let items = value.as_array();
        if let Some(steps) = items.filter(|_| name == "steps") {
            count(&mut gist, members, name, steps.len());
            let told: Vec<Value> = steps.iter().filter_map(of_step).collect();
            if told.len() == steps.len() {
                gist.insert(name.clone(), told.into());
            }
        } else if let Some(inner) = inner {
            if !is_output && depth > 0 {
                gist.insert(name.clone(), of_members(inner, depth - 1).into());
            }
        } else if !is_output && size(value) <= MAX_MEMBER {
            gist.insert(name.clone(), value.clone());
        } else if let Some(items) = items {
            count(&mut gist, members, name, items.len());
        }
    }
    gist
}

/// Tells how long a list is, unless the result says something by that name.
fn count(gist: &mut Map<String, Value>, members: &Map<String, Value>, name: &str, length: usize) {
    let counted = format!("n_{name}");
    if !members.contains_key(&counted) {
        gist.insert(counted, length.into());
    }
}

/// A step of a batch that has a result, such as a snapshot with its name; a recorded one has none.
fn of_step(step: &Value) -> Option<Value> {
    let what = step.get("action")?.as_str()?;
    let mut told = of(what, step.get("result")?);
    told.insert("action".to_owned(), what.into());
    Some(told.into())
}

fn size(value: &impl serde::Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |json| json.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_next_call_needs_of_saved_output_is_told_and_the_output_is_not() {
        // [BROWSER-40]
        let long = "x".repeat(5000);
        let lines: Vec<String> = (0..90).map(|n| format!("line {n} {}", "x".repeat(20))).collect();
        for (what, result, wanted) in [
            (
                "snapshot",
                json!({ "url": "http://a/", "title": "A", "origin": "http://a", "snapshot_id": "s1.1", "text": "- x", "left_out": ["one"] }),
                json!({ "url": "http://a/", "title": "A", "origin": "http://a", "snapshot_id": "s1.1", "left_out": ["one"] }),
            ),
            (
                "snapshot",
                json!({ "snapshot_id": "s1.1", "text": long, "left_out": lines }),
                json!({ "snapshot_id": "s1.1", "n_left_out": 90 }),
            ),
            (
                "record_stop",
                json!({ "action": "batch", "steps": [{ "action": "fill", "selector": "#a", "text": "{{secret:word}}" }], "values": { "text": null }, "recorded": { "url": "http://a/", "n_steps": 1 } }),
                json!({ "action": "batch", "n_steps": 1, "values": { "text": null }, "recorded": { "url": "http://a/", "n_steps": 1 } }),
            ),
            (
                "record_stop",
                json!([{ "steps": [], "values": { "a": null }, "recorded": { "n_steps": 51 } }, { "steps": [], "values": { "b": null } }]),
                json!({ "count": 2, "values": { "a": null, "b": null }, "recorded": { "n_steps": 51 } }),
            ),
            (
                "recording",
                json!({ "is_on": true, "tab_id": 7, "url": "http://a/", "n_steps": 1, "script": { "steps": [] } }),
                json!({ "is_on": true, "tab_id": 7, "url": "http://a/", "n_steps": 1 }),
            ),
            (
                "batch",
                json!({ "n_done": 2, "steps": [{ "action": "snapshot", "result": { "snapshot_id": "s1.2", "text": "- x" } }, { "action": "execute_js", "result": { "a": 1 } }] }),
                json!({ "n_done": 2, "n_steps": 2, "steps": [{ "action": "snapshot", "snapshot_id": "s1.2" }, { "action": "execute_js" }] }),
            ),
            (
                "click",
                json!({ "target": "button", "changes": { "added": 1, "removed": 0, "changed": 2, "text": long } }),
                json!({ "target": "button", "changes": { "added": 1, "removed": 0, "changed": 2 } }),
            ),
            (
                "request",
                json!({ "id": "1", "status": 200, "request": { "headers": {} }, "response": { "mime": "text/html", "headers": {}, "body": long } }),
                json!({ "id": "1", "status": 200, "request": {}, "response": { "mime": "text/html" } }),
            ),
            (
                "page_tools",
                json!({ "url": "http://a/", "tools": [1, 2] }),
                json!({ "url": "http://a/", "n_tools": 2 }),
            ),
            (
                "console",
                json!({ "count": 3, "next_cursor": "9", "untrusted_begins": "m", "console": [1, 2, 3], "untrusted_ends": "m" }),
                json!({ "count": 3, "next_cursor": "9", "n_console": 3 }),
            ),
            ("tabs", json!([{ "tab_id": 7 }]), json!({ "count": 1 })),
            ("execute_js", json!({ "secret": "s", "url": "http://a/" }), json!({})),
            ("storage", json!({ "origin": "http://a", "local": { "a": "b" } }), json!({})),
            ("execute_js", json!("said"), json!({})),
        ] {
            assert_eq!(Value::Object(of(what, &result)), wanted, "{what}");
        }
    }

    #[test]
    fn the_gist_stays_small_whatever_the_output_is() {
        let many: Map<String, Value> =
            (0..500).map(|n| (format!("m{n}"), json!(["x".repeat(300)]))).collect();
        let told = of("click", &Value::Object(many));
        assert!(size(&told) <= MAX, "{}", size(&told));
    }
}
