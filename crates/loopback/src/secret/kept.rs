//! A secret that outlives its server: the browser extension is paired once and knows it ever after.

use std::io;
use std::path::Path;

use super::Secret;
use crate::error::{Error, ErrorKind};
use crate::folder::Folder;

impl Secret {
    /// Reads the secret of a file, or draws one and writes it there.
    ///
    /// The file and its folder are readable for their owner only. Works with blocking calls.
    ///
    /// # Errors
    /// When the folder is another user's, or the file holds something else.
    pub fn kept(path: &Path) -> Result<Self, Error> {
        let (folder, name) = open(path)?;
        match folder.read(name).map_err(|error| unusable(path, error))? {
            None => create(&folder, name, path),
            Some(bytes) => std::str::from_utf8(&bytes)
                .ok()
                .and_then(|text| Self::from_text(text.trim_end()))
                .ok_or_else(|| unusable(path, io::ErrorKind::InvalidData.into())),
        }
    }

    /// Draws a new secret and writes it over the one of a file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn rotate(path: &Path) -> Result<Self, Error> {
        let (folder, name) = open(path)?;
        create(&folder, name, path)
    }
}

fn open(path: &Path) -> Result<(Folder, &str), Error> {
    Folder::of(path).map_err(|error| unusable(path, error))
}

fn create(folder: &Folder, name: &str, path: &Path) -> Result<Secret, Error> {
    let secret = Secret::random()?;
    let line = format!("{}\n", secret.text());
    folder.replace(name, line.as_bytes()).map_err(|error| unusable(path, error))?;
    Ok(secret)
}

fn unusable(path: &Path, error: io::Error) -> Error {
    let message = format!(
        "the secret in `{}` cannot be used; remove the file to have a new one made",
        path.display()
    );
    Error::new(ErrorKind::File, message).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_secret_stays_until_it_is_rotated() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("browser/secret");
        let first = Secret::kept(&path).expect("made");
        assert_eq!(Secret::kept(&path).expect("read").text(), first.text());
        let second = Secret::rotate(&path).expect("rotated");
        assert_ne!(second.text(), first.text());
        assert_eq!(Secret::kept(&path).expect("read").text(), second.text());
    }

    #[test]
    fn a_file_with_something_else_is_left_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("secret");
        std::fs::write(&path, "letter to a friend").expect("written");
        let error = Secret::kept(&path).expect_err("no secret");
        assert_eq!(error.kind(), ErrorKind::File);
        assert!(error.to_string().contains("remove the file"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "letter to a friend");
    }
}
