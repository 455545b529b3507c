//! The files of the repository, read once.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Folders that hold nothing written by hand.
const SKIPPED: &[&str] = &[".git", "target", "node_modules", "__pycache__"];

/// The kinds of file that hold text people read.
const TEXT: &[&str] = &["rs", "md", "toml", "json", "sh", "py", "mjs", "js", "cs", "txt", "yml"];

/// Every text file below the root.
pub(crate) struct Repository {
    /// Where it lies.
    pub(crate) root: PathBuf,
    /// Its files, sorted by path.
    pub(crate) files: Vec<File>,
}

/// One text file.
pub(crate) struct File {
    /// The path below the root, with `/` between its parts.
    pub(crate) path: String,
    /// What it holds.
    pub(crate) text: String,
}

impl Repository {
    /// Reads the repository this program was built from.
    pub(crate) fn read() -> anyhow::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
        let mut files = Vec::new();
        walk(&root, "", &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { root, files })
    }

    /// Finds one file.
    pub(crate) fn file(&self, path: &str) -> anyhow::Result<&File> {
        self.files
            .iter()
            .find(|file| file.path == path)
            .with_context(|| format!("`{path}` is missing"))
    }

    /// Returns the files whose path ends like this.
    pub(crate) fn ending<'a>(&'a self, end: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.path.ends_with(end))
    }
}

impl File {
    /// Tells whether the whole file is about tests.
    pub(crate) fn is_test(&self) -> bool {
        self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            || self.path.ends_with("/tests.rs")
            || self.path.ends_with(".test.mjs")
            || self.path.starts_with("crates/testkit/")
    }

    /// Returns the part of the file that is about tests: all of a test file, and of a source file
    /// what stands below its inline test module.
    pub(crate) fn tests(&self) -> &str {
        const MODULE: &str = "#[cfg(test)]\nmod tests {";
        if self.is_test() {
            return &self.text;
        }
        self.text.find(MODULE).and_then(|at| self.text.get(at..)).unwrap_or_default()
    }
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<File>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("reading `{prefix}`"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
            walk(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() && is_text(&name) {
            let text =
                fs::read_to_string(entry.path()).with_context(|| format!("reading `{path}`"))?;
            files.push(File { path, text });
        }
    }
    Ok(())
}

fn is_text(name: &str) -> bool {
    let end = Path::new(name).extension().and_then(|end| end.to_str());
    end.is_some_and(|end| TEXT.contains(&end))
}
