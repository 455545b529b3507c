//! The folder of one running server, for what ends with it.
//!
//! The folder lives as long as the process: it is locked while the server runs and removed when it
//! ends. What a killed server leaves behind has a free lock and is removed by the next one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use raincheck_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::paths::{create_one_private, create_private, create_private_file, unusable};
use crate::standing::{self, Stands};

const LOCK: &str = "lock";
const CARD: &str = "instance.json";
const PREFIX: &str = "server-";

/// Under this name a folder is made ready before it gets its own.
const UNFINISHED: &str = ".new-";

/// What a server says about itself, for `status` and `doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// The number of its process.
    pub pid: u32,
    /// The version of the binary.
    pub version: String,
    /// When it started.
    pub started_at: Timestamp,
    /// Who owns its tasks.
    pub scope: String,
    /// The file that keeps its tasks; `None` for a store in memory.
    #[serde(default)]
    pub store: Option<PathBuf>,
    /// Its configuration file.
    pub config: Option<PathBuf>,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// Its lanes.
    pub lanes: Vec<LaneCard>,
    /// What starts the server whose tools it serves, if it wraps one, without what may be secret in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wraps: Option<String>,
}

/// A lane as a server has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneCard {
    /// Its name.
    pub name: String,
    /// How many tasks run at once.
    pub concurrency: u32,
    /// How many tasks may wait.
    pub queue_limit: u32,
}

/// The folder of this process. Dropping it removes the folder.
#[derive(Debug)]
pub struct Instance {
    dir: PathBuf,
    lock: Option<File>,
}

/// Finds a name below `home` that no folder has yet. Nothing is created.
///
/// A process that has ended may have had the same number and left its folder.
#[must_use]
pub fn unused(home: &Path) -> PathBuf {
    let stem = home.join(format!("{PREFIX}{}", std::process::id()));
    let name = |n: u32| stem.with_added_extension(n.to_string());
    let mut n = 1;
    while name(n).exists() {
        n += 1;
    }
    name(n)
}

impl Instance {
    /// Creates and locks a folder under a name that is [`unused`].
    ///
    /// # Errors
    /// Why the folder cannot be made, and what to do.
    pub fn open(dir: &Path, card: &Card) -> Result<Self, Failure> {
        Self::create(dir, card).map_err(|error| unusable(dir, &error))
    }

    fn create(dir: &Path, card: &Card) -> io::Result<Self> {
        let (Some(home), Some(name)) = (dir.parent(), dir.file_name()) else {
            return Err(io::ErrorKind::InvalidFilename.into());
        };
        create_private(home)?;
        let mut fresh = OsString::from(UNFINISHED);
        fresh.push(name);
        let fresh = home.join(fresh);
        create_one_private(&fresh)?;
        // The lock gets its name once it is held: others take a free one for left behind.
        let unnamed = fresh.join(UNFINISHED);
        let lock = create_private_file(&unnamed)?;
        lock.try_lock()?;
        fs::rename(unnamed, fresh.join(LOCK))?;
        let mut file = create_private_file(&fresh.join(CARD))?;
        file.write_all(&serde_json::to_vec_pretty(card)?)?;
        fs::rename(&fresh, dir)?;
        Ok(Self { dir: dir.to_owned(), lock: Some(lock) })
    }

    /// Returns the folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if cfg!(windows) {
            // There a file that is open cannot be removed.
            self.lock = None;
        }
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            tracing::warn!(%error, "the folder of this server was not removed");
        }
    }
}

/// A server's folder as another process sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The folder.
    pub dir: PathBuf,
    /// Whether its server runs.
    pub is_running: bool,
    /// What the server says about itself, when it can be read.
    pub card: Option<Card>,
    /// What it is to what it shares with others, if anything.
    pub stands: Option<Stands>,
}

/// Looks at the folders of all servers below `home`, without changing anything.
#[must_use]
pub fn look(home: &Path) -> Vec<Seen> {
    let mut seen: Vec<Seen> = folders(home)
        .map(|dir| Seen {
            is_running: left_behind(&dir).is_none(),
            stands: standing::read(&dir),
            card: fs::read(dir.join(CARD)).ok().and_then(|text| serde_json::from_slice(&text).ok()),
            dir,
        })
        .collect();
    seen.sort_by(|a, b| a.dir.cmp(&b.dir));
    seen
}

/// Removes what servers that were killed left below `home`; returns how many there were.
#[must_use]
pub fn sweep(home: &Path) -> usize {
    let remove = |dir: &PathBuf| {
        let Some(mut held) = left_behind(dir).map(Some) else { return false };
        if cfg!(windows) {
            held = None;
        }
        let is_removed = fs::remove_dir_all(dir).is_ok();
        drop(held);
        is_removed
    };
    folders(home).filter(remove).count()
}

fn folders(home: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(PREFIX) || name.starts_with(UNFINISHED)
    })
}

/// Takes the lock of a folder that nobody holds. One without a lock file is still being made.
fn left_behind(dir: &Path) -> Option<File> {
    let path = dir.join(LOCK);
    let lock = File::open(&path).ok()?;
    lock.try_lock().ok()?;
    is_at(&lock, &path).then_some(lock)
}

/// Tells whether an open file is still the one that has this name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |facts: fs::Metadata| (facts.dev(), facts.ino());
    file.metadata().ok().map(identity) == fs::metadata(path).ok().map(identity)
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> Card {
        Card {
            pid: std::process::id(),
            version: "1".into(),
            started_at: Timestamp::from_millis(0),
            scope: "local".into(),
            store: None,
            config: None,
            tools: vec!["render".into()],
            lanes: vec![LaneCard { name: "one".into(), concurrency: 1, queue_limit: 2 }],
            wraps: None,
        }
    }

    #[test]
    fn a_running_server_is_seen_and_its_folder_ends_with_it() {
        let home = tempfile::tempdir().expect("a folder");
        let first = Instance::open(&unused(home.path()), &card()).expect("a folder");
        let second = Instance::open(&unused(home.path()), &card()).expect("another folder");
        assert_ne!(first.dir(), second.dir());
        let seen = look(home.path());
        assert_eq!(seen.len(), 2);
        assert!(seen.iter().all(|seen| seen.is_running && seen.card == Some(card())));
        assert_eq!(sweep(home.path()), 0);
        drop((first, second));
        assert_eq!(look(home.path()), []);
    }

    #[test]
    fn what_a_killed_server_left_is_swept() {
        let home = tempfile::tempdir().expect("a folder");
        let mut instance = Instance::open(&unused(home.path()), &card()).expect("a folder");
        fs::write(instance.dir().join("log"), "lines").expect("written");
        instance.lock = None;
        assert!(look(home.path()).iter().all(|seen| !seen.is_running));
        assert_eq!(sweep(home.path()), 1);
        assert_eq!(look(home.path()), []);
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_can_look_into_the_folder() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().expect("a folder");
        let instance = Instance::open(&unused(home.path()), &card()).expect("a folder");
        let mode = |path: &Path| path.metadata().expect("metadata").permissions().mode() & 0o777;
        assert_eq!(mode(instance.dir()), 0o700);
        for name in [LOCK, CARD] {
            assert_eq!(mode(&instance.dir().join(name)), 0o600, "{name}");
        }
    }

    #[test]
    fn a_server_that_starts_while_others_sweep_keeps_its_folder() {
        let home = tempfile::tempdir().expect("a folder");
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let ordering = std::sync::atomic::Ordering::Relaxed;
        let n_swept = std::thread::scope(|scope| {
            let sweeper = scope.spawn(|| {
                let mut n_swept = 0;
                while !is_over.load(ordering) {
                    n_swept += sweep(home.path());
                }
                n_swept
            });
            let opened: Vec<_> =
                (0..300).map(|_| Instance::open(&unused(home.path()), &card()).map(drop)).collect();
            is_over.store(true, ordering);
            assert!(opened.iter().all(Result::is_ok), "{:?}", opened.iter().find(|it| it.is_err()));
            sweeper.join().expect("no panic")
        });
        assert_eq!(n_swept, 0, "none was left behind");
    }

    #[test]
    fn a_folder_that_is_being_made_is_left_alone() {
        let home = tempfile::tempdir().expect("a folder");
        fs::create_dir(home.path().join(".new-server-1.1")).expect("created");
        fs::create_dir(home.path().join("tasks")).expect("created");
        assert_eq!(sweep(home.path()), 0);
    }

    #[test]
    fn a_home_that_cannot_be_is_explained() {
        let home = tempfile::tempdir().expect("a folder");
        fs::write(home.path().join("file"), "").expect("written");
        let failure =
            Instance::open(&unused(&home.path().join("file")), &card()).expect_err("a file");
        assert!(failure.next.contains("--state-dir"), "{failure}");
    }
}
