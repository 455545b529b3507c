//! `endpoint.json`: how a client on this machine finds the listener and its secret [SEC-4].

mod instances;
mod process;

use std::io;
use std::path::{Path, PathBuf};

use raincheck_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};
use crate::folder::Folder;

pub use instances::{all, of_instance, sweep};

/// The version of the file's format.
const VERSION: u32 = 1;

/// What listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The bridge to a browser extension.
    Browser,
    /// The bridge to Unity editors.
    Unity,
    /// The programs of the same user, in a folder of this start's own.
    Http,
    /// Processes of the same binary that share what this one owns.
    Owner,
}

/// Where a listener tells others about itself.
#[derive(Clone, Debug)]
pub struct Place {
    /// The file, in a folder that holds nothing but private files of the same program.
    pub path: PathBuf,
    /// What listens.
    pub kind: Kind,
    /// When the server started.
    pub started_at: Timestamp,
}

/// What the file says. Unknown fields are ignored.
#[derive(Clone, Serialize, Deserialize)]
pub struct Endpoint {
    /// The version of the format, 1.
    pub v: u32,
    /// What listens.
    pub kind: Kind,
    /// Its port.
    pub port: u16,
    /// Its address, without a path.
    pub url: String,
    /// Its process.
    pub pid: u32,
    /// When its process started; with `pid` it names one process of this machine.
    pub pid_started: Timestamp,
    /// The one start of the server that wrote the file.
    pub instance_id: String,
    /// The bearer: base64url of 32 bytes.
    pub secret: String,
    /// When the server started.
    pub started_at: Timestamp,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("kind", &self.kind)
            .field("url", &self.url)
            .field("pid", &self.pid)
            .field("instance_id", &self.instance_id)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Returns whether the process that wrote the file still runs. Works with blocking calls.
    #[must_use]
    pub fn is_running(&self) -> bool {
        process::is_running(self.pid, self.pid_started)
    }
}

/// Reads an endpoint file; `None` when there is none. Works with blocking calls.
///
/// # Errors
/// When the file is there and cannot be read as one.
pub fn read(path: &Path) -> Result<Option<Endpoint>, Error> {
    if !path.exists() {
        return Ok(None);
    }
    let found = Folder::of(path).and_then(|(folder, name)| folder.read(name));
    let Some(bytes) = found.map_err(|error| unusable(path, error))? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| unusable(path, error.into()))
}

/// The file of this instance. Dropping it removes the file, unless another instance has replaced it.
#[derive(Debug)]
pub(crate) struct Published {
    folder: Folder,
    name: String,
    instance_id: String,
    /// The folder that is this instance's alone.
    own: Option<PathBuf>,
}

impl Published {
    /// Writes the file.
    pub(crate) fn write(
        place: &Place,
        url: &str,
        port: u16,
        instance_id: &str,
        secret: &str,
    ) -> Result<Self, Error> {
        let endpoint = Endpoint {
            v: VERSION,
            kind: place.kind,
            port,
            url: url.to_owned(),
            pid: std::process::id(),
            pid_started: process::started().unwrap_or(place.started_at),
            instance_id: instance_id.to_owned(),
            secret: secret.to_owned(),
            started_at: place.started_at,
        };
        let written = serde_json::to_vec(&endpoint).map_err(io::Error::from).and_then(|bytes| {
            let (folder, name) = Folder::of(&place.path)?;
            folder.replace(name, &bytes)?;
            Ok((folder, name.to_owned()))
        });
        let (folder, name) = written.map_err(|error| unusable(&place.path, error))?;
        let own = place.path.parent().filter(|_| place.kind == Kind::Http).map(Path::to_owned);
        Ok(Self { folder, name, instance_id: endpoint.instance_id, own })
    }

    fn is_ours(&self) -> bool {
        let found = self.folder.read(&self.name).ok().flatten();
        let endpoint = found.and_then(|bytes| serde_json::from_slice::<Endpoint>(&bytes).ok());
        endpoint.is_some_and(|endpoint| endpoint.instance_id == self.instance_id)
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        if self.is_ours()
            && let Err(error) = self.folder.remove(&self.name)
        {
            tracing::warn!(%error, "the endpoint file stays behind");
        }
        if let Some(own) = &self.own {
            // One that holds something else stays.
            std::fs::remove_dir(own).ok();
        }
    }
}

fn unusable(path: &Path, error: io::Error) -> Error {
    let message = format!(
        "the endpoint file `{}` cannot be used; see that its folder is yours and writable",
        path.display()
    );
    Error::new(ErrorKind::File, message).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(dir: &Path) -> Place {
        let path = dir.join("run/endpoint.json");
        Place { path, kind: Kind::Unity, started_at: Timestamp::from_millis(1_700_000_000_000) }
    }

    fn write(place: &Place, instance: &str) -> Published {
        Published::write(place, "http://127.0.0.1:4711", 4711, instance, "s3cret").expect("written")
    }

    #[test]
    fn the_file_says_exactly_what_clients_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let place = place(dir.path());
        let _published = write(&place, "one");
        let text = std::fs::read_to_string(&place.path).expect("there");
        let pid_started = read(&place.path).expect("readable").expect("there").pid_started;
        let expected = format!(
            r#"{{"v":1,"kind":"unity","port":4711,"url":"http://127.0.0.1:4711","pid":{},"pid_started":"{pid_started}","instance_id":"one","secret":"s3cret","started_at":"2023-11-14T22:13:20.000Z"}}"#,
            std::process::id()
        );
        assert_eq!(text, expected, "[SEC-4]");
    }

    #[test]
    fn the_file_goes_with_the_instance_that_wrote_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let place = place(dir.path());
        let first = write(&place, "one");
        let second = write(&place, "two");
        drop(first);
        let found = read(&place.path).expect("readable").expect("there");
        assert_eq!(found.instance_id, "two", "[SEC-4] another's file is left alone");
        drop(second);
        assert!(read(&place.path).expect("readable").is_none(), "[SEC-4]");
    }

    #[test]
    fn a_folder_that_cannot_be_had_is_explained() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("run"), "").expect("a file in the way");
        let place = place(dir.path());
        let error = Published::write(&place, "", 1, "one", "s3cret").expect_err("no folder");
        assert_eq!(error.kind(), ErrorKind::File);
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }

    #[test]
    fn debug_does_not_show_the_secret() {
        let dir = tempfile::tempdir().expect("a folder");
        let place = place(dir.path());
        let _published = write(&place, "one");
        let found = read(&place.path).expect("readable").expect("there");
        assert!(!format!("{found:?}").contains("s3cret"), "[SEC-3]");
    }
}
