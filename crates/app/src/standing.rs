//! What a server's folder says of who owns what the server shares [ATTACH-9].

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use raincheck::Standing;
use serde::{Deserialize, Serialize};

use crate::paths::create_private_file;

const NAME: &str = "standing.json";

/// What a server is to what it shares, as other processes read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Stands {
    /// It owns it.
    Owner,
    /// It is served by the owner.
    Attached {
        /// The owner's process.
        to: u32,
    },
    /// It is not served by the owner, and owns nothing.
    Apart {
        /// The owner's process, where that is known.
        from: Option<u32>,
    },
}

impl From<Standing> for Stands {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::Owner => Self::Owner,
            Standing::Attached(to) => Self::Attached { to },
            Standing::Apart(from) => Self::Apart { from },
        }
    }
}

/// Writes it into the folder of a server, once there is one. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Plate(Arc<Mutex<Shown>>);

#[derive(Debug, Default)]
struct Shown {
    dir: Option<PathBuf>,
    stands: Option<Stands>,
}

impl Plate {
    /// Shows what the server is from now on. Works with blocking calls.
    pub fn show(&self, standing: Standing) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shown.stands = Some(standing.into());
        shown.write();
    }

    /// Shows it in a folder. Works with blocking calls.
    pub(crate) fn hang(&self, dir: &Path) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shown.dir = Some(dir.to_owned());
        shown.write();
    }
}

impl Shown {
    fn write(&self) {
        let (Some(dir), Some(stands)) = (&self.dir, &self.stands) else { return };
        if let Err(error) = write(dir, stands) {
            tracing::debug!(%error, "status cannot tell what this server is");
        }
    }
}

/// Writes the file beside and renames it, so that it is read whole.
fn write(dir: &Path, stands: &Stands) -> io::Result<()> {
    let fresh = dir.join(".standing");
    if fresh.exists() {
        fs::remove_file(&fresh)?;
    }
    let mut file = create_private_file(&fresh)?;
    serde_json::to_writer(&mut file, stands)?;
    drop(file);
    fs::rename(fresh, dir.join(NAME))
}

/// Reads what a server says that it is.
pub(crate) fn read(dir: &Path) -> Option<Stands> {
    serde_json::from_slice(&fs::read(dir.join(NAME)).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_is_stands_in_its_folder_as_it_changes() {
        // [ATTACH-9]
        let dir = tempfile::tempdir().expect("a folder");
        let plate = Plate::default();
        plate.show(Standing::Attached(7));
        assert_eq!(read(dir.path()), None, "it has no folder yet");
        plate.hang(dir.path());
        assert_eq!(read(dir.path()), Some(Stands::Attached { to: 7 }));
        plate.show(Standing::Owner);
        assert_eq!(read(dir.path()), Some(Stands::Owner));
        let text = serde_json::to_string(&Stands::Apart { from: None }).expect("JSON");
        assert_eq!(text, r#"{"is":"apart","from":null}"#);
    }
}
