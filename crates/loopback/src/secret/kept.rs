//! A secret that outlives its server: the browser extension is paired once and knows it ever after.

use std::io;
use std::path::Path;

use super::Secret;
use crate::error::{Error, ErrorKind};
use crate::folder::Folder;

impl Secret {
    /// Reads the secret of a file, or draws one and writes it there. Of several that draw one at the
    /// same time the first writes it, and the others read that one.
    ///
    /// The file and its folder are readable for their owner only. Works with blocking calls.
    ///
    /// # Errors
    /// When the folder is another user's, or the file holds something else.
    pub fn kept(path: &Path) -> Result<Self, Error> {
        let (folder, name) = open(path)?;
        if let Some(secret) = read(&folder, name).map_err(|error| unusable(path, error))? {
            return Ok(secret);
        }
        let secret = Self::random()?;
        let kept = match folder.publish(name, line(&secret).as_bytes()) {
            Ok(true) => return Ok(secret),
            Ok(false) => read(&folder, name),
            Err(error) => Err(error),
        };
        kept.and_then(|secret| secret.ok_or_else(|| io::ErrorKind::NotFound.into()))
            .map_err(|error| unusable(path, error))
    }

    /// Draws a new secret and writes it over the one of a file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn rotate(path: &Path) -> Result<Self, Error> {
        let (folder, name) = open(path)?;
        let secret = Self::random()?;
        folder.replace(name, line(&secret).as_bytes()).map_err(|error| unusable(path, error))?;
        Ok(secret)
    }
}

fn open(path: &Path) -> Result<(Folder, &str), Error> {
    Folder::of(path).map_err(|error| unusable(path, error))
}

/// Reads a secret; `None` when there is no file.
fn read(folder: &Folder, name: &str) -> io::Result<Option<Secret>> {
    let Some(bytes) = folder.read(name)? else { return Ok(None) };
    let text = std::str::from_utf8(&bytes).ok();
    let secret = text.and_then(|text| Secret::from_text(text.trim_end()));
    secret.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn line(secret: &Secret) -> String {
    format!("{}\n", secret.text())
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
    fn of_many_that_draw_a_secret_at_once_all_have_the_same() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("http/secret");
        let drawn: Vec<String> = std::thread::scope(|scope| {
            let draw = || Secret::kept(&path).expect("made or read").text().to_owned();
            let all: Vec<_> = (0..16).map(|_| scope.spawn(draw)).collect();
            all.into_iter().map(|one| one.join().expect("no panic")).collect()
        });
        assert!(drawn.iter().all(|one| *one == drawn[0]), "{} secrets", drawn.len());
        let left = path.parent().expect("a folder").read_dir().expect("listed").count();
        assert_eq!(left, 1, "nothing is left beside it");
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
