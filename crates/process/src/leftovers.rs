//! What an earlier server left of tasks that may be nobody's.

use std::fs::{DirEntry, read_dir};
use std::io;
use std::path::Path;

use raincheck_core::ids::TaskId;

use crate::attempt::is_held;

/// Lists the tasks that have a folder of their own below `root` in which no supervisor lives.
///
/// # Errors
/// When a folder cannot be read; nothing is known of what is in it then.
pub(crate) fn of(root: &Path) -> io::Result<Vec<TaskId>> {
    let all = match read_dir(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        all => all?,
    };
    #[cfg(unix)]
    crate::supervisor::clear_unused(root)?;
    let mut found = Vec::new();
    for entry in all {
        let entry = entry?;
        if let Some(id) = task_of(&entry)
            && !is_in_use(&entry.path())?
        {
            found.push(id);
        }
    }
    Ok(found)
}

/// Returns the task whose folder it is: its name is the task's own spelling, letter by letter.
fn task_of(entry: &DirEntry) -> Option<TaskId> {
    let name = entry.file_name();
    let id: TaskId = name.to_str()?.parse().ok()?;
    let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
    (is_folder && *id.to_string() == *name).then_some(id)
}

/// Tells whether an attempt below the folder of a task may still run.
fn is_in_use(task: &Path) -> io::Result<bool> {
    for entry in read_dir(task)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let number = name.strip_prefix('a').map(|rest| rest.trim_end_matches(".supervisor"));
        let Some(number) = number.and_then(|number| number.parse::<u32>().ok()) else { continue };
        if is_held(task, number) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    fn id(n: u64) -> TaskId {
        TaskId::from_parts(n, [7; 10])
    }

    // [SWEEP-1, LEASE-3]
    #[cfg(unix)]
    #[test]
    fn a_folder_in_which_a_supervisor_lives_is_no_leftover_and_nor_is_what_is_no_task() {
        let root = tempfile::tempdir().expect("a folder");
        let made = |path: String| {
            fs::create_dir_all(root.path().join(&path)).expect("made");
            root.path().join(path)
        };
        let held = made(format!("{}/a2.supervisor", id(1))).join("lock");
        let lock = File::create(held).expect("a lock");
        lock.lock().expect("locked");
        let ended = made(format!("{}/a1.supervisor", id(2))).join("lock");
        File::create(ended).expect("a lock that nobody holds");
        made(format!("{}/artifacts", id(3)));
        // What cannot be looked into may be alive.
        made(format!("{}/a1.supervisor/lock", id(4)));
        made("notes".to_owned());
        made(id(5).to_string().to_uppercase());
        fs::write(root.path().join(id(6).to_string()), "a file").expect("written");
        std::os::unix::fs::symlink("/", root.path().join(id(7).to_string())).expect("linked");

        let found = || {
            let mut found = of(root.path()).expect("a list");
            found.sort_unstable();
            found
        };
        assert_eq!(found(), [id(2), id(3)]);
        drop(lock);
        assert_eq!(found(), [id(1), id(2), id(3)]);
        assert_eq!(of(&root.path().join("nowhere")).expect("nothing"), []);
    }
}
