//! Sizes of files, words that must not stay, and test files that nobody builds.

use super::Fault;
use crate::repository::{File, Repository};

/// The most lines of one source file.
const MAX_LINES: usize = 800;

/// The median of all source files stays below this.
const MAX_MEDIAN: usize = 250;

/// What may not stand in a source file, and why.
const IN_SOURCE: &[(&str, &str)] = &[
    (concat!("TO", "DO"), "do it, or write it down where work is planned"),
    (concat!("FIX", "ME"), "mend it"),
    (concat!("#[ig", "nore"), "a test runs or goes"),
    (concat!("thread::sl", "eep"), "wait for the event"),
    (concat!("#[al", "low("), "use `expect` with a reason"),
    (concat!("#![al", "low("), "use `expect` with a reason"),
];

/// What may stand nowhere: paths of somebody's machine.
const ANYWHERE: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("../sh", "ared")];

pub(super) fn check(repository: &Repository) -> Vec<Fault> {
    let sources: Vec<&File> = repository.ending(".rs").collect();
    let mut faults: Vec<Fault> = sources.iter().flat_map(|file| check_source(file)).collect();
    let sizes = sources.iter().map(|file| file.text.lines().count()).collect();
    let median = median(sizes);
    if median >= MAX_MEDIAN {
        faults
            .push(Fault::new("crates", format!("the median file has {median} lines; split some")));
    }
    faults.extend(repository.files.iter().flat_map(check_words));
    faults.extend(forgotten(repository));
    faults
}

fn check_source(file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    let n_lines = file.text.lines().count();
    if n_lines > MAX_LINES {
        let why = format!("{n_lines} lines, more than {MAX_LINES}; split it by subject");
        faults.push(Fault::new(&file.path, why));
    }
    if file.path.ends_with("/mod.rs") {
        faults.push(Fault::new(&file.path, "name it after its folder, beside the folder"));
    }
    for (place, line) in file.text.lines().enumerate() {
        for (word, why) in IN_SOURCE.iter().filter(|(word, _)| line.contains(word)) {
            let place = format!("{}:{}", file.path, place + 1);
            faults.push(Fault::new(place, format!("`{word}` may not stay: {why}")));
        }
    }
    faults
}

fn check_words(file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (place, line) in file.text.lines().enumerate() {
        for word in ANYWHERE.iter().filter(|word| line.contains(*word)) {
            let place = format!("{}:{}", file.path, place + 1);
            faults.push(Fault::new(place, format!("`{word}` is a path of one machine")));
        }
    }
    faults
}

/// Finds modules beside a `tests/it/main.rs` that it does not name: nobody would build them.
fn forgotten(repository: &Repository) -> Vec<Fault> {
    let mut faults = Vec::new();
    for main in repository.ending("tests/it/main.rs") {
        let folder = main.path.trim_end_matches("main.rs");
        let beside = repository.files.iter().filter_map(|file| {
            let name = file.path.strip_prefix(folder)?.strip_suffix(".rs")?;
            (name != "main" && !name.contains('/')).then_some((file, name))
        });
        for (file, name) in beside {
            let line = format!("mod {name};");
            if !main.text.lines().any(|one| one.trim() == line) {
                faults.push(Fault::new(&file.path, format!("add `{line}` to {}", main.path)));
            }
        }
    }
    faults
}

fn median(mut sizes: Vec<usize>) -> usize {
    sizes.sort_unstable();
    sizes.get(sizes.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_long_file_and_an_unfinished_one_are_faults() {
        assert_eq!(check_source(&file("a/b.rs", &"x\n".repeat(MAX_LINES))), []);
        assert_eq!(check_source(&file("a/b.rs", &"x\n".repeat(MAX_LINES + 1))).len(), 1);
        let unfinished = format!("fn x() {{}} // {}", concat!("TO", "DO"));
        assert_eq!(check_source(&file("a/b.rs", &unfinished)).len(), 1);
        assert_eq!(check_source(&file("a/mod.rs", "")).len(), 1);
    }

    #[test]
    fn a_path_of_one_machine_is_a_fault_in_any_file() {
        let text = format!("see {}x", concat!("/wo", "rk/"));
        assert_eq!(check_words(&file("README.md", &text)).len(), 1);
    }

    #[test]
    fn a_test_module_that_is_not_named_is_a_fault() {
        let files = vec![
            file("crates/a/tests/it/main.rs", "mod one;\n"),
            file("crates/a/tests/it/one.rs", ""),
            file("crates/a/tests/it/two.rs", ""),
        ];
        let faults = forgotten(&Repository { root: PathBuf::new(), files });
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!(faults[0].place, "crates/a/tests/it/two.rs");
    }
}
