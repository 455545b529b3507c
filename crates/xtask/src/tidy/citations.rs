//! Requirements in `docs/spec` against the tests and sources that cite them.
//!
//! A requirement is a list item that begins with its id, `- **[CANCEL-3]** …`; one that is not built
//! yet ends with `(planned)`. A citation is an id in brackets: `[CANCEL-3]`, `[TIME-1, TIME-7]` or
//! `[CANCEL-1..6]`.

use std::collections::{BTreeMap, BTreeSet};

use super::Fault;
use crate::repository::{File, Repository};

const SPEC: &str = "docs/spec/";
const PLANNED: &str = "(planned)";

/// One requirement of the contract.
struct Requirement<'a> {
    place: String,
    id: &'a str,
    is_planned: bool,
}

pub(super) fn check(repository: &Repository) -> Vec<Fault> {
    let pages = repository.ending(".md").filter(|file| file.path.starts_with(SPEC));
    let requirements: Vec<Requirement<'_>> = pages.flat_map(requirements).collect();
    let mut known = BTreeMap::new();
    let mut faults = Vec::new();
    for requirement in &requirements {
        if let Some(first) = known.insert(requirement.id, &requirement.place) {
            let why = format!("[{}] stands at {first} already", requirement.id);
            faults.push(Fault::new(&requirement.place, why));
        }
    }
    let tested: BTreeSet<String> =
        repository.files.iter().flat_map(|file| citations(file.tests())).collect();
    for requirement in requirements.iter().filter(|one| !one.is_planned) {
        if !tested.contains(requirement.id) {
            let why = format!("no test cites [{}]; write one, or mark it planned", requirement.id);
            faults.push(Fault::new(&requirement.place, why));
        }
    }
    faults.extend(unknown(repository, &known));
    faults
}

/// Finds citations of requirements that do not exist.
fn unknown(repository: &Repository, known: &BTreeMap<&str, &String>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let own = file!();
    for file in repository.files.iter().filter(|file| !own.ends_with(&file.path)) {
        for (place, line) in file.text.lines().enumerate() {
            for id in citations(line).filter(|id| !known.contains_key(id.as_str())) {
                let place = format!("{}:{}", file.path, place + 1);
                faults.push(Fault::new(place, format!("[{id}] is no requirement of {SPEC}")));
            }
        }
    }
    faults
}

fn requirements(page: &File) -> Vec<Requirement<'_>> {
    let mut found: Vec<Requirement<'_>> = Vec::new();
    let mut is_open = false;
    for (place, line) in page.text.lines().enumerate() {
        if let Some((id, _)) = line.strip_prefix("- **[").and_then(|rest| rest.split_once("]**")) {
            found.push(Requirement {
                place: format!("{}:{}", page.path, place + 1),
                id,
                is_planned: false,
            });
            is_open = true;
        } else if !line.starts_with("  ") {
            is_open = false;
        }
        if let Some(last) = found.last_mut().filter(|_| is_open) {
            last.is_planned = line.trim_end().ends_with(PLANNED);
        }
    }
    found
}

/// Returns the ids that a text cites.
fn citations(text: &str) -> impl Iterator<Item = String> + '_ {
    let inside = text.split('[').skip(1).filter_map(|rest| rest.split(']').next());
    inside.flat_map(|list| {
        let parts: Option<Vec<Vec<String>>> = list.split(", ").map(ids).collect();
        parts.unwrap_or_default().into_iter().flatten()
    })
}

/// Reads `CANCEL-3` or `CANCEL-1..6`.
fn ids(part: &str) -> Option<Vec<String>> {
    let (group, numbers) = part.split_once('-')?;
    if group.is_empty() || !group.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let (first, last) = numbers.split_once("..").unwrap_or((numbers, numbers));
    let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
    Some((first..=last).map(|number| format!("{group}-{number}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cited(text: &str) -> Vec<String> {
        citations(text).collect()
    }

    #[test]
    fn citations_are_single_listed_or_a_range() {
        assert_eq!(cited("/// Ends it [CANCEL-3]."), ["CANCEL-3"]);
        assert_eq!(cited("[STATE-5, TIME-7] and [ID-1]"), ["STATE-5", "TIME-7", "ID-1"]);
        assert_eq!(cited("[CANCEL-1..3]"), ["CANCEL-1", "CANCEL-2", "CANCEL-3"]);
    }

    #[test]
    fn other_brackets_are_no_citations() {
        assert!(cited("#[test] a[i-1] [UTF-8 text] [see-1] [A-b] [x](y)").is_empty());
    }

    #[test]
    fn a_requirement_is_planned_when_its_last_line_says_so() {
        let text = "- **[AA-1]** One\n  goes on.\n- **[AA-2]** Two\n  goes on. (planned)\n\n- other (planned)\n";
        let page = File { path: "docs/spec/a.md".to_owned(), text: text.to_owned() };
        let found: Vec<_> =
            requirements(&page).iter().map(|one| (one.id.to_owned(), one.is_planned)).collect();
        assert_eq!(found, [("AA-1".to_owned(), false), ("AA-2".to_owned(), true)]);
    }
}
