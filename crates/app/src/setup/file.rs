//! A file of another program: read, copied aside, and written in one step.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// What the name of the copy ends with.
const COPY: &str = ".raincheck.bak";

/// A file as it was read.
#[derive(Debug)]
pub(super) struct Kept {
    /// Where it is, behind links.
    path: PathBuf,
    is_link: bool,
    before: Option<Vec<u8>>,
}

impl Kept {
    /// Reads a file; one that is not there is as good as empty.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // A link stays one: what it leads to is written.
        let (path, is_link) = match fs::symlink_metadata(path) {
            Ok(facts) => (fs::canonicalize(path)?, facts.is_symlink()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (path.to_owned(), false),
            Err(error) => return Err(error),
        };
        let before = read(&path)?;
        Ok(Self { path, is_link, before })
    }

    pub(super) fn text(&self) -> io::Result<&str> {
        let bytes = self.before.as_deref().unwrap_or_default();
        std::str::from_utf8(bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8 text"))
    }

    /// Writes another text in its place, atomically. Returns the copy of what it was.
    pub(super) fn write(&self, text: &str) -> io::Result<Option<PathBuf>> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let copy = self.before.as_deref().map(|before| {
            let copy = self.copy();
            self.replace(&copy, before).map(|()| copy)
        });
        let copy = copy.transpose()?;
        self.check_unchanged()?;
        self.replace(&self.path, text.as_bytes())?;
        Ok(copy)
    }

    /// Tells whether `setup` made the file, and nothing is left in it: before each change of a file that was
    /// there it is copied, and a copy of one that `setup` made holds its entry and nothing else.
    pub(super) fn is_of_setup(&self, left: &str, take: impl Fn(&str) -> Option<String>) -> bool {
        let is_first = || match fs::read_to_string(self.copy()) {
            Ok(copy) => take(&copy).is_some_and(|left| left != copy && is_blank(&left)),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        !self.is_link && is_blank(left) && is_first()
    }

    /// Removes the file, with the copy of what it was.
    pub(super) fn remove(&self) -> io::Result<()> {
        self.check_unchanged()?;
        fs::remove_file(&self.path)?;
        match fs::remove_file(self.copy()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn copy(&self) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(COPY);
        PathBuf::from(name)
    }

    fn check_unchanged(&self) -> io::Result<()> {
        if read(&self.path)? == self.before {
            return Ok(());
        }
        Err(io::Error::other("another program has just changed it"))
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".raincheck-").tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        if self.before.is_some() {
            fs::set_permissions(file.path(), fs::metadata(&self.path)?.permissions())?;
        }
        file.persist(path).map(drop).map_err(|error| error.error)
    }
}

/// Tells whether a client reads nothing from a text.
fn is_blank(text: &str) -> bool {
    matches!(text.trim_start_matches('\u{feff}').trim(), "" | "{}")
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
