//! Large contents as files beside the database, so that they do not pass its writer.
//!
//! A file is whole and on the disk before the row that names it is written, and goes after the row is
//! gone. That holds for every store: a row may outlive a loss of power by chance, and half a file
//! would then pass for a content. What a crash leaves in between is swept at the next opening.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use raincheck_core::ids::TaskId;

use crate::schema::beside;

/// Contents of more bytes than this are files.
pub(crate) const INLINE: usize = 64 << 10;

/// How many bytes go to the disk at once, so that a commit never waits behind a long queue there.
const PART: usize = 2 << 20;

/// A content as its row holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// In the row.
    Inline(Vec<u8>),
    /// In a file of this name.
    File(String),
}

impl Stored {
    pub(crate) fn body(&self) -> Option<&[u8]> {
        match self {
            Self::Inline(bytes) => Some(bytes),
            Self::File(_) => None,
        }
    }

    pub(crate) fn file(&self) -> Option<&str> {
        match self {
            Self::Inline(_) => None,
            Self::File(name) => Some(name),
        }
    }

    /// How many bytes go through the writer.
    pub(crate) fn size(&self) -> usize {
        self.body().map_or(0, <[u8]>::len)
    }
}

/// The folder of the files.
#[derive(Debug)]
pub(crate) struct Files {
    folder: PathBuf,
    /// Whether the name of the folder lasts.
    is_kept: AtomicBool,
    /// Names never repeat within a process, and the epoch tells processes apart.
    next: AtomicU64,
    epoch: AtomicU64,
}

impl Files {
    pub(crate) fn new(store: &Path) -> Self {
        Self {
            folder: folder_of(store),
            is_kept: AtomicBool::new(false),
            next: AtomicU64::new(1),
            epoch: AtomicU64::new(0),
        }
    }

    pub(crate) fn begin_epoch(&self, epoch: u32) {
        self.epoch.store(u64::from(epoch), Ordering::Release);
    }

    /// Writes a file, whole or not at all, and returns its name.
    pub(crate) fn write(&self, id: TaskId, bytes: &[u8]) -> io::Result<String> {
        let (epoch, n) =
            (self.epoch.load(Ordering::Acquire), self.next.fetch_add(1, Ordering::Relaxed));
        let name = format!("{id}-{epoch}-{n}");
        self.keep_folder()?;
        let path = self.folder.join(&name);
        let written = self.write_to(&path, bytes);
        if written.is_err() {
            // What could not be written whole is of no use; the first failure is the one to tell.
            let _ = fs::remove_file(&path);
        }
        written.map(|()| name)
    }

    /// Makes the folder, and its name last.
    fn keep_folder(&self) -> io::Result<()> {
        if !self.is_kept.load(Ordering::Acquire) {
            make_private_folder(&self.folder)?;
            if let Some(above) = self.folder.parent() {
                sync_folder(above)?;
            }
            self.is_kept.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn write_to(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = open_private(path)?;
        for part in bytes.chunks(PART) {
            file.write_all(part)?;
            file.sync_data()?;
        }
        sync_folder(&self.folder)
    }

    /// Tells whether a file is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.folder.join(name).is_file()
    }

    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.folder.join(name))
    }

    /// Removes files, those that are gone already included.
    pub(crate) fn remove(&self, names: &[String]) {
        for name in names {
            match fs::remove_file(self.folder.join(name)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => tracing::warn!(file = %name, %error, "a content was not removed"),
            }
        }
    }

    /// Lists every file.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }
}

/// Names the folder of a store's files.
pub(crate) fn folder_of(store: &Path) -> PathBuf {
    beside(store, ".contents")
}

/// Follows links to the file that SQLite opens in the end: everything beside it is named after that one,
/// so that two names of one store have one lock, one log and one folder of contents.
pub(crate) fn behind_links(path: &Path) -> PathBuf {
    /// More links than any system follows.
    const MOST: usize = 64;

    let mut path = path.to_owned();
    for _ in 0..MOST {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().map_or_else(|| target.clone(), |folder| folder.join(&target));
    }
    path
}

/// Opens a file for reading and writing, and makes it for its owner alone if it is not there.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes a folder for its owner alone. One that an earlier version made for everybody to read is closed.
fn make_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;

        let mode = fs::metadata(path)?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
        }
    }
    Ok(())
}

/// Puts a folder's names on the disk, and its own name in the folder above, and so on: any of them
/// may have been made a moment ago, by whomever.
pub(crate) fn sync_folders_above(folder: &Path) -> io::Result<()> {
    let folder = or_current(folder);
    sync_folder(folder)?;
    let absolute = std::path::absolute(folder)?;
    for above in absolute.ancestors().skip(1) {
        match sync_folder(above) {
            Ok(()) => {}
            // Nobody made a folder a moment ago where none can be made, or where one may not look.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied
                        | io::ErrorKind::ReadOnlyFilesystem
                        | io::ErrorKind::InvalidInput
                        | io::ErrorKind::Unsupported
                ) =>
            {
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Puts the names of a folder's files on the disk.
#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(or_current(folder))?.sync_all()
}

/// The folder of a plain file name has no name, and is the current one.
fn or_current(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

/// Puts the names of a folder's files on the disk: the file system does so by itself here.
#[cfg(not(unix))]
pub(crate) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_may_have_a_plain_file_name() {
        let folder = Path::new("tasks.db").parent().expect("an unnamed folder");
        sync_folders_above(folder).expect("the current folder");
    }

    #[test]
    #[cfg(unix)]
    fn the_folder_of_contents_is_its_owners_alone() {
        // [SEC-4]
        use std::os::unix::fs::PermissionsExt as _;

        let above = tempfile::tempdir().expect("a folder");
        let open = above.path().join("open");
        fs::create_dir(&open).expect("made");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("opened up");
        for folder in [above.path().join("new"), open] {
            make_private_folder(&folder).expect("made");
            let mode = fs::metadata(&folder).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
        }
    }
}
