//! A plan against the engine: the same bytes, or none.

use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::filter::value::{Value, read, write};
use crate::filter::{engine, syntax};
use crate::json::scan;

fn by_plan(filter: &str, body: &[u8]) -> Option<Outputs> {
    let lines = syntax::Lines::default();
    let plan = Plan::of(&syntax::program(filter, &lines).unwrap())?;
    let index = scan(body).unwrap();
    let view = View::new(&body, &index);
    let limits = Limits { wall: Duration::from_secs(600), ..Limits::default() };
    run(&plan, &view, &limits, &Deadline::after(limits.wall)).unwrap()
}

/// The outputs of the engine; `None` if the filter fails.
fn by_engine(filter: &str, body: &[u8]) -> Option<Outputs> {
    let lines = syntax::Lines::default();
    let program = engine::compile(filter, syntax::program(filter, &lines).unwrap()).unwrap();
    let input = read::json(&Bytes::copy_from_slice(body)).unwrap();
    let mut outputs = Outputs::default();
    let mut failed = false;
    program.run(Value(input), |output| {
        match output {
            Ok(value) => {
                if outputs.count > 0 {
                    outputs.bytes.push(b',');
                }
                outputs.count += 1;
                write::json(&value.0, &mut outputs.bytes, usize::MAX, 512).unwrap();
            }
            Err(_) => failed = true,
        }
        ControlFlow::Continue(())
    });
    (!failed).then_some(outputs)
}

fn text(outputs: Option<Outputs>) -> Option<(usize, String)> {
    outputs.map(|outputs| (outputs.count, String::from_utf8(outputs.bytes).unwrap()))
}

const BODY: &str = r#" { "items" : [ {"id":0,"name":"item \u0041","flag":true,"x":1.50,"tags":["a","b"]},
    {"id":1,"name":"b\/c\u007f","flag":false,"x":null,"tags":[]}, {"id":2,"name":"é😀","x":-0,"deep":{"a":{"b":[1 , 2]}}} ],
    "title":"T", "n":9007199254740993, "big":123456789012345678901234567890, "none":null, "e":{}, "kéy \"q\"":1E5 } "#;

#[test]
fn a_plan_yields_what_the_engine_yields() {
    for filter in [
        ".",
        ".items",
        ".items[0].name",
        ".items[-1]",
        ".items[7]",
        ".items[].name",
        ".items[1:]",
        ".items[:-1]",
        ".items[5:2]",
        ".items[].deep.a.b",
        ".items[].deep.a.b[0]",
        ".items | length",
        "keys",
        ".items|keys",
        ".items[]|keys",
        ".nope",
        ".nope.a[3]",
        ".title|length",
        ".items|map({id, n: .name, t: (.tags|length)})",
        ".items[]|select(.flag)|.id",
        "[.items[]|select(.flag|not)|.id]|length",
        ".items[]|select(.x == 1.5)|.id",
        ".items[]|select(.x == null)|.id",
        ".items[]|select(.id >= 1 and .id < 2).name",
        ".items[]|select(.id > 1 or .flag)",
        ".items[]|select(.name|contains(\"A\"))|.id",
        ".items[]|select(.name == \"item A\")|.id",
        ".items[]|select(.tags != \"a\")|.id",
        ".items[]|select(.x < -1)|.id",
        ".items[]|select(.x <= -0)|.id",
        "select(.n == 9007199254740993)|.title",
        "select(.n < 9007199254740994)|.title",
        ".title, .n, .big",
        ".[\"kéy \\\"q\\\"\"]",
        ".none[]?",
        ".title[]?",
        ".title.a?",
        ".items[]|.tags[0]?",
        "{title, e}",
        "[.items[].id]",
        "[[.items[].id]]",
        ".items[0:2][].id",
        ".e|length",
        ".none|length",
        ".items[].tags[]",
        "[.items[:3][].id]",
        ".items|map(.x)",
        ".items|map(select(.id != 1))",
        ".[]?",
        ".e[]",
        "[.e[]]",
        ".items[1:][0].id",
        "{a: .items|length}",
        ".items|map(.name)|length",
        "select(.items|length > 2)|.title",
        "select(.none)|1, .title",
    ] {
        let plan = by_plan(filter, BODY.as_bytes());
        if let Some(plan) = plan {
            assert_eq!(text(Some(plan)), text(by_engine(filter, BODY.as_bytes())), "{filter}");
        }
    }
}

#[test]
fn a_plan_that_would_fail_is_for_the_engine() {
    for filter in [
        ".title.a",
        ".items.a",
        ".[0]",
        ".none[]",
        ".title[]",
        ".n|length|.a",
        ".items|map(.id|keys)",
        ".items[]|select(.id|contains(\"x\"))",
        ".items[].tags[0].x",
    ] {
        assert_eq!(by_plan(filter, BODY.as_bytes()), None, "{filter}");
    }
}

#[test]
fn a_plan_is_stopped_at_its_limits() {
    let body = format!("[{}1]", "1,".repeat(5000));
    let index = scan(body.as_bytes()).unwrap();
    let source = body.as_bytes();
    let view = View::new(&source, &index);
    let lines = syntax::Lines::default();
    let plan = |filter| Plan::of(&syntax::program(filter, &lines).unwrap()).unwrap();
    let kind = |filter, limits: Limits| match run(
        &plan(filter),
        &view,
        &limits,
        &Deadline::after(limits.wall),
    ) {
        Err(FilterFailure::Limit { kind, .. }) => Some(kind),
        _ => None,
    };
    assert_eq!(kind(".[]", Limits { outputs: 100, ..Limits::default() }), Some(LimitKind::Outputs));
    assert_eq!(
        kind("[.[],.[]]", Limits { output_bytes: 100, outputs: 10, ..Limits::default() }),
        Some(LimitKind::Output)
    );
    assert_eq!(
        kind(".", Limits { output_bytes: 100, outputs: 10, ..Limits::default() }),
        Some(LimitKind::Output)
    );
    assert_eq!(
        kind(".[]|select(. == 2)", Limits { wall: Duration::ZERO, ..Limits::default() }),
        Some(LimitKind::Time)
    );
}

fn document() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c", "key with \\\" quote", "\\u0061b"]);
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        (-3_i64..3).prop_map(|number| number.to_string()),
        Just("1.50".to_owned()),
        Just("-0".to_owned()),
        Just("1E2".to_owned()),
        prop::sample::select(vec![
            "\"a\"",
            "\"b\\n\"",
            "\"\\u00e9\\/\"",
            "\"\"",
            "\"x\\ud83d\\ude00y\""
        ])
        .prop_map(ToOwned::to_owned),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        let name = name.clone();
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6)
                .prop_map(|items| format!("[ {} ]", items.join(" , "))),
            prop::collection::btree_map(name, inner, 0..4).prop_map(|members| {
                let members: Vec<_> =
                    members.iter().map(|(name, value)| format!("\"{name}\" :{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

fn path_filter() -> impl Strategy<Value = String> {
    let step = prop::sample::select(vec![
        ".a",
        ".b",
        ".c?",
        ".[0]",
        ".[-1]",
        ".[1:]",
        ".[:2]?",
        ".[]",
        ".[]?",
        "length",
        "keys",
        "map(.a)",
        "map({a, b: .b})",
        "select(.a)",
        "select(.b == 1)",
        "select(.a != \"a\")",
        "select(. > 0)",
        "select(.a|not)",
        "[.[]?]",
        "{a}",
        ".a, .b",
        ".",
        "select(.a == null or .b <= 1.5)",
        "map(select(. == \"a\"))",
        ".[\"key with \\\" quote\"]",
        "select(. < \"b\")",
        "(.a, .)",
    ]);
    prop::collection::vec(step, 1..5).prop_map(|steps| steps.join(" | "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn plans_and_the_engine_agree_on_every_document(body in document(), filter in path_filter()) {
        if let Some(outputs) = by_plan(&filter, body.as_bytes()) {
            prop_assert_eq!(text(Some(outputs)), text(by_engine(&filter, body.as_bytes())), "{} on {}", filter, body);
        }
    }
}
