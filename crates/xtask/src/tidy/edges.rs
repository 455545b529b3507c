//! Dependencies point one way: the tables in `docs/architecture.md` against `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

use super::{Fault, table};
use crate::repository::Repository;

const PAGE: &str = "docs/architecture.md";
const EDGES: &str = "## Allowed edges";
const HOMES: &str = "## Dependencies with one home";

/// What one crate may depend on.
struct Allowed {
    always: BTreeSet<String>,
    in_tests: BTreeSet<String>,
}

pub(super) fn check(repository: &Repository) -> anyhow::Result<Vec<Fault>> {
    let metadata = MetadataCommand::new()
        .manifest_path(repository.root.join("Cargo.toml"))
        .no_deps()
        .exec()?;
    let page = &repository.file(PAGE)?.text;
    let members: BTreeSet<&str> = metadata.packages.iter().map(|one| one.name.as_str()).collect();
    let allowed = allowed(page);
    let homes = homes(page);
    let mut faults = Vec::new();
    for name in allowed.keys().filter(|name| !members.contains(name.as_str())) {
        faults
            .push(Fault::new(PAGE, format!("`{name}` has a row under `{EDGES}` but is no crate")));
    }
    for package in &metadata.packages {
        faults.extend(edges_of(package, &members, allowed.get(package.name.as_str())));
        faults.extend(strangers_of(package, &homes));
    }
    Ok(faults)
}

fn edges_of(package: &Package, members: &BTreeSet<&str>, allowed: Option<&Allowed>) -> Vec<Fault> {
    let name = package.name.as_str();
    let Some(allowed) = allowed else {
        return vec![Fault::new(PAGE, format!("`{name}` has no row under `{EDGES}`; add it"))];
    };
    let ours = package.dependencies.iter().filter(|edge| members.contains(edge.name.as_str()));
    ours.filter(|edge| {
        let is_in_tests = edge.kind == DependencyKind::Development;
        let may = allowed.always.contains(&edge.name);
        !(may || is_in_tests && allowed.in_tests.contains(&edge.name))
    })
    .map(|edge| {
        let why = format!("`{name}` may not depend on `{}`; see `{EDGES}` in {PAGE}", edge.name);
        Fault::new(format!("{name}/Cargo.toml"), why)
    })
    .collect()
}

/// Finds dependencies that only another crate may have.
fn strangers_of(package: &Package, homes: &BTreeMap<String, BTreeSet<String>>) -> Vec<Fault> {
    let name = package.name.as_str();
    let built = package.dependencies.iter().filter(|edge| edge.kind != DependencyKind::Development);
    built
        .filter(|edge| homes.get(&edge.name).is_some_and(|home| !home.contains(name)))
        .map(|edge| {
            let why =
                format!("`{}` is not at home in `{name}`; see `{HOMES}` in {PAGE}", edge.name);
            Fault::new(format!("{name}/Cargo.toml"), why)
        })
        .collect()
}

fn allowed(page: &str) -> BTreeMap<String, Allowed> {
    table::rows(page, EDGES)
        .iter()
        .flat_map(|row| {
            let names = |place: usize| -> BTreeSet<String> {
                let cell = row.get(place).map(|cell| table::quoted(cell)).unwrap_or_default();
                cell.into_iter().map(str::to_owned).collect()
            };
            names(0)
                .into_iter()
                .map(move |name| (name, Allowed { always: names(1), in_tests: names(2) }))
        })
        .collect()
}

fn homes(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let rows = table::rows(page, HOMES);
    let mut homes = BTreeMap::new();
    for row in &rows {
        let [names, home, ..] = row.as_slice() else { continue };
        let home: BTreeSet<String> = table::quoted(home).into_iter().map(str::to_owned).collect();
        for name in table::quoted(names) {
            homes.insert(name.to_owned(), home.clone());
        }
    }
    homes
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "## Allowed edges\n\n| crate | may use | in tests also |\n|---|---|---|\n\
        | `core` | – | |\n| `runtime` | `core` | `testkit` |\n\n\
        ## Dependencies with one home\n\n| crates | home |\n|---|---|\n| `rmcp` | `mcp` |\n";

    #[test]
    fn the_tables_are_read() {
        let edges = allowed(SAMPLE);
        assert!(edges["core"].always.is_empty());
        assert!(edges["runtime"].always.contains("core"));
        assert!(edges["runtime"].in_tests.contains("testkit"));
        assert!(homes(SAMPLE)["rmcp"].contains("mcp"));
    }

    #[test]
    fn an_edge_that_the_page_does_not_allow_is_a_fault() {
        let metadata = MetadataCommand::new()
            .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
            .no_deps()
            .exec()
            .expect("metadata");
        let xtask = metadata.packages.iter().find(|one| one.name.as_str() == "xtask");
        let members = BTreeSet::from(["raincheck-core", "xtask"]);
        let none = Allowed { always: BTreeSet::new(), in_tests: BTreeSet::new() };
        let faults = edges_of(xtask.expect("this package"), &members, Some(&none));
        assert_eq!(faults.len(), 1, "{faults:?}");
        let homes = BTreeMap::from([("anyhow".to_owned(), BTreeSet::from(["bins".to_owned()]))]);
        assert_eq!(strangers_of(xtask.expect("this package"), &homes).len(), 1);
    }
}
