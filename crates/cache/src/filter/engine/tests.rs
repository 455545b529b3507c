//! What filters yield; the kinds in which the engine below differs from jq.

use super::*;
use crate::filter::value::{read, write};
use bytes::Bytes;

/// Runs a filter; an error is the last line, in angle brackets.
pub(crate) fn outputs(filter: &str, input: &str) -> String {
    let lines = syntax::Lines::default();
    let term = match syntax::program(filter, &lines) {
        Ok(term) => term,
        Err(problem) => return format!("<syntax: {} at {}>", problem.hint, problem.at),
    };
    let program = match compile(filter, term) {
        Ok(program) => program,
        Err(problem) => return format!("<compile: {} at {}>", problem.hint, problem.at),
    };
    let input = Value(read::json(&Bytes::copy_from_slice(input.as_bytes())).unwrap());
    let mut out = Vec::new();
    program.run(input, |output| {
        let mut line = Vec::new();
        match output {
            Ok(value) => {
                write::json(&value.0, &mut line, 1 << 20, 512).unwrap();
                out.push(String::from_utf8(line).unwrap());
            }
            Err(error) => out.push(format!("<{error}>")),
        }
        ControlFlow::Continue(())
    });
    out.join(" ")
}

#[test]
fn the_definitions_compile() {
    let text = include_str!("definitions.jq");
    assert_eq!(syntax::definitions(text).err(), None);
    assert_eq!(outputs(".", "1"), "1");
}

/// Filters on `1`, and what they yield: where the engine below differs from jq, or its definitions do.
const TABLE: &[(&str, &str)] = &[
    // Updates of null and beyond the end.
    ("null | .a.b = 1", r#"{"a":{"b":1}}"#),
    ("null | .[2] = 1", "[null,null,1]"),
    ("[1] | .[3] = 4", "[1,null,null,4]"),
    ("null | setpath([0,\"a\"]; 1)", r#"[{"a":1}]"#),
    ("[] | .[-1] = 1", "<\"Out of bounds negative array index\">"),
    ("[1,2,3,4] | del(.[1,2])", "[1,4]"),
    ("{a:1,b:2,c:3} | del(.a)", r#"{"b":2,"c":3}"#),
    ("[1,5,3,0,7] | (.[] | select(. >= 2)) |= empty", "[1,0]"),
    ("{a:1} | (.a, .b) |= (1, 2)", r#"{"a":1,"b":1}"#),
    ("[1,2,3] | .[1:] = [9]", "[1,9]"),
    ("[1,2,3,4] | pick(.[2], .[0])", "[1,null,3]"),
    // Paths.
    ("[[1]] | getpath([0,0])", "1"),
    ("{a:[1]} | [paths]", r#"[["a"],["a",0]]"#),
    ("{a:[1,null]} | [leaf_paths]", r#"[["a",0]]"#),
    ("[1,[2]] | tostream", "[[0],1] [[1,0],2] [[1,0]] [[1]]"),
    ("fromstream([1,[2]] | tostream)", "[1,[2]]"),
    ("[1|truncate_stream([[0],1],[[1,0],2],[[1,0]],[[1]])]", "[[[0],2],[[0]]]"),
    // Numbers.
    (
        "1/-1, 3.0, 1e1000, [1,2,3][1.7], 5 % -2, -5 % 3, 1e17, 0.1+0.2",
        "-1 3.0 1e1000 2 1 -2 1e17 0.30000000000000004",
    ),
    ("1 / 0", "<\"number (1) and number (0) cannot be divided because the divisor is zero\">"),
    ("nan < nan, ([nan] | sort), (infinite|floor)", "true [null] 1.7976931348623157e+308"),
    ("12345678901234567890123 | ., . + 1", "12345678901234567890123 12345678901234568000000"),
    ("\"12\" | tonumber, (\"0x1\"|tonumber? // \"no\")", "12 \"no\""),
    ("\"ab\" * 3, \"ab\" * 0, ([1,2] | .[0:1.2])", "\"ababab\" \"\" [1,2]"),
    // Strings.
    ("[1,null,\"a\",true] | join(\"-\")", "\"1--a-true\""),
    (
        "\"foobarfoo\" | trimstr(\"foo\"), ltrimstr(1), splits(\"o+\")",
        "\"bar\" \"foobarfoo\" \"f\" \"barf\" \"\"",
    ),
    (
        "\"a,b\" | sub(\"(?<x>[a-z])\"; \"<\\(.x)>\"), gsub(\"(?<x>[a-z])\"; .x + .x)",
        "\"<a>,b\" \"aa,bb\"",
    ),
    ("\"test\" | [match(\"(t)(x)?\"; \"g\") | .captures[1].offset]", "[-1,-1]"),
    (
        "\"äTEST\" | test([\"t.s\", \"i\"]), [scan(\"[A-Z]\")], (match(\"T\").offset)",
        "true [\"T\",\"E\",\"S\",\"T\"] 1",
    ),
    (
        "\"x\" | test(\"(?=x)\")",
        "<\"`(?=x)` is not a regular expression that is known here: look-around, including look-ahead and look-behind, is not supported\">",
    ),
    ("[1,\"a\\\"b\",null,true] | @csv, @tsv", r#""1,\"a\"\"b\",,true" "1\ta\"b\t\ttrue""#),
    ("\"<&'\\\">\" | @html", r#""&lt;&amp;&#39;&quot;&gt;""#),
    (
        "\"it's\" | @sh, @base32, (@base32 | @base32d), @uri",
        r#""'it'\\''s'" "NF2CO4Y=" "it's" "it%27s""#,
    ),
    ("@json \"x\\([1,\"a\"])\"", r#""x[1,\"a\"]""#),
    (
        "[\"aé😀\" | .[1:], length, utf8bytelength, explode, (explode|implode)]",
        "[\"é😀\",3,7,[97,233,128512],\"aé😀\"]",
    ),
    // Bindings.
    (
        "[[3]] | .[] as [$a] ?// [$b] | if $a != null then error(\"err: \\($a)\") else {$a,$b} end",
        r#"{"a":null,"b":3}"#,
    ),
    ("{a:1,b:[2,{c:3}]} | . as {a:$x, b:[$y, {$c}]} | [$x,$y,$c]", "[1,2,3]"),
    ("{k:1} | . as {$k: $z} | [$k,$z]", "[1,1]"),
    ("reduce ([[1,2],[3,4]] | .[]) as [$i,$j] (0; . + $i * $j)", "14"),
    ("[.[]?, 1] | . as [$x] | $x", "1"),
    ("$__loc__", r#"{"file":"<top-level>","line":1}"#),
    ("\n\n$__loc__.line", "3"),
    ("[label $out | 1, 2, break $out, 3]", "[1,2]"),
    ("1 as $x | 2 as $y | [$x,$y,$x+$y] | . as [$a] | $a", "1"),
    (
        "null | {a: 1 | 2, b: -1}, {\"a b\"}, {if: 1}.if, {(\"x\",\"y\"): 1}",
        r#"{"a":2,"b":-1} {"a b":null} 1 {"x":1} {"y":1}"#,
    ),
    ("try error(null) catch ., (.a.b.c)?, ([1]|.[\"a\"]?), \"end\"", "null \"end\""),
    // Tables.
    (
        "[{key:1,value:2},{name:\"n\",value:3},{k:null,v:4}] | from_entries",
        r#"{"1":2,"n":3,"null":4}"#,
    ),
    ("{a:1} | with_entries(.value += 1) | to_entries", r#"[{"key":"a","value":2}]"#),
    (
        "[{id:1},{id:2}] | INDEX(.id), (.[0] | IN({id:1},{id:3})), [IN(.[]; {id:2})]",
        r#"{"1":{"id":1},"2":{"id":2}} true [true]"#,
    ),
    ("[[1,\"x\"]] | JOIN({\"1\":10}; .[0]|tostring)", "[[[1,\"x\"],10]]"),
    (
        "[3,1,2] | [limit(2; .[])], [skip(1; .[])], (try limit(-1; 1) catch .), first, last, nth(1), min, max, add",
        "[3,1] [1,2] \"limit doesn't support negative count\" 3 2 1 1 3 6",
    ),
    (
        "[[1,2],[3]] | transpose, flatten, ([combinations])",
        "[[1,3],[2,null]] [1,2,3] [[1,3],[2,3]]",
    ),
    (
        "{\"a\":[1,{\"b\":2}]} | walk(if type == \"number\" then . + 1 else . end)",
        r#"{"a":[2,{"b":3}]}"#,
    ),
    (
        "[1,2] | contains([1]), inside([1,2,3]), (try contains(1) catch .)",
        "true true \"array ([1,2]) and number (1) cannot have their containment checked\"",
    ),
    (
        "ltrimstr(\"x\"), tojson, ([.] | implode? // \"no\"), (\"1 [2]\" | try fromjson catch \"bad\")",
        "1 \"1\" \"\\u0001\" \"bad\"",
    ),
    (
        "0 | todate, strftime(\"%Y\"), localtime[0], (\"2015-03-05T23:51:47Z\" | fromdate)",
        "\"1970-01-01T00:00:00Z\" \"1970\" 1970 1425599507",
    ),
    ("{} | .a += 1 | .b //= 2 | .c |= 3 | .a -= 3", r#"{"a":-2,"b":2,"c":3}"#),
    (
        "[.. | scalars], isvalid(1)?",
        "<compile: there is no filter `isvalid`: a key is written `.isvalid` at 16>",
    ),
];

#[test]
fn filters_mean_what_they_mean_in_jq() {
    let wrong: Vec<_> = TABLE
        .iter()
        .map(|(filter, wanted)| (filter, wanted, outputs(filter, "1")))
        .filter(|(_, wanted, got)| *wanted != got)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
