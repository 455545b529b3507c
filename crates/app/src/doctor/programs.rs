//! Whether the programs of tools are there.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use raincheck_core::text::escape;

use super::Finding;
use crate::config::{Env, File, Tool};

/// The ends of the names of files that an interpreter is given.
const SCRIPTS: [&str; 9] = ["py", "sh", "js", "mjs", "cjs", "ts", "rb", "pl", "lua"];

/// Looks for the program of every tool.
pub(super) fn programs(file: &File) -> Finding {
    const CHECK: &str = "programs";
    let missing: Vec<String> = file
        .tools
        .iter()
        .filter_map(|tool| {
            let program = tool.command.first()?;
            let fault = fault(program, &file.folder, tool)?;
            Some(format!("{}: `{}` {fault}", tool.spec.name, escape(program)))
        })
        .collect();
    if missing.is_empty() {
        return Finding::good(CHECK, format!("{} found", file.tools.len()));
    }
    let next = "install them, correct `command`, or make them executable: chmod +x FILE";
    Finding::bad(CHECK, missing.join("\n"), next)
}

/// Looks for the scripts that interpreters are given.
pub(super) fn scripts(file: &File) -> Finding {
    const CHECK: &str = "scripts";
    let mut n_found = 0;
    let mut missing = Vec::new();
    for tool in &file.tools {
        for argument in tool.command.iter().skip(1).filter(|argument| is_script(argument)) {
            if file.folder.join(argument).is_file() {
                n_found += 1;
            } else {
                missing.push(format!("{}: `{}` is not there", tool.spec.name, escape(argument)));
            }
        }
    }
    if missing.is_empty() {
        return Finding::good(CHECK, format!("{n_found} found"));
    }
    let next = format!("paths are relative to {}; correct `command`", file.folder.display());
    Finding::bad(CHECK, missing.join("\n"), next)
}

fn is_script(argument: &str) -> bool {
    let path = Path::new(argument);
    let end = path.extension().and_then(OsStr::to_str);
    !argument.starts_with('-') && end.is_some_and(|end| SCRIPTS.contains(&end))
}

/// Says what keeps a program from being started.
fn fault(program: &str, folder: &Path, tool: &Tool) -> Option<&'static str> {
    if Path::new(program).components().count() > 1 {
        let path = folder.join(program);
        return match (path.is_file(), is_executable(&path)) {
            (false, _) => Some("is not there"),
            (true, false) => Some("is not executable"),
            (true, true) => None,
        };
    }
    let found = search_path(tool).iter().any(|dir| is_executable(&executable_in(dir, program)));
    (!found).then_some("is not on the PATH")
}

fn search_path(tool: &Tool) -> Vec<PathBuf> {
    let own = match &tool.env {
        Some(Env::Fixed(values)) => values.get("PATH").map(Into::into),
        Some(Env::Inherit(_)) | None => None,
    };
    let path = own.or_else(|| env::var_os("PATH")).unwrap_or_default();
    env::split_paths(&path).collect()
}

fn executable_in(dir: &Path, program: &str) -> PathBuf {
    let path = dir.join(program);
    if env::consts::EXE_SUFFIX.is_empty() || path.extension().is_some() {
        return path;
    }
    path.with_extension(env::consts::EXE_EXTENSION)
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file())
}
