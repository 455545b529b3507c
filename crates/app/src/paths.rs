//! Where a binary keeps its things.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::cli::Shared;
use crate::failure::Failure;

/// The folder that every binary's folder lies in, on every platform.
const NAME: &str = "raincheck";

/// No folder can be made in it.
const NOWHERE: &str = if cfg!(windows) { r"\\.\NUL" } else { "/dev/null" };

/// The folders of one binary. Nothing is created until [`Paths::create`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// What must survive: shared by all binaries.
    pub state: PathBuf,
    /// What must not: sockets and endpoint files.
    pub runtime: PathBuf,
    /// This binary's part of the state folder, or the [place](Shared::home) that its server belongs to.
    pub home: PathBuf,
}

impl Paths {
    /// Decides the folders of a binary from its flags and the process's environment.
    ///
    /// # Errors
    /// When no folder can be told, such as without `HOME`.
    pub fn resolve(binary: &str, shared: &Shared) -> Result<Self, Failure> {
        Self::from(binary, shared, |name| std::env::var_os(name))
    }

    /// Decides the folders of a server, which answers its client also where there is none: then what is
    /// said by the failure, and every place in the folders is one that cannot be made.
    #[must_use]
    pub fn of_server(binary: &str, shared: &Shared) -> (Self, Option<Failure>) {
        match Self::resolve(binary, shared) {
            Ok(paths) => (paths, None),
            Err(failure) => {
                let state = PathBuf::from(NOWHERE).join(NAME);
                let home = shared.home.clone().unwrap_or_else(|| state.join(binary));
                let paths = Self { runtime: state.join("run"), home, state };
                (paths, Some(failure))
            }
        }
    }

    fn from(
        binary: &str,
        shared: &Shared,
        env: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, Failure> {
        let flag =
            |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        let state = flag(&shared.state_dir).or_else(|| platform_state(&env)).ok_or_else(|| {
            Failure::usage(
                "no folder for state can be told from the environment",
                "name one: --state-dir DIR (or RAINCHECK_STATE_DIR)",
            )
        })?;
        let state = absolute(&state)?;
        let runtime = match flag(&shared.runtime_dir) {
            Some(path) => absolute(&path)?,
            None => folder(&env, "XDG_RUNTIME_DIR")
                .map_or_else(|| state.join("run"), |dir| dir.join(NAME)),
        };
        let home = shared.home.clone().unwrap_or_else(|| state.join(binary));
        Ok(Self { state, runtime, home })
    }

    /// Returns the folder with the endpoint file of every server that programs of this user can call.
    #[must_use]
    pub fn endpoints(&self) -> PathBuf {
        self.runtime.join("http")
    }

    /// Creates this binary's folder, readable for its user only.
    ///
    /// # Errors
    /// Why the folder cannot be used, and what to do.
    pub fn create(&self) -> Result<(), Failure> {
        create_private(&self.home).map_err(|error| unusable(&self.home, &error))
    }
}

/// Says that a folder cannot be used.
pub(crate) fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(
        format!("the state folder `{}` cannot be used: {error}", path.display()),
        "make it writable, or name another: --state-dir DIR (or RAINCHECK_STATE_DIR)",
    )
}

/// Creates a folder and its parents with access for this user only; one that exists is left as it is.
///
/// # Errors
/// Why the folder cannot be made.
pub fn create_private(path: &Path) -> io::Result<()> {
    private_folder().recursive(true).create(path)
}

/// Creates a folder that is not there yet, with access for this user only.
pub(crate) fn create_one_private(path: &Path) -> io::Result<()> {
    private_folder().create(path)
}

/// Creates a file that is not there yet, with access for this user only.
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn private_folder() -> DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix sets a mode"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| unusable(path, &error))
}

/// Reads a variable that names a folder; a relative one is none.
fn folder(env: &impl Fn(&str) -> Option<OsString>, name: &str) -> Option<PathBuf> {
    env(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(not(any(windows, target_os = "macos")))]
fn platform_state(env: &impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let base = folder(env, "XDG_STATE_HOME")
        .or_else(|| folder(env, "HOME").map(|home| home.join(".local/state")));
    base.map(|base| base.join(NAME))
}

#[cfg(target_os = "macos")]
fn platform_state(env: &impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    folder(env, "HOME").map(|home| home.join("Library/Application Support").join(NAME))
}

#[cfg(windows)]
fn platform_state(env: &impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    folder(env, "LOCALAPPDATA").map(|base| base.join(NAME).join("state"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        shared: Shared,
    }

    fn resolve(flags: &[&str], env: &[(&str, &str)]) -> Result<Paths, Failure> {
        let args = [&["raincheck"], flags].concat();
        let Cli { shared } = Cli::try_parse_from(args).expect("flags");
        Paths::from("raincheck", &shared, |name| {
            env.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn flags_win_and_become_absolute() {
        let paths = resolve(&["--state-dir", "here"], &[("HOME", "/home/a")]).expect("paths");
        assert!(paths.state.is_absolute() && paths.state.ends_with("here"));
        assert_eq!(paths.home, paths.state.join("raincheck"));
        assert_eq!(paths.runtime, paths.state.join("run"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_platform_decides_without_flags() {
        let home = [("HOME", "/home/a")];
        assert_eq!(
            resolve(&[], &home).expect("paths").state,
            Path::new("/home/a/.local/state/raincheck")
        );
        let xdg = [("HOME", "/home/a"), ("XDG_STATE_HOME", "/s"), ("XDG_RUNTIME_DIR", "/r")];
        let paths = resolve(&[], &xdg).expect("paths");
        assert_eq!(paths.home, Path::new("/s/raincheck/raincheck"));
        assert_eq!(paths.runtime, Path::new("/r/raincheck"));
        let relative = [("HOME", "/home/a"), ("XDG_STATE_HOME", "s")];
        assert!(resolve(&[], &relative).expect("paths").state.starts_with("/home/a"));
        assert!(resolve(&[], &[]).expect_err("no home").next.contains("--state-dir"));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_created_is_private_and_what_cannot_be_is_explained() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a folder");
        let state = dir.path().join("a/b");
        let paths = resolve(&["--state-dir", state.to_str().expect("text")], &[]).expect("paths");
        paths.create().expect("created");
        let mode = paths.home.metadata().expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::write(dir.path().join("file"), "").expect("written");
        let blocked = dir.path().join("file/state");
        let paths = resolve(&["--state-dir", blocked.to_str().expect("text")], &[]).expect("paths");
        let failure = paths.create().expect_err("a file is in the way");
        assert!(failure.next.contains("--state-dir"), "{failure}");
    }
}
