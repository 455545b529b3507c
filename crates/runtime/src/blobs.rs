//! Large bytes as files: written while they stream in, immutable once they are named.

use std::fmt;
use std::io;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};
use tokio::fs::{self, File};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use raincheck_core::ids::ArtifactId;

/// A directory of blobs, each a file named by its id.
#[derive(Clone, Debug)]
pub struct Blobs {
    root: PathBuf,
}

/// What is known of a blob once it is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its size in bytes.
    pub size: u64,
    /// The SHA-256 of its bytes, in lower-case hex.
    pub sha256: String,
}

impl Blobs {
    /// Keeps blobs in `root`, which is created with the first one.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Copies a stream into the blob `id`: all of it or, on any failure, nothing.
    ///
    /// The blob is on the disk, and can be opened, once this returns.
    ///
    /// # Errors
    /// `InvalidInput` for an id that is no plain name, `AlreadyExists` for one that is taken,
    /// `FileTooLarge` beyond `max` bytes, and whatever reading or writing meets.
    ///
    /// # Cancel safety
    /// Dropping the future leaves no blob behind.
    pub async fn write(
        &self,
        id: &ArtifactId,
        source: &mut (impl AsyncRead + Unpin + Send),
        max: u64,
    ) -> io::Result<Written> {
        let path = self.path(id)?;
        if fs::try_exists(&path).await? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::create_dir_all(&self.root).await?;
        let unfinished = Unfinished(path.with_extension("part"));
        let mut file = File::options().write(true).create_new(true).open(&unfinished.0).await?;
        let mut hasher = Sha256::new();
        let mut size = 0;
        let mut buffer = vec![0; 64 << 10];
        loop {
            let n = source.read(&mut buffer).await?;
            let bytes = buffer.get(..n).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            size += bytes.len() as u64;
            if size > max {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            hasher.update(bytes);
            file.write_all(bytes).await?;
        }
        file.flush().await?;
        file.sync_all().await?;
        fs::rename(&unfinished.0, &path).await?;
        Ok(Written { size, sha256: hex(&hasher.finalize()) })
    }

    /// Opens a blob for reading.
    ///
    /// # Errors
    /// `NotFound` when there is none of this id.
    pub async fn open(&self, id: &ArtifactId) -> io::Result<File> {
        File::open(self.path(id)?).await
    }

    /// Removes a blob; none of this id is fine.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub async fn remove(&self, id: &ArtifactId) -> io::Result<()> {
        match fs::remove_file(self.path(id)?).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    /// Returns the path of a blob: ids are plain names, so that none leads out of the directory.
    fn path(&self, id: &ArtifactId) -> io::Result<PathBuf> {
        let name = id.as_str();
        let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if name.is_empty() || name.len() > 128 || !is_plain {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the id of a blob"));
        }
        Ok(self.root.join(name))
    }
}

/// A file that goes away unless it was renamed.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After the rename there is nothing left to remove.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = fmt::Write::write_fmt(&mut text, format_args!("{byte:02x}"));
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_blob_is_read_back_with_its_size_and_hash() {
        let root = tempfile::tempdir().expect("a directory");
        let blobs = Blobs::new(root.path().join("blobs"));
        let id = ArtifactId::from("art_1");
        let written = blobs.write(&id, &mut &b"abc"[..], 10).await.expect("written");
        assert_eq!(written.size, 3);
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(written.sha256, abc);
        let mut text = String::new();
        let mut file = blobs.open(&id).await.expect("open");
        file.read_to_string(&mut text).await.expect("read");
        assert_eq!(text, "abc");
        let again = blobs.write(&id, &mut &b"other"[..], 10).await.expect_err("taken");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        blobs.remove(&id).await.expect("removed");
        blobs.remove(&id).await.expect("removed twice");
        assert_eq!(blobs.open(&id).await.expect_err("gone").kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn what_is_too_large_leaves_nothing_behind() {
        let root = tempfile::tempdir().expect("a directory");
        let blobs = Blobs::new(root.path());
        let id = ArtifactId::from("art_2");
        let error = blobs.write(&id, &mut &[7; 100][..], 99).await.expect_err("too large");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(std::fs::read_dir(root.path()).expect("a directory").count(), 0);
    }

    #[tokio::test]
    async fn no_id_leads_out_of_the_directory() {
        let blobs = Blobs::new("/nowhere");
        for name in ["", "..", "../x", "a/b", "a.part", "a\0b", "é"] {
            let error = blobs.open(&ArtifactId::from(name)).await.expect_err("refused");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name:?}");
        }
    }
}
