//! Links between pages lead somewhere.

use super::Fault;
use crate::repository::{File, Repository};

pub(super) fn check(repository: &Repository) -> Vec<Fault> {
    let mut faults = Vec::new();
    for page in repository.ending(".md") {
        for target in links(&page.text) {
            let path = target.split('#').next().unwrap_or_default();
            let folder = page.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            if !path.is_empty() && !repository.root.join(folder).join(path).exists() {
                faults
                    .push(Fault::new(&page.path, format!("the link to `{target}` leads nowhere")));
            }
        }
        faults.extend(check_anchors(repository, page));
        faults.extend(check_paths(repository, page));
    }
    faults
}

/// Finds paths in backticks that name a file or folder of the repository which is not there.
fn check_paths(repository: &Repository, page: &File) -> Vec<Fault> {
    let is_ours = |path: &&str| {
        ["crates/", "bins/", "docs/", "tests/"].iter().any(|top| path.starts_with(top))
            && !path.contains(char::is_whitespace)
    };
    let named = page.text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    named
        .filter(is_ours)
        .filter(|path| !repository.root.join(path).exists())
        .map(|path| Fault::new(&page.path, format!("`{path}` does not exist")))
        .collect()
}

/// Finds anchors within the repository's pages that no heading makes.
fn check_anchors(repository: &Repository, page: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    for target in links(&page.text) {
        let Some((path, anchor)) = target.split_once('#') else { continue };
        let text = if path.is_empty() {
            Some(&page.text)
        } else {
            let name = path.rsplit('/').next().unwrap_or(path);
            repository.ending(name).map(|file| &file.text).next()
        };
        let anchors = text.map(|text| headings(text)).unwrap_or_default();
        if !anchors.iter().any(|one| one == anchor) {
            faults.push(Fault::new(&page.path, format!("no heading answers to `{target}`")));
        }
    }
    faults
}

/// Returns the targets within the repository.
fn links(text: &str) -> Vec<&str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://") && !target.contains(char::is_whitespace))
        .collect()
}

/// Returns the anchors that a page's headings make.
fn headings(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_the_world_are_left_alone() {
        assert_eq!(links("[a](b.md#c) [d](https://e.f/g) [h](i j)"), ["b.md#c"]);
    }

    #[test]
    fn a_heading_makes_an_anchor() {
        assert_eq!(headings("# One: two\n## `raincheck serve`\n"), ["one-two", "raincheck-serve"]);
    }
}
