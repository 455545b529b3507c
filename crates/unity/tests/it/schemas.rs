//! The arguments of a tool as the server lists them, and as the package in the editor takes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use raincheck_unity::{Settings, tools};
use serde_json::Value;

/// The types and the words that an argument may have.
#[derive(Debug, Default, PartialEq, Eq)]
struct Argument {
    types: BTreeSet<String>,
    words: BTreeSet<String>,
}

/// The arguments of a tool by their names, and those that it needs.
#[derive(Debug, Default)]
struct Arguments {
    all: BTreeMap<String, Argument>,
    needed: BTreeSet<String>,
}

/// The tools that the server answers itself: what the package has by their names is for others.
const OF_THE_SERVER: [&str; 2] = ["get_editor_state", "list_unity_commands"];

#[test]
fn the_package_takes_the_arguments_that_the_server_lists() {
    // [UNITY-1]
    let package = package();
    let mut n_compared = 0;
    for tool in tools(&Settings::default()) {
        let name = tool.spec.name.as_str();
        let Some(theirs) = package.get(name).filter(|_| !OF_THE_SERVER.contains(&name)) else {
            continue;
        };
        n_compared += 1;
        let ours = listed(&tool.spec.input_schema.read().expect("a schema"));
        assert_eq!(ours.all, theirs.all, "the arguments of {name}");
        assert!(ours.needed.is_superset(&theirs.needed), "what {name} needs");
    }
    assert_eq!(n_compared, 9, "tools that both have: {:?}", package.keys());
}

fn listed(schema: &Value) -> Arguments {
    let words = |value: &Value| -> BTreeSet<String> {
        let one = value.as_str().into_iter();
        let some = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        one.chain(some).map(str::to_owned).collect()
    };
    let all = schema["properties"].as_object().expect("properties");
    let argument = |(name, of): (&String, &Value)| {
        (name.clone(), Argument { types: words(&of["type"]), words: words(&of["enum"]) })
    };
    Arguments { all: all.iter().map(argument).collect(), needed: words(&schema["required"]) }
}

/// Reads the tools out of the sources of the package.
fn package() -> BTreeMap<String, Arguments> {
    let editor = Path::new(env!("CARGO_MANIFEST_DIR")).join("unity-package").join("Editor");
    let mut tools = BTreeMap::new();
    for folder in [editor.join("Unity").join("Tools"), editor.join("TestRunner")] {
        for file in fs::read_dir(folder).expect("a folder") {
            let path = file.expect("a file").path();
            if path.extension().is_some_and(|ending| ending == "cs") {
                let source = fs::read_to_string(&path).expect("a source");
                tools.extend(source.split("Name = \"").skip(1).filter_map(tool));
            }
        }
    }
    tools
}

/// Reads what stands behind the name of a tool.
fn tool(source: &str) -> Option<(String, Arguments)> {
    let (name, rest) = source.split_once('"')?;
    let (_, schema) = rest.split_once("Schema = Arguments.Schema(")?;
    let (needed, rest) = schema.split_once("new JsonObject")?;
    let end = rest.find("\n        };").unwrap_or(rest.len());
    let mut all = BTreeMap::new();
    for part in rest.get(..end)?.split("{ \"").skip(1) {
        let (name, form) = part.split_once('"')?;
        let form = form.trim_start_matches([',', ' ']);
        // The types of an argument that has several stand in an object of their own.
        let is_argument = form.starts_with("Arguments.") || form.starts_with("new JsonObject");
        if is_argument && name != "type" {
            all.insert(name.to_owned(), argument(form, rest));
        }
    }
    Some((name.to_owned(), Arguments { all, needed: quoted(needed) }))
}

fn argument(form: &str, rest: &str) -> Argument {
    let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let until = |text: &str, end: char| quoted(text.split(end).next().unwrap_or_default());
    if let Some(form) = form.strip_prefix("Arguments.OneOf(") {
        Argument { types: set(&["string"]), words: until(form, ')') }
    } else if let Some(form) = form.strip_prefix("Arguments.Type(") {
        Argument { types: until(form, ')'), ..Argument::default() }
    } else if form.starts_with("Arguments.IdType()") {
        Argument { types: set(&["string", "integer"]), ..Argument::default() }
    } else {
        let types = rest.split("\"type\", new[] {").nth(1).unwrap_or_default();
        Argument { types: until(types, '}'), ..Argument::default() }
    }
}

/// The words between quotes.
fn quoted(text: &str) -> BTreeSet<String> {
    text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}
