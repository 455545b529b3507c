//! How an attempt ended, as its supervisor writes it down.

use std::io;

use raincheck_core::content::Json;
use raincheck_core::progress::Progress;
use raincheck_core::task::Artifact;
use raincheck_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::reason::Reason;
use crate::supervise::Ended;

/// The last thing that a supervisor does. Its result stays in the file the program wrote.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The attempt it is about.
    pub(crate) fence: u64,
    pub(crate) end: End,
    /// When its program had ended; unknown to older supervisors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<Timestamp>,
    /// Why the program was made to end, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<Reason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<Progress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) partial: Option<Json>,
    #[serde(default)]
    pub(crate) artifacts: Vec<Kept>,
    /// Whether the program wrote no result, so that none has to be looked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_no_result: bool,
    /// Whether a request to end came before all artifacts were taken, so that there are none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_cut: bool,
}

/// What became of the program.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    /// The system refused to start it.
    NotStarted {
        /// The system's number for the reason, where it has one.
        code: Option<i32>,
        /// The reason.
        text: String,
    },
    /// It was not started, since that could not be noted before.
    NotNoted {
        /// The reason.
        text: String,
    },
    /// It ran.
    Ended(Ended),
}

impl End {
    pub(crate) fn refused(error: &io::Error) -> Self {
        Self::NotStarted { code: error.raw_os_error(), text: error.to_string() }
    }
}

/// An artifact in the folder of the task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Kept {
    id: String,
    name: String,
    kind: String,
    size: u64,
    sha256: String,
    path: String,
}

impl From<&Artifact> for Kept {
    fn from(artifact: &Artifact) -> Self {
        let Artifact { id, name, kind, size, sha256, path } = artifact;
        let text = |text: &str| text.to_owned();
        let (id, name, kind) = (text(id.as_str()), text(name), text(kind));
        Self { id, name, kind, size: *size, sha256: text(sha256), path: text(path) }
    }
}

impl From<Kept> for Artifact {
    fn from(kept: Kept) -> Self {
        let Kept { id, name, kind, size, sha256, path } = kept;
        Self {
            id: id.into(),
            name: name.into(),
            kind: kind.into(),
            size,
            sha256: sha256.into(),
            path: path.into(),
        }
    }
}
