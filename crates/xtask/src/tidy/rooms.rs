//! Modules point one way, too: the table of rooms in `docs/architecture.md` against what the sources name.
//!
//! A room is a module of a crate, with all that lies below it. A crate that stands in the table has all
//! of its modules there, in an order in which each names only those above it.

use std::collections::BTreeMap;

use super::{Fault, table};
use crate::repository::{File, Repository};

const PAGE: &str = "docs/architecture.md";
const ROOMS: &str = "## Rooms";

/// One room: a module, and what it may use.
#[derive(Debug)]
struct Room {
    /// The module's path below the crate, such as `surfaces::browser`.
    name: String,
    /// Rooms of its crate, and libraries that only some rooms may name.
    may_use: Vec<String>,
}

/// The rooms of one crate, in the order of the table.
#[derive(Debug, Default)]
struct House {
    rooms: Vec<Room>,
}

pub(super) fn check(repository: &Repository) -> anyhow::Result<Vec<Fault>> {
    let mut faults = Vec::new();
    for (folder, house) in houses(&repository.file(PAGE)?.text) {
        faults.extend(house.check_order(&folder));
        let prefix = format!("{folder}/src/");
        let sources = repository.files.iter().filter(|file| file.path.ends_with(".rs"));
        for file in sources {
            if let Some(path) = file.path.strip_prefix(&prefix) {
                faults.extend(house.check_file(file, path));
            }
        }
    }
    Ok(faults)
}

/// Reads the table: a crate's folder, a room of it, and what that may use.
fn houses(page: &str) -> BTreeMap<String, House> {
    let mut houses: BTreeMap<String, House> = BTreeMap::new();
    for row in table::rows(page, ROOMS) {
        let [folder, rooms, may_use, ..] = row.as_slice() else { continue };
        let may_use: Vec<String> = table::quoted(may_use).into_iter().map(str::to_owned).collect();
        for folder in table::quoted(folder) {
            let house = houses.entry(folder.to_owned()).or_default();
            house.rooms.extend(
                table::quoted(rooms)
                    .into_iter()
                    .map(|name| Room { name: name.to_owned(), may_use: may_use.clone() }),
            );
        }
    }
    houses
}

impl House {
    /// A room that uses one below it in the table closes a circle, or may once.
    fn check_order(&self, folder: &str) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (place, room) in self.rooms.iter().enumerate() {
            let is_below =
                |name: &&String| self.rooms.iter().skip(place).any(|other| other.name == **name);
            for below in room.may_use.iter().filter(is_below) {
                let why = format!(
                    "room `{}` of {folder} may use `{below}`, which does not stand above it",
                    room.name
                );
                faults.push(Fault::new(PAGE, why));
            }
        }
        faults
    }

    fn check_file(&self, file: &File, path: &str) -> Vec<Fault> {
        let module = module_of(path);
        if module.is_empty() {
            return Vec::new();
        }
        let Some(own) = self.room_of(&module) else {
            // A file that only gathers the rooms below it belongs to none of them.
            let gathers = self.rooms.iter().any(|room| is_within(&room.name, &module));
            let why = format!("`{module}` is in no room; see `{ROOMS}` in {PAGE}");
            return if gathers { Vec::new() } else { vec![Fault::new(&file.path, why)] };
        };
        let mut faults = Vec::new();
        for (line, name) in named(&file.text, &module) {
            let used = match self.room_of(&name) {
                Some(used) => &used.name,
                None if self.is_guarded(&name) => &name,
                None => continue,
            };
            if *used != own.name && !own.may_use.contains(used) {
                let place = format!("{}:{line}", file.path);
                let why =
                    format!("room `{}` may not use `{used}`; see `{ROOMS}` in {PAGE}", own.name);
                faults.push(Fault::new(place, why));
            }
        }
        faults
    }

    /// Finds the innermost room that a path leads into.
    fn room_of(&self, path: &str) -> Option<&Room> {
        let within = self.rooms.iter().filter(|room| is_within(path, &room.name));
        within.max_by_key(|room| room.name.len())
    }

    /// Tells whether a library stands in a cell of the table: then only those rooms may name it.
    fn is_guarded(&self, library: &str) -> bool {
        self.rooms.iter().any(|room| room.may_use.iter().any(|name| name == library))
    }
}

fn is_within(path: &str, room: &str) -> bool {
    path.strip_prefix(room).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Returns the module that a file below `src` is; empty for the root of the crate.
fn module_of(path: &str) -> String {
    let path = path.trim_end_matches(".rs");
    if path == "lib" || path == "main" { String::new() } else { path.replace('/', "::") }
}

/// Returns the paths that a source names, with their lines: those of its own crate from the root on, of
/// others the name of the library. Comments, strings and tests do not count.
fn named(text: &str, module: &str) -> Vec<(usize, String)> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let statements = join_uses(code);
    let mut found = Vec::new();
    for (line, statement) in statements {
        for path in paths(&statement) {
            if let Some(path) = absolute(&path, module) {
                found.push((line, path));
            }
        }
    }
    found
}

/// Returns the lines of a source without comments; a `use` over several lines is one.
fn join_uses(code: &str) -> Vec<(usize, String)> {
    let mut statements: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (place, line) in code.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("//") {
            continue;
        }
        match statements.last_mut().filter(|_| is_open) {
            Some((_, statement)) => statement.push_str(line),
            None => statements.push((place + 1, line.to_owned())),
        }
        let begins = line.starts_with("use ") || line.starts_with("pub");
        let is_use = is_open || begins && line.contains("use ");
        is_open = is_use && !line.ends_with(';');
    }
    statements
}

/// Returns the paths of a statement, those in braces written out.
fn paths(statement: &str) -> Vec<String> {
    let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let Some(tree) = statement.split("use ").nth(1).filter(|_| is_import(statement)) else {
        return statement
            .split(|c| !is_of_path(c))
            .filter(|word| word.contains("::"))
            .map(|word| word.trim_matches(':').to_owned())
            .collect();
    };
    let mut paths = Vec::new();
    let mut prefixes = vec![String::new()];
    let mut word = String::new();
    for c in tree.chars() {
        let prefix = prefixes.last().cloned().unwrap_or_default();
        match c {
            '{' => {
                prefixes.push(format!("{prefix}{word}"));
                word.clear();
            }
            ',' | '}' | ';' => {
                if !word.trim().is_empty() {
                    let word = word.trim().split(" as ").next().unwrap_or_default();
                    paths.push(format!("{prefix}{word}"));
                }
                word.clear();
                if c == '}' {
                    prefixes.pop();
                }
            }
            c if c.is_whitespace() && word.is_empty() => {}
            c => word.push(c),
        }
    }
    paths
}

fn is_import(statement: &str) -> bool {
    statement.starts_with("use ") || statement.starts_with("pub") && statement.contains(" use ")
}

/// Writes a path from the root of its crate; of a library only its name. `None` for what is local.
fn absolute(path: &str, module: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split("::").collect();
    let first = *parts.first()?;
    if first == "crate" {
        return Some(parts.split_off(1).join("::"));
    }
    if first != "super" && first != "self" {
        let is_library = first.chars().all(|c| c.is_lowercase() || c.is_numeric() || c == '_');
        return is_library.then(|| first.to_owned());
    }
    let mut base: Vec<&str> = module.split("::").collect();
    while let Some(part @ ("super" | "self")) = parts.first().copied() {
        if part == "super" {
            base.pop();
        }
        parts.remove(0);
    }
    base.extend(parts);
    Some(base.join("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "## Rooms\n\n| crate | room | may use |\n|---|---|---|\n\
        | `crates/a` | `wire` | |\n| `crates/a` | `call` | `wire`, `rmcp` |\n\
        | `crates/a` | `faces::one`, `faces::two` | `call` |\n";

    fn faults(path: &str, text: &str) -> Vec<String> {
        let house = houses(SAMPLE).remove("crates/a").expect("a house");
        let file = File { path: format!("crates/a/src/{path}"), text: text.to_owned() };
        house.check_file(&file, path).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_room_names_itself_and_what_it_may_use() {
        assert_eq!(faults("call/wait.rs", "use crate::wire::Id;\nuse super::x;\n"), [""; 0]);
        assert_eq!(faults("call.rs", "use rmcp::model;\nuse serde::Serialize;\n"), [""; 0]);
        assert_eq!(faults("lib.rs", "pub use self::faces::one::Face;\n"), [""; 0]);
        assert_eq!(faults("faces.rs", "pub mod one;\n"), [""; 0]);
        assert_eq!(faults("wire.rs", "/// See [`crate::call`].\n//! crate::call::x\n"), [""; 0]);
        let in_tests = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    use crate::call::x;\n}\n";
        assert_eq!(faults("wire.rs", in_tests), [""; 0]);
    }

    #[test]
    fn a_room_that_names_another_is_a_fault_at_its_line() {
        let up =
            faults("wire/id.rs", "use std::fmt;\nuse crate::call::{\n    Told,\n    run,\n};\n");
        assert_eq!(up.len(), 2, "{up:?}");
        assert!(up[0].starts_with("crates/a/src/wire/id.rs:2: room `wire` may not use `call`"));
        assert_eq!(faults("wire.rs", "fn a() { crate::call::run(); }\n").len(), 1);
        assert_eq!(faults("faces/one.rs", "use super::two::Face;\n").len(), 1, "a sibling");
        assert_eq!(faults("faces/one/a.rs", "use super::super::two::Face;\n").len(), 1);
        assert_eq!(faults("faces/one.rs", "use rmcp::model;\n").len(), 1, "a library");
        assert_eq!(faults("faces/one.rs", "use crate::{call, wire::Id};\n").len(), 1);
        assert_eq!(faults("attic.rs", "\n").len(), 1, "a module without a room");
    }

    #[test]
    fn a_table_that_points_both_ways_is_a_fault() {
        let table = SAMPLE.replace("| `wire` | |", "| `wire` | `call` |");
        let house = houses(&table).remove("crates/a").expect("a house");
        assert_eq!(house.check_order("crates/a").len(), 1);
    }
}
