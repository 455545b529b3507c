//! One process owns a store: a locked file beside it says which [DUR-4].

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use raincheck_core::store;
use raincheck_core::time::Timestamp;

use crate::fault::Fault;
use crate::files;
use crate::schema::beside;

/// Who owns a store, as its lock file says.
#[derive(Debug, Serialize, Deserialize)]
struct Owner {
    pid: u32,
    started_at: Timestamp,
    /// How many times the store had been taken over, this time included.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    instance: Option<u32>,
}

/// The lock; it goes with the process, whatever ends it.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    owner: Owner,
}

impl Lock {
    /// Takes the lock, or says who has it.
    pub(crate) fn take(path: &Path, now: Timestamp) -> Result<Self, store::Error> {
        let path = beside(path, ".lock");
        let file = files::open_private(&path).map_err(Fault::from)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(taken(file)),
            Err(TryLockError::Error(error)) => return Err(Fault::from(error).into()),
        }
        let owner = Owner { pid: std::process::id(), started_at: now, instance: None };
        let mut lock = Self { file, owner };
        lock.write()?;
        Ok(lock)
    }

    /// Adds which taking over of the store this is.
    pub(crate) fn set_instance(&mut self, epoch: u32) -> Result<(), Fault> {
        self.owner.instance = Some(epoch);
        self.write()
    }

    fn write(&mut self) -> Result<(), Fault> {
        let text = serde_json::to_string(&self.owner)
            .map_err(|_| Fault::Broken("the owner cannot be written"))?;
        self.file.rewind()?;
        self.file.set_len(0)?;
        self.file.write_all(text.as_bytes())?;
        Ok(())
    }
}

fn taken(mut file: File) -> store::Error {
    let mut text = String::new();
    let owner = match file.read_to_string(&mut text) {
        Ok(_) => serde_json::from_str::<Owner>(&text).ok(),
        Err(_) => None,
    };
    let who = match owner {
        Some(Owner { pid, started_at, .. }) => format!("process {pid}, started {started_at}"),
        None => "another process".to_owned(),
    };
    store::Error::new(format!("the store belongs to {who}")).with_hint(
        "one server at a time owns a store: use that one, or end it and call again, or start this one \
         on a store of its own (--state-dir DIR, or --store memory)",
    )
}
