//! One folder per start: `<folder>/<instance>/endpoint.json`, so that many servers stand side by side.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Endpoint, read};

const FILE: &str = "endpoint.json";

/// Returns the endpoint file of one start below a folder.
#[must_use]
pub fn of_instance(folder: &Path, instance_id: &str) -> PathBuf {
    folder.join(instance_id).join(FILE)
}

/// Reads the endpoint files of every start below a folder, the oldest first; files that cannot be read
/// are left out. Works with blocking calls.
#[must_use]
pub fn all(folder: &Path) -> Vec<Endpoint> {
    let mut all: Vec<Endpoint> = files(folder).map(|(_, endpoint)| endpoint).collect();
    all.sort_by(|a, b| (a.started_at, &a.instance_id).cmp(&(b.started_at, &b.instance_id)));
    all
}

/// Removes the endpoint files of starts whose process has ended without; returns how many there were.
/// Works with blocking calls.
#[must_use]
pub fn sweep(folder: &Path) -> usize {
    let ended = files(folder).filter(|(_, endpoint)| !endpoint.is_running());
    let removed = ended.filter(|(path, _)| {
        let is_removed = fs::remove_file(path).is_ok();
        // A folder that holds something else stays.
        path.parent().map(fs::remove_dir);
        is_removed
    });
    removed.count()
}

fn files(folder: &Path) -> impl Iterator<Item = (PathBuf, Endpoint)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let path = entry.path().join(FILE);
        Some((path.clone(), read(&path).ok()??))
    })
}

#[cfg(test)]
mod tests {
    use raincheck_core::time::Timestamp;

    use super::*;
    use crate::endpoint::{Kind, Place, Published};

    fn write(folder: &Path, instance: &str, started_at: i64) -> Published {
        let path = of_instance(folder, instance);
        let started_at = Timestamp::from_millis(started_at);
        let place = Place { path, kind: Kind::Http, started_at };
        Published::write(&place, "http://127.0.0.1:1", 1, instance, "s3cret").expect("written")
    }

    #[test]
    fn every_start_has_a_folder_that_goes_with_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let (second, first) = (write(dir.path(), "b", 2), write(dir.path(), "a", 1));
        let names: Vec<String> =
            all(dir.path()).into_iter().map(|endpoint| endpoint.instance_id).collect();
        assert_eq!(names, ["a", "b"], "[SEC-4]");
        assert_eq!(sweep(dir.path()), 0, "[SEC-4] a running server's file is left alone");
        drop((first, second));
        assert_eq!(dir.path().read_dir().expect("listed").count(), 0, "[SEC-4]");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_killed_server_left_is_swept() {
        let dir = tempfile::tempdir().expect("a folder");
        let _running = write(dir.path(), "running", 1);
        let killed = write(dir.path(), "killed", 2);
        let path = of_instance(dir.path(), "killed");
        let text = fs::read_to_string(&path).expect("there");
        let mut endpoint: Endpoint = serde_json::from_str(&text).expect("readable");
        // The number is taken again by another process.
        endpoint.pid_started = Timestamp::from_millis(1);
        fs::write(&path, serde_json::to_vec(&endpoint).expect("JSON")).expect("written");
        assert_eq!(sweep(dir.path()), 1, "[SEC-4]");
        assert_eq!(all(dir.path()).len(), 1);
        assert!(!path.parent().expect("a folder").exists());
        drop(killed);
    }
}
