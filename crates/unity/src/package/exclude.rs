//! The line in `.git/info/exclude` that has git overlook the package in one clone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Refusal;

/// What stands above the line.
const COMMENT: &str = "# written by unity-mcp install --exclude-from-git";

pub(super) fn add(package: &Path) -> Result<PathBuf, Refusal> {
    let place = Place::of(package)?.ok_or_else(|| Refusal::NoRepository(package.to_owned()))?;
    let text = place.read()?;
    if !text.lines().any(|line| line == place.line) {
        let pause = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        place.write(&format!("{text}{pause}{COMMENT}\n{}\n", place.line))?;
    }
    Ok(place.file)
}

pub(super) fn remove(package: &Path) -> Result<(), Refusal> {
    let Some(place) = Place::of(package)? else { return Ok(()) };
    let text = place.read()?;
    if !text.lines().any(|line| line == place.line) {
        return Ok(());
    }
    let ours = format!("{COMMENT}\n{}\n", place.line);
    let rest = if text.contains(&ours) {
        text.replace(&ours, "")
    } else {
        text.split_inclusive('\n')
            .filter(|line| line.trim_end_matches(['\r', '\n']) != place.line)
            .collect()
    };
    place.write(&rest)
}

/// The file of a repository, and the line for the package.
struct Place {
    file: PathBuf,
    line: String,
}

impl Place {
    fn of(package: &Path) -> Result<Option<Self>, Refusal> {
        let Some(root) = package.ancestors().skip(1).find(|folder| folder.join(".git").exists())
        else {
            return Ok(None);
        };
        let inner = package.strip_prefix(root).unwrap_or(package);
        let parts = inner.components().map(|part| escaped(&part.as_os_str().to_string_lossy()));
        let line = format!("/{}/", parts.collect::<Vec<_>>().join("/"));
        Ok(Some(Self { file: common(&root.join(".git"))?.join("info").join("exclude"), line }))
    }

    fn read(&self) -> Result<String, Refusal> {
        match fs::read_to_string(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => Ok(read?),
        }
    }

    fn write(&self, text: &str) -> Result<(), Refusal> {
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        Ok(fs::write(&self.file, text)?)
    }
}

/// Returns the folder that the worktrees of a repository share.
fn common(git: &Path) -> Result<PathBuf, Refusal> {
    if git.is_dir() {
        return Ok(git.to_owned());
    }
    let text = fs::read_to_string(git)?;
    let named = text.trim().strip_prefix("gitdir:").map(str::trim).unwrap_or_default();
    let own = git.with_file_name("").join(named);
    match fs::read_to_string(own.join("commondir")) {
        Ok(shared) => Ok(own.join(shared.trim())),
        Err(_) => Ok(own),
    }
}

/// Takes the meaning from what means something in a pattern of git.
fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '\\' | ' ') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}
