//! The binaries as they ship: built for size, and linked so that what an idle server has run lies together.
//!
//! An idle server is mostly the pages of its program. The system maps 64 KiB around each page that is touched,
//! and in the order of the compiler those lie everywhere. So a binary is linked twice: once to see which pages of it
//! are touched from the start until it is idle, and once more with the functions of these in front. The order is made
//! anew each time: the names of functions change with what they are made of.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

/// What is preloaded to see which pages are touched.
const TOUCHED: &str = include_str!("ship/touched.c");

const PAGE: u64 = 4096;

/// A server that was called once, and says nothing for so long, is idle.
const SETTLED: Duration = Duration::from_secs(2);

/// A binary that ships.
struct Ships {
    package: &'static str,
    name: &'static str,
    /// A call that has it open its store and its listener.
    opens: (&'static str, &'static str),
}

const ALL: &[Ships] = &[
    Ships { package: "raincheck-cli", name: "raincheck", opens: ("list_tasks", "{}") },
    Ships {
        package: "browser-mcp",
        name: "browser-mcp",
        opens: ("observe", r#"{"what":"health"}"#),
    },
    Ships { package: "unity-mcp", name: "unity-mcp", opens: ("list_tasks", "{}") },
];

/// Builds the binaries with these names, or all of them. Returns where they are.
pub(crate) fn build(root: &Path, names: &[String]) -> anyhow::Result<Vec<PathBuf>> {
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|it| it.name != **name)) {
        bail!("no binary is named `{unknown}`");
    }
    let wanted =
        ALL.iter().filter(|it| names.is_empty() || names.iter().any(|name| *name == it.name));
    wanted.map(|binary| built(root, binary)).collect()
}

fn built(root: &Path, binary: &Ships) -> anyhow::Result<PathBuf> {
    let folder = std::path::absolute(target(root).join("dist"))?;
    let path = folder.join(binary.name);
    // Elsewhere the linker takes no order.
    if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        cargo(root, binary, &[])?;
        return Ok(path);
    }
    let place = folder.join("ship").join(binary.name);
    let (link, order) = (place.join("link"), place.join("order"));
    fs::create_dir_all(&place)?;
    if !link.exists() {
        remove_built(&folder, binary)?;
    }
    // What was compiled stays, and with what it was linked.
    let print = format!("--print=link-args={}", link.display());
    cargo(root, binary, &["-Cstrip=none", "-Csave-temps", &print])?;
    let symbols = Command::new("nm").args(["-S", "--defined-only"]).arg(&path).output()?;
    ensure!(symbols.status.success(), "nm failed");
    let pages = touched(&path, &place, binary)?;
    let functions = functions_on(&pages, &String::from_utf8_lossy(&symbols.stdout));
    ensure!(!functions.is_empty(), "no function of {} was seen to run", binary.name);
    fs::write(&order, functions.join("\n"))?;
    relink(&fs::read_to_string(&link)?, &order, &path)?;
    ensure!(Command::new("strip").arg(&path).status()?.success(), "strip failed");
    Ok(path)
}

/// Links once more, with the functions that `order` names in front. `link` is the linker's command line.
fn relink(link: &str, order: &Path, path: &Path) -> anyhow::Result<()> {
    // It has two names.
    fs::remove_file(path)?;
    let linked = Command::new("sh")
        .args(["-c", &format!("{} \"$@\"", link.trim_end()), "sh", "-Xlinker"])
        .arg(format!("--symbol-ordering-file={}", order.display()))
        // Of functions that it has folded into others.
        .args(["-Wl,--no-warn-symbol-ordering", "-o"])
        .arg(path)
        .status()?;
    ensure!(linked.success(), "{} could not be linked", path.display());
    Ok(())
}

/// Has the binary built anew.
fn remove_built(folder: &Path, binary: &Ships) -> anyhow::Result<()> {
    let begin = format!("{}-", binary.name.replace('-', "_"));
    let deps = folder.join("deps");
    for entry in fs::read_dir(&deps).into_iter().flatten() {
        let name = entry?.file_name();
        let shown = name.to_string_lossy();
        if shown.starts_with(&begin) && !shown.contains('.') {
            fs::remove_file(deps.join(name))?;
        }
    }
    Ok(())
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn cargo(root: &Path, binary: &Ships, options: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).args(["rustc", "--locked", "--profile", "dist"]);
    command.args(["--package", binary.package, "--bin", binary.name, "--"]).args(options);
    ensure!(command.status()?.success(), "{} could not be built", binary.name);
    Ok(())
}

/// Starts a server and returns the pages of its code that it touches until it is idle, in order.
fn touched(program: &Path, place: &Path, binary: &Ships) -> anyhow::Result<Vec<u64>> {
    let place = place.join("touched");
    let (source, object, notes) =
        (place.join("touched.c"), place.join("touched.so"), place.join("pages"));
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::create_dir_all(&place)?;
    fs::write(&source, TOUCHED)?;
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&object)
        .arg(&source)
        .status()
        .context("a C compiler is needed")?;
    ensure!(compiled.success(), "touched.c could not be compiled");
    let mut server = Command::new(program)
        .arg("serve")
        .current_dir(&place)
        .envs([("LD_PRELOAD", &object), ("TOUCHED", &notes)])
        .envs([
            ("RAINCHECK_STATE_DIR", place.join("state")),
            ("RAINCHECK_RUNTIME_DIR", place.join("run")),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut inward = server.stdin.take().context("a pipe")?;
    let outward = BufReader::new(server.stdout.take().context("a pipe")?);
    let (say, said) = mpsc::channel();
    let reader = thread::spawn(move || outward.lines().all(|line| say.send(line).is_ok()));
    let (tool, arguments) = binary.opens;
    let arguments: Value = serde_json::from_str(arguments)?;
    let client = json!({ "name": "ship", "version": "0" });
    let hello =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let call = json!({ "name": tool, "arguments": arguments });
    for (id, method, params) in [(1, "initialize", hello), (2, "tools/call", call)] {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(inward, "{request}")?;
        said.recv().with_context(|| format!("{} ended before it answered", binary.name))??;
    }
    while said.recv_timeout(SETTLED).is_ok() {}
    let pages = fs::read_to_string(&notes)?;
    drop(inward);
    server.wait()?;
    ensure!(reader.join().is_ok(), "what {} said could not be read", binary.name);
    fs::remove_dir_all(&place)?;
    Ok(pages.lines().filter_map(|page| u64::from_str_radix(page, 16).ok()).collect())
}

/// Names the functions on pages, in the order in which these were touched. `symbols` is what `nm -S` prints.
fn functions_on(pages: &[u64], symbols: &str) -> Vec<String> {
    let mut ranks = BTreeMap::new();
    for (rank, page) in pages.iter().enumerate() {
        ranks.entry(*page).or_insert(rank);
    }
    let mut found: Vec<(usize, u64, &str)> = symbols
        .lines()
        .filter_map(function)
        .filter_map(|(address, size, name)| {
            let last = (address + size.max(1) - 1) / PAGE;
            let rank = ranks.range(address / PAGE..=last).map(|(_, rank)| *rank).min()?;
            Some((rank, address, name))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, _, name)| name.to_owned()).collect()
}

/// Reads a line about a function: its address, its size and its name.
fn function(line: &str) -> Option<(u64, u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let (address, size, kind, name) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let number = |word| u64::from_str_radix(word, 16).ok();
    matches!(kind, "t" | "T" | "w" | "W").then_some((number(address)?, number(size)?, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_of_touched_pages_come_in_the_order_in_which_these_were_touched() {
        let symbols = "\
            0000000000001000 0000000000000010 t on_the_first\n\
            0000000000001ff0 0000000000000020 T on_both\n\
            0000000000002100 0000000000000010 t on_the_second\n\
            0000000000003000 0000000000000010 t on_none\n\
            0000000000002200 0000000000000010 d data\n\
            0000000000002300 t without_a_size\n\
            0000000000004000 0000000000003000 w over_three\n";
        assert_eq!(
            functions_on(&[5, 2, 1, 2], symbols),
            ["over_three", "on_both", "on_the_second", "on_the_first"]
        );
        assert!(functions_on(&[], symbols).is_empty());
    }
}
