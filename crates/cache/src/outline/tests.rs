use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{
    json::{scan, scan_text},
    samples,
};

fn outline(body: &str) -> Value {
    let body = body.as_bytes();
    let index = scan(body).unwrap();
    let outline = View::new(&body, &index).outline(DEFAULT_OUTLINE_BYTES).unwrap();
    assert!(outline.len() <= DEFAULT_OUTLINE_BYTES, "{}", outline.len());
    serde_json::from_slice(&outline).unwrap()
}

fn path<'o>(outline: &'o Value, path: &str) -> &'o Value {
    let paths = outline["paths"].as_array().unwrap();
    paths.iter().find(|line| line["path"] == path).unwrap_or_else(|| panic!("{path} in {outline}"))
}

#[test]
fn an_outline_is_made_once() {
    let body = format!("[{}]", vec![r#"{"a":"b"}"#; 900].join(","));
    let source = samples::Counted::new(body.into_bytes());
    let index = scan(&source.body).unwrap();
    let view = View::new(&source, &index);
    let first = view.outline(DEFAULT_OUTLINE_BYTES).unwrap();
    assert!(source.take() > 0);
    assert_eq!((view.outline(DEFAULT_OUTLINE_BYTES).unwrap(), source.take()), (first, 0));
    assert!(view.outline(1024).unwrap().len() <= 1024 && source.take() > 0);
}

#[test]
fn every_item_of_an_array_counts_and_not_the_first_alone() {
    let items: Vec<String> = (0..500)
        .map(|n| match n % 5 {
            0 => format!(r#"{{"id":{n},"name":"n{n}"}}"#),
            1 => format!(r#"{{"id":"x{n}","tags":["a",{n}]}}"#),
            2 => "null".to_owned(),
            3 => format!("{n}"),
            _ => format!(r#"{{"id":{n},"late":{}}}"#, n > 400),
        })
        .collect();
    let seen = outline(&format!(r#"{{"ok":true,"items":[{}]}}"#, items.join(",")));
    assert_eq!(path(&seen, ".items")["items"], 500);
    assert_eq!(path(&seen, ".items[]")["type"], "object|number|null");
    assert_eq!(path(&seen, ".items[].id")["type"], "string|number");
    assert_eq!(path(&seen, ".items[].id")["max"], 499);
    assert_eq!(path(&seen, ".items[].name")["present"], 33);
    assert_eq!(path(&seen, ".items[].late")["enum"].as_array().unwrap().len(), 2);
    assert_eq!(path(&seen, ".items[].tags[]")["type"], "string|number");
    assert_eq!(seen["filters"].as_array().unwrap().len(), 3);
    assert_eq!(seen["more"], Value::Null);
}

#[test]
fn what_repeats_itself_inside_itself_is_said_once() {
    let mut node = r#"{"name":"leaf","tag":"x","children":[]}"#.to_owned();
    for depth in 0..40 {
        node = format!(
            r#"{{"name":"n{depth}","tag":"y","children":[{node},{{"name":"b","tag":"x","children":[]}}]}}"#
        );
    }
    let seen = outline(&format!(r#"{{"hierarchy":[{node}]}}"#));
    assert_eq!(path(&seen, ".hierarchy[].children[]")["$rec"], ".hierarchy[]");
    assert_eq!(path(&seen, ".hierarchy[].name")["count"], 81);
    assert_eq!(seen["paths"].as_array().unwrap().len(), 7);
    assert_eq!(seen["filters"][2], "[.hierarchy | .. | objects | .name?]");
    let list = r#"{"v":1,"next":"#.repeat(300) + "null" + &"}".repeat(300);
    let seen = outline(&list);
    assert_eq!(path(&seen, ".v")["count"], 300);
    assert_eq!(path(&seen, ".next")["$rec"], ".");
}

#[test]
fn wrappers_of_one_name_are_not_taken_for_a_list() {
    let seen = outline(r#"{"data":{"data":{"items":[{"id":1}]}}}"#);
    assert_eq!(path(&seen, ".data.data.items[].id")["enum"][0], 1);
    let seen = outline(r#"{"data":[{"id":1,"data":{"x":1}},{"id":2,"data":{"x":3}}]}"#);
    assert_eq!(path(&seen, ".data[].data.x")["count"], 2);
}

#[test]
fn an_object_with_many_names_is_a_map() {
    let members: Vec<String> =
        (0..5000).map(|n| format!(r#""id {n}":{{"n":{n},"on":{}}}"#, n % 2 == 0)).collect();
    let seen = outline(&format!("{{{}}}", members.join(",")));
    assert_eq!(path(&seen, ".")["items"], 5000);
    assert_eq!(path(&seen, ".[].n")["max"], 4999);
    assert_eq!(path(&seen, ".[].on")["count"], 5000);
}

#[test]
fn many_paths_and_long_values_keep_the_size() {
    let members: Vec<String> = (0..60)
        .map(|n| {
            format!(
                r#""a long name of a member {n}":{{"inner":{{"text":"{}"}}}}"#,
                "\\u00e9".repeat(n * 9)
            )
        })
        .collect();
    let seen = outline(&format!("{{{}}}", members.join(",")));
    assert!(seen["more"].as_u64().unwrap() > 0);
    assert!(seen["paths"].as_array().unwrap().len() > 20);
    let seen = outline(&format!(r#"{{"{}":1}}"#, "k".repeat(9000)));
    assert_eq!(seen["paths"].as_array().unwrap().len(), 1);
    let mut tree = "1".to_owned();
    for depth in 0..13 {
        tree = format!(r#"{{"l{depth}":{tree},"r{depth}":{tree}}}"#);
    }
    outline(&tree);
    let deep = "[".repeat(512) + &"]".repeat(512);
    outline(&deep);
}

#[test]
fn a_text_is_outlined_by_its_first_lines() {
    let body = b"first\nsecond \"line\"\n\nfourth".as_slice();
    let index = scan_text(body).unwrap();
    let outline = View::new(&body, &index).outline(2048).unwrap();
    let text = r#"{"kind":"text","bytes":28,"lines":4,"samples":["first","second \"line\"",""]}"#;
    assert_eq!(String::from_utf8(outline).unwrap(), text.replace("28", &body.len().to_string()));
}

#[test]
fn filters_name_what_is_there() {
    let seen = outline(r#"[{"id":1,"kind":"a"},{"id":2,"kind":"b"}]"#);
    assert_eq!(seen["filters"][0], "[.[] | {id, kind}]");
    assert_eq!(seen["filters"][1], "[.[] | select(.id == 2)] | length");
    let seen = outline(r#"{"a b":{"x":[1,2,3,4,5,6,7,8,9]}}"#);
    assert_eq!(seen["filters"][1], r#".["a b"].x[0:10]"#);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn an_outline_is_valid_and_keeps_its_size(
        value in samples::value(), style in 0_u8..3, bytes in 512_usize..4000,
    ) {
        let body = samples::write(&value, style);
        let index = scan(&body).unwrap();
        let outline = View::new(&body, &index).outline(bytes).unwrap();
        prop_assert!(outline.len() <= bytes, "{} of {}", outline.len(), bytes);
        let seen: Value = serde_json::from_slice(&outline).unwrap();
        prop_assert_eq!(&seen["bytes"], body.len());
        let blocks = samples::Blocks(body);
        prop_assert_eq!(View::new(&blocks, &index).outline(bytes).unwrap(), outline);
    }
}
