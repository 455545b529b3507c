//! The parts of `docs/` that are written from tables in the code.
//!
//! A part stands between `<!-- generated:NAME -->` and `<!-- /generated -->`; what is between them is
//! replaced, the rest of the page is written by hand.

mod errors;
mod lifecycle;

use std::fs;

use anyhow::{Context as _, bail};

use crate::repository::Repository;

const OPEN: &str = "<!-- generated:";
const OPEN_END: &str = " -->\n";
const CLOSE: &str = "<!-- /generated -->";

/// Writes every generated part anew and returns the pages that changed.
pub(crate) fn write(repository: &Repository) -> anyhow::Result<Vec<String>> {
    let pages = outdated(repository)?;
    for (path, text) in &pages {
        fs::write(repository.root.join(path), text).with_context(|| format!("writing `{path}`"))?;
    }
    Ok(pages.into_iter().map(|(path, _)| path).collect())
}

/// Returns the pages whose generated parts are not what the tables say, with their right text.
pub(crate) fn outdated(repository: &Repository) -> anyhow::Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    for page in repository.ending(".md").filter(|file| file.path.starts_with("docs/")) {
        let text = render(&page.text).with_context(|| page.path.clone())?;
        if text != page.text {
            pages.push((page.path.clone(), text));
        }
    }
    Ok(pages)
}

/// Replaces the generated parts of one page.
fn render(page: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(OPEN) {
        let (name, after) = after.split_once(OPEN_END).context("a marker without ` -->`")?;
        let (_, after) = after.split_once(CLOSE).with_context(|| format!("`{name}` has no end"))?;
        text += before;
        text += &format!("{OPEN}{name}{OPEN_END}\n{}\n{CLOSE}", part(name)?);
        rest = after;
    }
    Ok(text + rest)
}

/// Returns the text of one part.
fn part(name: &str) -> anyhow::Result<String> {
    Ok(match name {
        "state-diagram" => lifecycle::diagram(),
        "transitions" => lifecycle::transitions(),
        "deadlines" => lifecycle::deadlines(),
        "errors" => errors::table(),
        _ => bail!("nothing generates `{name}`; the parts are named in crates/xtask/src/docs.rs"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_replaced_and_the_rest_of_the_page_stays() {
        let page = "before\n<!-- generated:errors -->\nold\n<!-- /generated -->\nafter\n";
        let text = render(page).expect("a page");
        assert!(text.starts_with("before\n<!-- generated:errors -->\n\n| kind |"), "{text}");
        assert!(text.ends_with("|\n\n<!-- /generated -->\nafter\n"), "{text}");
        assert_eq!(render(&text).expect("a page"), text);
    }

    #[test]
    fn a_part_that_nothing_generates_is_a_fault() {
        let fault = render("<!-- generated:moon -->\n<!-- /generated -->").expect_err("unknown");
        assert!(fault.to_string().contains("`moon`"), "{fault}");
    }
}
