//! `raincheck.toml` with every key, as its JSON Schema describes it.

use std::fmt::Write as _;

use anyhow::Context as _;
use serde_json::{Map, Value};

use super::tools::kind;

/// Writes a file in which every key stands commented, with its default where it has one.
pub(super) fn file(schema: &str) -> anyhow::Result<String> {
    let schema: Value = serde_json::from_str(schema)?;
    let sections = schema.get("properties").and_then(Value::as_object).context("no sections")?;
    let mut text = String::from("```toml\n");
    for (name, section) in sections {
        let about = section["description"].as_str().unwrap_or_default();
        let _ = writeln!(text, "# {about}");
        match (section["properties"].as_object(), section["additionalProperties"].as_object()) {
            (Some(keys), _) => {
                let _ = writeln!(text, "[{name}]");
                write(&mut text, keys);
            }
            (None, Some(each)) => match each.get("properties").and_then(Value::as_object) {
                Some(keys) => {
                    let _ = writeln!(text, "[{name}.NAME]");
                    write(&mut text, keys);
                }
                None => {
                    let _ = writeln!(
                        text,
                        "[{name}]\n#NAME = …  # {}",
                        kind(&Value::from(each.clone()))
                    );
                }
            },
            (None, None) => {}
        }
        text.push('\n');
    }
    Ok(format!("{}\n```\n", text.trim_end()))
}

fn write(text: &mut String, keys: &Map<String, Value>) {
    for (name, key) in keys {
        let about = key["description"].as_str().unwrap_or_default();
        let (about, default) = match about.rsplit_once(" (default ") {
            Some((about, default)) => (about, default.trim_end_matches([')', '.'])),
            None => (about, "…"),
        };
        let value =
            match default.parse::<f64>().is_ok() || ["true", "false", "…"].contains(&default) {
                true => default.to_owned(),
                false => format!("\"{default}\""),
            };
        let _ = writeln!(
            text,
            "#{name} = {value}  # {} [{}]",
            about.trim_end_matches('.'),
            plain(&kind(key))
        );
    }
}

/// Names a type in a comment, where a list of every kind of failure would be too long.
fn plain(kind: &str) -> String {
    match kind.len() > 60 {
        true => "list of codes, see the errors".to_owned(),
        false => kind.replace('`', ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_stands_as_the_value() {
        let schema = r#"{"properties":{"a":{"description":"An a.","additionalProperties":false,"properties":{
            "n":{"description":"How many (default 5).","type":"integer","minimum":1.0},
            "w":{"description":"A word (default on).","type":"string"},
            "x":{"description":"Free.","type":"string"}}}}}"#;
        let text = file(schema).expect("a schema");
        for line in [
            "[a]",
            "#n = 5  # How many [integer, at least 1]",
            "#w = \"on\"  # A word [string]",
            "#x = …  # Free [string]",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is not in {text}");
        }
    }
}
