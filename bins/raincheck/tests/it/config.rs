//! What `config check` accepts, `serve` starts with.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use crate::{code, err, folder, out, raincheck, served};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"it","version":"0"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;

/// Which end of what a key allows is written.
#[derive(Clone, Copy, Debug)]
enum End {
    Least,
    Most,
}

/// Writes a value that the schema of a key allows; `None` where one is written by hand.
fn value(schema: &Value, end: End) -> Option<String> {
    if let Some(words) = schema["enum"].as_array() {
        let word = match end {
            End::Least => words.first(),
            End::Most => words.last(),
        };
        return word.map(Value::to_string);
    }
    match (schema["type"].as_str()?, end) {
        ("integer" | "number", End::Least) => Some(schema["minimum"].to_string()),
        ("integer" | "number", End::Most) => Some(schema["maximum"].to_string()),
        ("boolean", End::Least) => Some("false".to_owned()),
        ("boolean", End::Most) => Some("true".to_owned()),
        _ => None,
    }
}

/// Writes every key of a table, each with a value at one end of what it allows.
fn table(text: &mut String, name: &str, schema: &Value, by_hand: &[(&str, &str)], end: End) {
    writeln!(text, "[{name}]").expect("a string");
    for (key, schema) in schema["properties"].as_object().expect("keys") {
        let given = by_hand.iter().find(|(known, _)| known == key).map(|(_, it)| (*it).to_owned());
        let value = given.or_else(|| value(schema, end));
        let value = value.unwrap_or_else(|| panic!("[{name}] {key} needs a value here: {schema}"));
        writeln!(text, "{key} = {value}").expect("a string");
    }
}

#[test]
fn every_key_at_either_end_of_what_it_allows_is_accepted_by_check_and_by_serve() {
    let schema = raincheck(folder("").path(), &["config", "schema"]);
    let schema: Value = serde_json::from_str(&out(&schema)).expect("JSON");
    let sections = &schema["properties"];
    let tool = [
        ("title", r#""T""#),
        ("description", r#""D""#),
        ("command", r#"["true"]"#),
        ("input_schema", r#"{ type = "object" }"#),
        ("lane", r#""own""#),
        ("retry_on", r#"["worker_lost", "tool_failed"]"#),
        ("env", r#"{ A = "b" }"#),
        ("sensitive", r#"["/token"]"#),
    ];
    let defaults: Vec<_> = tool.iter().copied().filter(|(key, _)| *key != "timeout_s").collect();
    for end in [End::Least, End::Most] {
        let mut text = String::new();
        table(&mut text, "store", &sections["store"], &[("path", r#""own.db""#)], end);
        table(&mut text, "lanes.own", &sections["lanes"]["additionalProperties"], &[], end);
        table(&mut text, "defaults", &sections["defaults"], &defaults, end);
        table(&mut text, "tools.a", &sections["tools"]["additionalProperties"], &tool, end);
        table(&mut text, "browser", &sections["browser"], &[("files_dir", r#""files""#)], end);
        table(&mut text, "cache", &sections["cache"], &[("warm", r#"[{ tool = "b" }]"#)], end);
        let warmed = "[tools.b]\ncommand = [\"true\"]\nread_only = true";
        writeln!(text, "{warmed}").expect("a string");
        let clients = &sections["clients"]["additionalProperties"]["anyOf"];
        let client = value(&clients[0], end).expect("a number");
        writeln!(text, "[clients]\nit = {client}").expect("a string");
        table(&mut text, "clients.other", &clients[1], &[], end);
        // A tool may not ask for more than its lane.
        let folder = folder(&text);
        let config = ["--config", "raincheck.toml"];
        let checked = raincheck(folder.path(), &["config", "check", config[0], config[1]]);
        assert_eq!(code(&checked), Some(0), "{end:?}\n{text}\n{}", err(&checked));
        let served = served(folder.path(), &["serve", config[0], config[1]], &[HELLO, LIST]);
        assert_eq!(code(&served), Some(0), "{end:?}\n{text}\n{}", err(&served));
        assert!(out(&served).contains(r#""name":"a""#), "{}", out(&served));
    }
}

#[test]
fn what_serve_refuses_of_http_check_refuses_too() {
    let leave = "[http]\nlisten = \"0.0.0.0:0\"\n";
    let file =
        "[http]\nlisten = \"127.0.0.1:0\"\n[http.tokens]\nalice = { file = \"alice.token\" }\n";
    let variable =
        "[http]\nlisten = \"127.0.0.1:0\"\n[http.tokens]\nci = { env = \"NOWHERE_TOKEN\" }\n";
    let lone = "[http]\nissuer = \"https://login.example.org\"\n";
    for (text, part) in [
        (leave, "--allow-remote"),
        (file, "alice"),
        (variable, "NOWHERE_TOKEN"),
        (lone, "http.issuer"),
    ] {
        let folder = folder(text);
        for subcommand in [&["config", "check"][..], &["serve"]] {
            let arguments = [subcommand, &["--config", "raincheck.toml"]].concat();
            let told = raincheck(folder.path(), &arguments);
            assert_ne!(code(&told), Some(0), "{arguments:?} accepts {text}");
            assert!(err(&told).contains(part), "{}", err(&told));
        }
    }
}

#[test]
fn what_serve_refuses_check_refuses_in_the_same_words_and_no_credential_is_shown() {
    for text in [
        "[store]\nurl = \"postgres://me:secret@host/db\"\n",
        "[store]\npath = \"a.db\"\nurl = \"postgres://me:secret@host/db\"\n",
        "[store]\npath = \"postgres://me:secret@host/db\"\n",
        "[store]\npath = 'postgres://me:secret@host/db?sslpassword=secret'\n",
        "[store]\npath = \"postgres://me:secret@host/db\n",
        "[gateway]\nurl = 3\n",
        "[lanes.a]\nmax_runtime_s = 1\n[tools.a]\ncommand = [\"a\"]\nlane = \"a\"\ntimeout_s = 2\n",
    ] {
        let folder = folder(text);
        let mut said = Vec::new();
        for subcommand in [&["config", "check"][..], &["serve"]] {
            let arguments = [subcommand, &["--config", "raincheck.toml"]].concat();
            let told = raincheck(folder.path(), &arguments);
            assert_ne!(code(&told), Some(0), "{arguments:?} accepts {text}");
            let words = out(&told) + &err(&told);
            assert!(!words.contains("secret"), "{words}");
            said.push(words.split("  next: ").next().unwrap_or_default().to_owned());
        }
        assert_eq!(said[0], said[1]);
    }
    let by_flag = ["--store", "postgres://me:secret@host/db"];
    for subcommand in
        [&["config", "check", "--config", "raincheck.toml"][..], &["serve"], &["doctor"]]
    {
        let folder = folder("");
        let told = raincheck(folder.path(), &[subcommand, &by_flag].concat());
        assert_ne!(code(&told), Some(0), "{subcommand:?}");
        assert!(!(out(&told) + &err(&told)).contains("secret"), "{subcommand:?}");
    }
    let folder = folder("");
    fs::write(folder.path().join("raincheck.toml"), "").expect("written");
    let mut help = crate::command(folder.path(), &["--help"]);
    help.env("RAINCHECK_STORE", "postgres://me:secret@host/db");
    assert!(!out(&help.output().expect("it runs")).contains("secret"));
}

#[test]
fn check_warns_of_what_common_clients_refuse_and_takes_it() {
    // Cases mcp-tool-names-that-clients-refuse and mcp-schema-with-choice-at-the-top.
    let text = r#"
[tools."graph.list"]
description = "graph"
command = ["true"]
[tools.pick]
description = "pick"
command = ["cat"]
input_schema = { type = "object", properties = { a = { type = "string" }, b = { type = "string" } }, oneOf = [ { required = ["a"] }, { required = ["b"] } ] }
"#;
    let folder = folder(text);
    let checked = raincheck(folder.path(), &["config", "check", "raincheck.toml"]);
    assert_eq!(code(&checked), Some(0), "{}", err(&checked));
    let said = out(&checked);
    for part in
        ["warning: tool `graph.list`", "a dot", "warning: tool `pick`", "`oneOf` at the top"]
    {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}
