//! Writing and removing: staged where Unity does not look, and renamed into place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::kept::{self, Kept};
use super::{Done, FILES, Force, Project, Refusal, below};

pub(super) fn install(project: &Project, folder: &Path, force: Force) -> Result<Done, Refusal> {
    let found = Kept::find(folder).map_err(|_| Refusal::Occupied(folder.to_owned()))?;
    let current = Kept::current();
    let Some(before) = found else {
        let stage = Stage::new(project.root())?;
        stage.whole(current)?.put(folder)?;
        return Ok(Done { written: FILES.len(), removed: 0 });
    };
    let edited = before.edited(folder);
    if force == Force::No && !edited.is_empty() {
        return Err(Refusal::Edited(edited));
    }
    let changed: Vec<_> =
        FILES.iter().filter(|(name, _)| !kept::is_current(folder, name)).collect();
    let gone: Vec<&str> =
        before.names().filter(|name| !FILES.iter().any(|(ours, _)| ours == name)).collect();
    let list = current.to_bytes()?;
    let has_list = fs::read(folder.join(kept::NAME)).is_ok_and(|found| found == list);
    if changed.is_empty() && gone.is_empty() && has_list {
        return Ok(Done::default());
    }
    let stage = Stage::new(project.root())?;
    for (name, bytes) in &changed {
        let target = below(folder, name);
        if target.is_dir() {
            return Err(Refusal::Occupied(target));
        }
        stage.file(bytes)?.put(&target)?;
    }
    let removed = gone.iter().filter(|name| remove(folder, name)).count();
    // The list last: until then an install that was cut short is gone on with.
    stage.file(&list)?.put(&folder.join(kept::NAME))?;
    Ok(Done { written: changed.len(), removed })
}

pub(super) fn uninstall(folder: &Path, force: Force) -> Result<Done, Refusal> {
    let found = Kept::find(folder).map_err(|_| Refusal::Occupied(folder.to_owned()))?;
    let before = found.ok_or_else(|| Refusal::Absent(folder.to_owned()))?;
    let edited = before.edited(folder);
    if force == Force::No && !edited.is_empty() {
        return Err(Refusal::Edited(edited));
    }
    // What says that the package is there goes last.
    let (last, first): (Vec<&str>, Vec<&str>) =
        before.names().partition(|name| *name == super::MANIFEST);
    let removed = first.iter().chain(&last).filter(|name| remove(folder, name)).count();
    let left = first.iter().chain(&last).find(|name| below(folder, name).exists());
    if let Some(name) = left {
        return Err(Refusal::Failed(format!(
            "{} cannot be removed",
            below(folder, name).display()
        )));
    }
    remove(folder, kept::NAME);
    fs::remove_dir(folder).ok();
    Ok(Done { written: 0, removed })
}

/// Removes a file, and the folders above it that hold nothing any more.
fn remove(folder: &Path, name: &str) -> bool {
    let path = below(folder, name);
    let is_removed = fs::remove_file(&path).is_ok();
    let mut inner = path.parent();
    while let Some(part) = inner.filter(|part| *part != folder) {
        // One that holds something else stays.
        if fs::remove_dir(part).is_err() {
            break;
        }
        inner = part.parent();
    }
    is_removed
}

/// A folder beside `Packages` and `Assets`, on the same volume, that goes when it is dropped.
struct Stage {
    folder: PathBuf,
    /// The folders above it that were made for it.
    made: Vec<PathBuf>,
}

impl Stage {
    fn new(root: &Path) -> io::Result<Self> {
        let library = root.join("Library");
        let raincheck = library.join("Raincheck");
        let folder = raincheck.join(format!("install-{}", std::process::id()));
        let made = [raincheck, library].into_iter().filter(|path| !path.exists()).collect();
        fs::remove_dir_all(&folder).ok();
        let stage = Self { folder, made };
        fs::create_dir_all(&stage.folder)?;
        Ok(stage)
    }

    /// Stages one file.
    fn file(&self, bytes: &[u8]) -> io::Result<Staged> {
        let path = self.folder.join("file");
        fs::write(&path, bytes)?;
        Ok(Staged(path))
    }

    /// Stages the whole package.
    fn whole(&self, list: &Kept) -> io::Result<Staged> {
        let path = self.folder.join("package");
        for (name, bytes) in FILES {
            write(&below(&path, name), bytes)?;
        }
        write(&path.join(kept::NAME), &list.to_bytes()?)?;
        Ok(Staged(path))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
        for folder in &self.made {
            // One that something else was put into meanwhile stays.
            fs::remove_dir(folder).ok();
        }
    }
}

/// What is staged.
struct Staged(PathBuf);

impl Staged {
    /// Renames it into place. Where that is on another volume, it is copied beside its place first, under
    /// a name that Unity overlooks.
    fn put(self, target: &Path) -> Result<(), Refusal> {
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        // Windows renames no folder over an empty one.
        fs::remove_dir(target).ok();
        match fs::rename(&self.0, target) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let beside = target.with_file_name(format!(".{name}-{}", std::process::id()));
                let copied = copy(&self.0, &beside).and_then(|()| fs::rename(&beside, target));
                if copied.is_err() {
                    fs::remove_dir_all(&beside).or_else(|_| fs::remove_file(&beside)).ok();
                }
                Ok(copied?)
            }
            renamed => Ok(renamed?),
        }
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(|_| ());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes)
}
