use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{Pointer, View, samples};

fn verdict(body: &str) -> Result<(), (Why, usize)> {
    let whole = scan(body.as_bytes()).map(drop);
    let mut scanner = Scanner::new();
    let in_bytes = body.bytes().try_for_each(|byte| scanner.push(&[byte]));
    let in_bytes = in_bytes.and_then(|()| scanner.finish().map(drop));
    assert_eq!(whole, in_bytes, "{body:?} in pieces");
    whole.map_err(|invalid| (invalid.why, invalid.offset))
}

#[test]
fn what_rfc_8259_allows_is_taken() {
    for body in [
        "0",
        "-0",
        "-0.0e-0",
        "1E+9",
        " [ ] ",
        "{}",
        "\"\"",
        "true",
        "false",
        "null",
        "[1,2]",
        "{\"a\":{}}",
        "[[[]]]",
        "\"\\u0000\\ud83d\\ude00\\/\"",
        "\t1\r\n",
        "{\"a\":1,\"A\":2}",
        "123456789012345678901234567890",
        "1e999999",
        "\"\u{7f}\u{2028}\"",
    ] {
        assert_eq!(verdict(body), Ok(()), "{body}");
    }
}

#[test]
fn each_fault_has_its_verdict_and_place() {
    for (body, why, offset) in [
        ("", Why::Empty, 0),
        (" \n", Why::Empty, 2),
        ("[", Why::Truncated, 1),
        ("\"a", Why::Truncated, 2),
        ("-", Why::Truncated, 1),
        ("tru", Why::Truncated, 3),
        ("1 2", Why::Trailing, 2),
        ("[1]]", Why::Trailing, 3),
        ("NaN", Why::Value, 0),
        ("[nan]", Why::Value, 1),
        ("-Infinity", Why::Number, 1),
        ("[Infinity]", Why::Value, 1),
        ("// a\n1", Why::Value, 0),
        ("# a\n1", Why::Value, 0),
        ("\u{feff}1", Why::Value, 0),
        ("[1,]", Why::Value, 3),
        ("[,1]", Why::Value, 1),
        ("{\"a\":1,}", Why::Name, 7),
        ("{1:2}", Why::Name, 1),
        ("{'a':2}", Why::Name, 1),
        ("{\"a\" 1}", Why::Colon, 5),
        ("[1 2]", Why::Comma, 3),
        ("[1}", Why::Comma, 2),
        ("{\"a\":1]", Why::Comma, 6),
        ("01", Why::Number, 1),
        ("[1.]", Why::Number, 3),
        ("[.5]", Why::Value, 1),
        ("[1.e1]", Why::Number, 3),
        ("[+1]", Why::Value, 1),
        ("[1e]", Why::Number, 3),
        ("\"a\nb\"", Why::Control, 2),
        ("\"\\x\"", Why::Escape, 2),
        ("\"\\u12g4\"", Why::Escape, 5),
        ("\"\\ud800\"", Why::LoneSurrogate, 7),
        ("\"\\udc00\"", Why::LoneSurrogate, 6),
        ("\"\\ud800\\u0041\"", Why::LoneSurrogate, 12),
        ("\"\\ud800\\n\"", Why::LoneSurrogate, 8),
        ("{\"a\":1,\"b\":{\"a\":1},\"a\":2}", Why::DuplicateName, 19),
        ("{\"a\":1,\"\\u0061\":2}", Why::DuplicateName, 7),
        ("{\"\\u00e9\":1,\"é\":2}", Why::DuplicateName, 12),
    ] {
        assert_eq!(verdict(body), Err((why, offset)), "{body}");
    }
}

#[test]
fn a_name_that_comes_twice_among_many_is_found() {
    let mut body: Vec<String> = (0..1000).map(|n| format!("\"n{n}\":{n}")).collect();
    assert_eq!(verdict(&format!("{{{}}}", body.join(","))), Ok(()));
    body.insert(900, "\"n17\":0".to_owned());
    let body = format!("{{{}}}", body.join(","));
    let second = body.rfind("\"n17\"").unwrap();
    assert_eq!(verdict(&body), Err((Why::DuplicateName, second)));
}

#[test]
fn depth_ends_at_its_limit_and_no_later() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(verdict(&nested(MAX_DEPTH)), Ok(()));
    assert_eq!(verdict(&nested(MAX_DEPTH + 1)), Err((Why::TooDeep, MAX_DEPTH)));
    assert_eq!(verdict(&"[".repeat(10_000)), Err((Why::TooDeep, MAX_DEPTH)));
    assert_eq!(verdict(&"{\"a\":".repeat(10_000)), Err((Why::TooDeep, MAX_DEPTH * 5)));
}

#[test]
fn bytes_that_are_no_text_are_refused_where_they_stand() {
    for body in [b"\"a\xffb\"".as_slice(), b"\"a\xe3\x81\"", b"\"a\xed\xa0\x80\""] {
        assert_eq!(scan(body).unwrap_err().why, Why::Utf8);
        assert_eq!(scan_text(body).unwrap_err().why, Why::Utf8);
        let mut scanner = Scanner::new();
        let outcome = body.iter().try_for_each(|byte| scanner.push(&[*byte]));
        assert_eq!(outcome.and_then(|()| scanner.finish().map(drop)).unwrap_err().why, Why::Utf8);
    }
    assert_eq!(scan(b"\"a\xffb\"").unwrap_err().offset, 2);
    assert_eq!(scan_text(b"a\n\xe3\x81").unwrap_err().why, Why::Utf8);
}

#[test]
fn line_and_column_say_where() {
    let invalid = scan(b"{\n  \"a\": 1,\n  \"b\" 2\n}").unwrap_err();
    assert_eq!((invalid.line, invalid.column), (3, 7));
    assert_eq!(invalid.to_string(), "expected `:` at line 3, column 7 (byte 18)");
}

#[test]
fn nesting_does_not_make_the_index_larger_than_the_body() {
    let chain = "[".repeat(500) + &"1,".repeat(600) + "1" + &"]".repeat(500);
    let body = format!("[{}]", vec![chain.as_str(); 500].join(","));
    let index = scan(body.as_bytes()).unwrap();
    assert!(index.heap_bytes() * 10 < body.len(), "{} for {}", index.heap_bytes(), body.len());
    let numbers = format!("[{}1]", "1,".repeat(1_000_000));
    let index = scan(numbers.as_bytes()).unwrap();
    assert!(index.heap_bytes() * 60 < numbers.len(), "{}", index.heap_bytes());
}

#[test]
fn a_text_is_known_by_its_lines() {
    for (body, n_lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\n\nb", 3), ("\n", 1)] {
        let index = scan_text(body.as_bytes()).unwrap();
        assert_eq!((index.root().kind, index.n_lines), (Kind::Text, n_lines), "{body:?}");
    }
}

/// Compares every value of a view with the parsed one, going down by each of the ways in.
fn same(view: View<'_>, node: Node, path: &Pointer, value: &Value) {
    assert_eq!(serde_json::from_slice::<Value>(&view.raw(node).unwrap()).unwrap(), *value);
    assert_eq!(view.resolve(path).unwrap(), node);
    let (found, there) = view.locate(node.start).unwrap();
    assert!(found.as_str().starts_with(path.as_str()) && there.start == node.start, "{path}");
    let children: Vec<_> = view.children(node).unwrap().map(Result::unwrap).collect();
    assert_eq!(view.len(node).unwrap(), children.len());
    match value {
        Value::Array(items) => {
            assert_eq!(items.len(), children.len());
            for (position, item) in items.iter().enumerate() {
                let child = view.nth(node, position).unwrap().unwrap();
                assert_eq!(child, children[position]);
                let mut path = path.clone();
                path.push_position(position);
                same(view, child.value, &path, item);
            }
        }
        Value::Object(members) => {
            assert_eq!(members.len(), children.len());
            for (name, member) in members {
                let child = view.member(node, name).unwrap().unwrap();
                assert_eq!(view.text(child.name.unwrap()).unwrap(), name.as_str());
                let mut path = path.clone();
                path.push_name(name);
                same(view, child.value, &path, member);
            }
        }
        Value::String(text) => assert_eq!(view.text(node).unwrap(), text.as_str()),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_view_shows_what_a_parser_would(
        value in samples::value(),
        style in 0_u8..3,
        cuts in prop::collection::vec(1_usize..3000, 1..8),
    ) {
        let body = samples::write(&value, style);
        let mut scanner = Scanner::new();
        let mut rest = body.as_slice();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            let (piece, others) = rest.split_at((*cut).min(rest.len()));
            scanner.push(piece).unwrap();
            rest = others;
        }
        let index = scanner.finish().unwrap();
        prop_assert_eq!(format!("{:?}", index), format!("{:?}", scan(&body).unwrap()));
        for mark in &index.marks {
            let before = &body[..to_usize(mark.offset)];
            prop_assert_eq!(to_usize(mark.escapes), super::super::text::n_escapes(before));
        }
        let view = View::new(&body, &index);
        same(view, view.root(), &Pointer::default(), &value);
        let blocks = samples::Blocks(body.clone());
        let view = View::new(&blocks, &index);
        same(view, view.root(), &Pointer::default(), &value);
    }

    #[test]
    fn what_a_parser_refuses_is_refused(body in "[\\[\\]{}:,\"0-9.eE+\\- \\\\nultrfasd]{0,24}") {
        let parsed = serde_json::from_str::<Value>(&body).is_ok();
        match scan(body.as_bytes()) {
            Ok(_) => prop_assert!(parsed, "{}", body),
            Err(invalid) => {
                let is_ours = invalid.why == Why::DuplicateName || body.contains("e");
                prop_assert!(!parsed || is_ours, "{}: {}", body, invalid);
            }
        }
    }
}
