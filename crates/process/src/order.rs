//! What to start, and what it may use: plain data that the rest of the crate passes down.

use std::ffi::OsString;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The file to run.
    pub(crate) program: OsString,
    /// Its arguments, without its own name.
    pub(crate) arguments: Vec<String>,
    /// The folder it starts in.
    pub(crate) folder: OsString,
    /// Its whole environment, but for the number of its control descriptor.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The entry of `environment` that tells this tree from every other.
    pub(crate) mark: OsString,
    /// What it may use.
    pub(crate) limits: Limits,
}

/// What a program and all it started may use together, in MiB.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    pub(crate) memory_mb: Option<u64>,
    pub(crate) scratch_mb: Option<u64>,
    /// The folder whose size counts.
    pub(crate) scratch: OsString,
}

impl Limits {
    /// Takes the limits of a program that may fill a folder.
    pub(crate) fn new(memory_mb: Option<u64>, scratch_mb: Option<u64>, scratch: &Path) -> Self {
        Self { memory_mb, scratch_mb, scratch: scratch.into() }
    }
}
