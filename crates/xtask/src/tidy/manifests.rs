//! Every manifest takes its lints and versions from the workspace.

use anyhow::Context as _;
use toml::{Table, Value};

use super::Fault;
use crate::repository::Repository;

pub(super) fn check(repository: &Repository) -> anyhow::Result<Vec<Fault>> {
    let mut faults = Vec::new();
    for file in
        repository.ending("/Cargo.toml").filter(|file| !file.path.starts_with("tests/bench/"))
    {
        let manifest: Table = file.text.parse().with_context(|| file.path.clone())?;
        faults.extend(check_one(&file.path, &manifest));
    }
    Ok(faults)
}

fn check_one(path: &str, manifest: &Table) -> Vec<Fault> {
    let mut faults = Vec::new();
    let lints = manifest.get("lints").and_then(Value::as_table);
    if !lints.is_some_and(is_inherited) {
        faults.push(Fault::new(path, "add `[lints]` with `workspace = true`"));
    }
    for name in own_versions(manifest) {
        let why = format!("move the version of `{name}` to [workspace.dependencies] in Cargo.toml");
        faults.push(Fault::new(path, why));
    }
    faults
}

/// Returns the dependencies that do not come from the workspace's table.
fn own_versions(manifest: &Table) -> Vec<&str> {
    let mut names = Vec::new();
    for (key, value) in manifest {
        let Some(table) = value.as_table() else { continue };
        if key.ends_with("dependencies") {
            let inherits = |value: &Value| value.as_table().is_some_and(is_inherited);
            names.extend(
                table.iter().filter(|(_, value)| !inherits(value)).map(|(name, _)| &**name),
            );
        } else if key == "target" {
            names.extend(table.values().filter_map(Value::as_table).flat_map(own_versions));
        }
    }
    names
}

fn is_inherited(table: &Table) -> bool {
    table.get("workspace").and_then(Value::as_bool).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_with_its_own_versions_or_lints_is_a_fault() {
        let manifest = "[dependencies]\na = \"1\"\nb.workspace = true\n\
            [target.'cfg(unix)'.dev-dependencies]\nc = { version = \"1\" }\n"
            .parse()
            .expect("a manifest");
        let faults = check_one("x/Cargo.toml", &manifest);
        let list: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(list.len(), 3, "{list:?}");
        assert!(list.iter().any(|one| one.contains("`a`")), "{list:?}");
        assert!(list.iter().any(|one| one.contains("`c`")), "{list:?}");
    }
}
