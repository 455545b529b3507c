//! The parts of `docs/` that are written from tables in the code, and from what the binaries say.
//!
//! A part stands between `<!-- generated:NAME -->` and `<!-- /generated -->`; what is between them is
//! replaced, the rest of the page is written by hand.

mod binaries;
mod configuration;
mod errors;
mod lifecycle;
mod tools;

use std::fs;

use anyhow::{Context as _, bail};

use crate::repository::Repository;

pub(crate) use binaries::Binaries;

const OPEN: &str = "<!-- generated:";
const OPEN_END: &str = " -->\n";
const CLOSE: &str = "<!-- /generated -->";

/// Writes every generated part anew and returns the pages that changed.
pub(crate) fn write(repository: &Repository) -> anyhow::Result<Vec<String>> {
    let pages = outdated(repository, Some(&Binaries::beside_this_program()?))?;
    for (path, text) in &pages {
        fs::write(repository.root.join(path), text).with_context(|| format!("writing `{path}`"))?;
    }
    Ok(pages.into_iter().map(|(path, _)| path).collect())
}

/// Returns the pages whose generated parts are not what the tables say, with their right text.
/// Without binaries the parts that are read from them stay as they are.
pub(crate) fn outdated(
    repository: &Repository,
    binaries: Option<&Binaries>,
) -> anyhow::Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    for page in repository.ending(".md").filter(|file| file.path.starts_with("docs/")) {
        let text = render(&page.text, binaries).with_context(|| page.path.clone())?;
        if text != page.text {
            pages.push((page.path.clone(), text));
        }
    }
    Ok(pages)
}

/// Replaces the generated parts of one page.
fn render(page: &str, binaries: Option<&Binaries>) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(OPEN) {
        let (name, after) = after.split_once(OPEN_END).context("a marker without ` -->`")?;
        let (old, after) =
            after.split_once(CLOSE).with_context(|| format!("`{name}` has no end"))?;
        text += before;
        text += &match (binaries::owns(name), binaries) {
            (true, None) => format!("{OPEN}{name}{OPEN_END}{old}{CLOSE}"),
            (true, Some(binaries)) => generated(name, &binaries::part(binaries, name)?),
            (false, _) => generated(name, &part(name)?),
        };
        rest = after;
    }
    Ok(text + rest)
}

fn generated(name: &str, text: &str) -> String {
    format!("{OPEN}{name}{OPEN_END}\n{text}\n{CLOSE}")
}

/// Returns the text of one part.
fn part(name: &str) -> anyhow::Result<String> {
    Ok(match name {
        "state-diagram" => lifecycle::diagram(),
        "transitions" => lifecycle::transitions(),
        "deadlines" => lifecycle::deadlines(),
        "errors" => errors::table(),
        "error-codes" => errors::codes(),
        _ => bail!("nothing generates `{name}`; the parts are named in crates/xtask/src/docs.rs"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_replaced_and_the_rest_of_the_page_stays() {
        let page = "before\n<!-- generated:errors -->\nold\n<!-- /generated -->\nafter\n";
        let text = render(page, None).expect("a page");
        assert!(text.starts_with("before\n<!-- generated:errors -->\n\n| kind |"), "{text}");
        assert!(text.ends_with("|\n\n<!-- /generated -->\nafter\n"), "{text}");
        assert_eq!(render(&text, None).expect("a page"), text);
    }

    #[test]
    fn a_part_that_nothing_generates_is_a_fault() {
        let fault =
            render("<!-- generated:moon -->\n<!-- /generated -->", None).expect_err("unknown");
        assert!(fault.to_string().contains("`moon`"), "{fault}");
    }

    #[test]
    fn the_reference_says_what_the_binaries_say() {
        let repository = Repository::read().expect("the repository can be read");
        let binaries = Binaries::beside_this_program().expect("the binaries of this build");
        let pages = outdated(&repository, Some(&binaries)).expect("the parts can be written");
        let names: Vec<&str> = pages.iter().map(|(path, _)| path.as_str()).collect();
        assert!(names.is_empty(), "out of date: {names:?}; run `cargo xtask docs`");
    }
}
