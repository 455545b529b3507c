//! A Unity project: the folder that holds `ProjectSettings`, whatever its parents are called.

use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::Refusal;

/// The oldest version that the package takes.
const OLDEST: UnityVersion = UnityVersion { major: 2021, minor: 3 };

/// A version of Unity, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnityVersion {
    /// The year, or 6000 and up.
    pub major: u32,
    /// The stream of that year.
    pub minor: u32,
}

impl fmt::Display for UnityVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A Unity project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
    is_parent: bool,
}

impl Project {
    /// Finds the project that a path is, or lies in. Works with blocking calls.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(path: &Path) -> Result<Self, Refusal> {
        let path = plain(&std::path::absolute(path)?);
        match path.ancestors().find(|folder| version_file(folder).is_file()) {
            Some(root) => Ok(Self { root: root.to_owned(), is_parent: root != path }),
            None => Err(Refusal::NoProject(path)),
        }
    }

    /// Returns the folder of the project.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Tells whether the project was found above the path that was named.
    #[must_use]
    pub const fn is_parent(&self) -> bool {
        self.is_parent
    }

    /// Returns the version of Unity that the project is of. Works with blocking calls.
    ///
    /// # Errors
    /// [`Refusal::Unreadable`] when it cannot be told, [`Refusal::Version`] when the package does not take it.
    pub fn version(&self) -> Result<UnityVersion, Refusal> {
        let text = String::from_utf8_lossy(&fs::read(version_file(&self.root))?).into_owned();
        let line = text.lines().find_map(|line| line.trim().strip_prefix("m_EditorVersion:"));
        let said = line.unwrap_or_default().trim();
        match parse(said) {
            Some(version) if version >= OLDEST => Ok(version),
            Some(_) => Err(Refusal::Version(format!(
                "the project is of Unity {said}, and the package takes {OLDEST} and up"
            ))),
            None => Err(Refusal::Unreadable),
        }
    }

    /// Tells whether an editor seems to have the project open. Works with blocking calls.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.root.join("Temp").join("UnityLockfile").exists()
    }

    /// Tells whether the project's own list names a package. Works with blocking calls.
    #[must_use]
    pub fn lists(&self, package: &str) -> bool {
        let listed = fs::read(self.root.join("Packages").join("manifest.json"));
        listed
            .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(&format!("\"{package}\"")))
    }
}

/// Returns the file that makes a folder a project.
fn version_file(folder: &Path) -> PathBuf {
    folder.join("ProjectSettings").join("ProjectVersion.txt")
}

/// Takes `.` and `..` out of a path by its letters, so that its parents are what they seem to be.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

fn parse(said: &str) -> Option<UnityVersion> {
    let mut parts = said.split('.');
    let mut number = || parts.next()?.parse().ok();
    Some(UnityVersion { major: number()?, minor: number()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_years_and_then_thousands() {
        let version = |text: &str| parse(text).map(|version| (version.major, version.minor));
        assert_eq!(version("6000.0.23f1"), Some((6000, 0)));
        assert_eq!(version("2021.3.1f1-dots"), Some((2021, 3)));
        assert_eq!(version("soon"), None);
        assert!(parse("2021.2.9f1").is_some_and(|it| it < OLDEST));
        assert!(parse("6000.0.1f1").is_some_and(|it| it >= OLDEST));
    }
}
