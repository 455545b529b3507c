//! The public API of the crates that embedders use, as a list of declarations: what changed for them is a
//! difference in one file.
//!
//! It is read from the sources, which `rustfmt` has laid out, and not from the compiler: the stable tool
//! chain has no machine-readable form of it. That what says `pub` can be reached is held by the lint
//! `unreachable_pub`.

use std::fmt::Write as _;

use crate::repository::{File, Repository};

/// Where the list is.
pub(crate) const PATH: &str = "docs/reference/rust-api.txt";

/// The crates that embedders use.
const CRATES: &[&str] = &["core", "runtime", "mcp", "raincheck"];

/// Lists what is public.
pub(crate) fn listing(repository: &Repository) -> String {
    let mut text = String::from(
        "What embedders can name, from the sources. Written by `cargo xtask api`; a change here is a change for them.\n",
    );
    for name in CRATES {
        let folder = format!("crates/{name}/src/");
        for file in repository.files.iter().filter(|file| file.path.starts_with(&folder)) {
            let found = declarations(source(file));
            if !found.is_empty() {
                let _ = writeln!(text, "\n{}", file.path);
                for line in found {
                    let _ = writeln!(text, "  {line}");
                }
            }
        }
    }
    text
}

/// Returns the part of a file that is not about tests.
fn source(file: &File) -> &str {
    if file.is_test() || !file.path.ends_with(".rs") {
        return "";
    }
    file.text.strip_suffix(file.tests()).unwrap_or(&file.text)
}

/// What the lines stand in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    Enum(usize),
    Trait(usize),
}

fn declarations(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut inside, mut block) = (Inside::Nothing, None);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        let word = line.trim_start();
        if word.is_empty() || word.starts_with("//") || word.starts_with("#[") {
            continue;
        }
        if line.starts_with("impl") {
            block = Some(head(line));
        } else if line == "}" {
            block = None;
        }
        match inside {
            Inside::Enum(outer) | Inside::Trait(outer)
                if indent == outer && word.starts_with('}') =>
            {
                inside = Inside::Nothing;
                continue;
            }
            Inside::Enum(outer) if indent == outer + 4 && word.starts_with(char::is_alphabetic) => {
                found.push(format!("    {}", head(word).trim_end_matches(',')));
                continue;
            }
            Inside::Trait(outer) if indent == outer + 4 && is_item(word) => {
                let whole = whole(word, &mut lines);
                found.push(format!("    {}", head(&whole)));
                continue;
            }
            Inside::Nothing | Inside::Enum(_) | Inside::Trait(_) => {}
        }
        let Some(item) = word.strip_prefix("pub ") else { continue };
        let whole = whole(item, &mut lines);
        if let Some(block) = block.take_if(|_| indent > 0) {
            found.push(block);
        }
        let deeper = if indent > 0 { "    " } else { "" };
        found.push(format!("{deeper}{}", head(&whole)));
        let opens = whole.ends_with('{');
        if opens && item.starts_with("enum ") {
            inside = Inside::Enum(indent);
        } else if opens && (item.starts_with("trait ") || item.starts_with("unsafe trait ")) {
            inside = Inside::Trait(indent);
        }
    }
    found
}

fn is_item(word: &str) -> bool {
    ["fn ", "async fn ", "type ", "const "].iter().any(|start| word.starts_with(start))
}

/// Joins the lines of a declaration, up to where its body or its end is.
fn whole<'a>(first: &str, lines: &mut impl Iterator<Item = &'a str>) -> String {
    let mut whole = first.to_owned();
    while !is_whole(&whole) {
        let Some(line) = lines.next() else { break };
        let line = line.trim();
        let glue =
            if whole.ends_with(['(', '<', '[', '{']) || line.starts_with([')', '>', '.', '}']) {
                ""
            } else {
                " "
            };
        whole.push_str(glue);
        whole.push_str(line);
    }
    whole
}

fn is_whole(text: &str) -> bool {
    let count = |open: char, close: char| text.matches(open).count() == text.matches(close).count();
    if text.starts_with("use ") {
        return text.ends_with(';');
    }
    count('(', ')') && text.ends_with(['{', ';', ',', '}'])
}

/// Cuts a declaration before its body or its value.
fn head(text: &str) -> String {
    let text = text.split(" = ").next().unwrap_or(text).trim_end_matches(" {}");
    text.trim_end_matches(['{', ';', ',', ' ']).replace(",)", ")")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_public_is_listed_and_nothing_else() {
        let text = "\
pub use self::a::{
    A, B,
};
struct Hidden;
/// Words.
pub struct Shown<T> {
    /// A field.
    pub field: Vec<T>,
    hidden: u8,
}
pub(crate) fn inner() {}
impl<T> Shown<T> {
    pub fn long(
        self,
        other: &str,
    ) -> Self {
        other
    }
    fn private(&self) {}
}
pub enum Kind {
    One,
    Two { a: u8 },
    Three(u8),
}
pub trait Does {
    fn it(&self) -> u8 {
        7
    }
}
pub const N: u8 = 7;
";
        assert_eq!(
            declarations(text),
            [
                "use self::a::{A, B,}",
                "struct Shown<T>",
                "    field: Vec<T>",
                "impl<T> Shown<T>",
                "    fn long(self, other: &str) -> Self",
                "enum Kind",
                "    One",
                "    Two { a: u8 }",
                "    Three(u8)",
                "trait Does",
                "    fn it(&self) -> u8",
                "const N: u8",
            ]
        );
    }
}
