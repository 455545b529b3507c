//! What a small server costs: the default features of `raincheck` bring no database, no HTTP and no jq.

use std::process::Command;

use anyhow::{Context as _, ensure};

use super::Fault;
use crate::repository::Repository;

/// Crates that are too heavy for a default, and what they are there for.
const HEAVY: &[(&str, &str)] = &[
    ("axum", "HTTP"),
    ("hyper", "HTTP"),
    ("jaq-core", "jq"),
    ("libsqlite3-sys", "SQL"),
    ("reqwest", "HTTP"),
    ("ring", "TLS"),
    ("rusqlite", "SQL"),
    ("rustls", "TLS"),
    ("tokio-postgres", "SQL"),
    ("tokio-tungstenite", "HTTP"),
    ("zstd-sys", "compression"),
];

pub(super) fn check(repository: &Repository) -> anyhow::Result<Vec<Fault>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--package", "raincheck", "--edges", "normal", "--prefix", "none"])
        .args(["--format", "{p}"])
        .current_dir(&repository.root)
        .output()
        .context("running `cargo tree`")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`cargo tree` failed: {said}");
    Ok(faults(&String::from_utf8_lossy(&output.stdout)))
}

/// Finds what is heavy in a list of packages, one a line.
fn faults(packages: &str) -> Vec<Fault> {
    let has = |name: &str| packages.lines().any(|line| line.split(' ').next() == Some(name));
    let heavy = HEAVY.iter().filter(|(name, _)| has(name));
    heavy
        .map(|(name, what)| {
            let why =
                format!("the default features bring `{name}` ({what}); put it behind a feature");
            Fault::new("crates/raincheck/Cargo.toml", why)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heavy_package_is_found_by_its_name_alone() {
        let list = "raincheck v0.1.0 (/x)\nhyperlight v1.0.0\nrusqlite v0.43.0\n";
        let found = faults(list);
        assert_eq!(found.len(), 1);
        assert!(found.iter().all(|fault| fault.to_string().contains("`rusqlite` (SQL)")));
    }
}
