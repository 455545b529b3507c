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
    before: Option<Vec<u8>>,
}

impl Kept {
    /// Reads a file; one that is not there is as good as empty.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // A link stays one: what it leads to is written.
        let path = match fs::symlink_metadata(path) {
            Ok(_) => fs::canonicalize(path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(error),
        };
        let before = read(&path)?;
        Ok(Self { path, before })
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
            let mut name = self.path.as_os_str().to_owned();
            name.push(COPY);
            let copy = PathBuf::from(name);
            self.replace(&copy, before).map(|()| copy)
        });
        let copy = copy.transpose()?;
        if read(&self.path)? != self.before {
            return Err(io::Error::other("another program has just changed it"));
        }
        self.replace(&self.path, text.as_bytes())?;
        Ok(copy)
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

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
