//! What no compiler checks.

mod citations;
mod edges;
mod files;
mod lean;
mod links;
mod manifests;
mod rooms;
mod table;

use std::fmt;

use anyhow::Context as _;

use crate::repository::Repository;
use crate::{api, docs};

/// Something that is not as the house wants it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The file, with a line where one is known.
    place: String,
    /// What is wrong there, and what to do.
    message: String,
}

impl Fault {
    fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Runs every check.
pub(crate) fn faults(repository: &Repository) -> anyhow::Result<Vec<Fault>> {
    let mut faults = edges::check(repository).context("checking the edges between crates")?;
    faults.extend(rooms::check(repository).context("checking the order of rooms")?);
    faults.extend(manifests::check(repository)?);
    faults.extend(files::check(repository));
    faults.extend(citations::check(repository));
    faults.extend(links::check(repository));
    faults.extend(lean::check(repository).context("checking what the default features bring")?);
    if repository.file(api::PATH).map(|file| &*file.text).unwrap_or_default()
        != api::listing(repository)
    {
        let words = "the API of embedders changed: write it anew with `cargo xtask api`, and look at the difference";
        faults.push(Fault::new(api::PATH, words));
    }
    for (path, _) in docs::outdated(repository, None)? {
        faults.push(Fault::new(path, "a generated part is out of date; run `cargo xtask docs`"));
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let repository = Repository::read().expect("the repository can be read");
        let faults = faults(&repository).expect("the checks run");
        let list: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert!(list.is_empty(), "{}", list.join("\n"));
    }
}
