//! Checks and generators for the repository, and the binaries as they ship: `cargo xtask tidy`, `docs`, `api`
//! and `ship`.

mod api;
mod docs;
mod repository;
mod ship;
mod tidy;

use std::env;
use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::repository::Repository;

const USAGE: &str = "usage: cargo xtask COMMAND

  tidy   checks what no compiler checks: crate edges, file sizes, cited requirements, links
  docs   writes the generated parts of docs/ from the tables in crates/core and from the binaries,
         which `cargo build --workspace` has to have built
  api    writes the list of what embedders can name, from the sources
  ship   builds the binaries as they ship, or those that are named: for size, and with what an idle server
         has run in one place, on Linux (x86-64); `cc`, `nm` and `strip` have to be there
";

fn main() -> anyhow::Result<ExitCode> {
    let repository = Repository::read()?;
    match env::args().nth(1).as_deref() {
        Some("tidy") => tidy(&repository),
        Some("docs") => docs(&repository),
        Some("api") => {
            let path = repository.root.join(api::PATH);
            std::fs::write(path, api::listing(&repository))?;
            Ok(ExitCode::SUCCESS)
        }
        Some("ship") => ship(&repository),
        _ => {
            io::stderr().write_all(USAGE.as_bytes())?;
            Ok(ExitCode::from(2))
        }
    }
}

fn tidy(repository: &Repository) -> anyhow::Result<ExitCode> {
    let faults = tidy::faults(repository)?;
    let mut out = io::stdout().lock();
    for fault in &faults {
        writeln!(out, "{fault}")?;
    }
    if faults.is_empty() {
        writeln!(out, "tidy: {} files, nothing to say", repository.files.len())?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "tidy: {} faults", faults.len())?;
    Ok(ExitCode::FAILURE)
}

fn docs(repository: &Repository) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    for path in docs::write(repository)? {
        writeln!(out, "docs: wrote {path}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn ship(repository: &Repository) -> anyhow::Result<ExitCode> {
    let names: Vec<String> = env::args().skip(2).collect();
    let mut out = io::stdout().lock();
    for path in ship::build(&repository.root, &names)? {
        writeln!(out, "ship: built {}", path.display())?;
    }
    Ok(ExitCode::SUCCESS)
}
