//! One process owns a store: a locked file beside it says which [DUR-4].

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use raincheck_core::store;
use raincheck_core::time::Timestamp;

use crate::fault::Fault;
use crate::files;
use crate::schema::beside;

/// How long the lock of an owner that is gone may be held by what it left.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same for an owner that is this process.
const OWN_PATIENCE: Duration = Duration::from_millis(500);

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
        let mut file = files::open_private(&path).map_err(Fault::from)?;
        if !can_lock(&file) {
            return Err(Fault::NoLocks.into());
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let owner = read(&mut file);
                let patience = match &owner {
                    // A store of this process that was just closed: a child that is being started
                    // holds the lock until it is a program of its own.
                    Some(owner) if owner.pid == std::process::id() => OWN_PATIENCE,
                    Some(owner) if !is_running(owner.pid) => PATIENCE,
                    Some(_) | None => return Err(taken(owner.as_ref())),
                };
                file = locked_at_last(file, patience).ok_or_else(|| taken(owner.as_ref()))?;
            }
            Err(TryLockError::Error(error)) => {
                tracing::error!(%error, "the lock of the store was refused");
                return Err(Fault::NoLocks.into());
            }
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

/// Tells whether SQLite could lock a file of this folder. It takes a refused lock for one that another
/// program holds, and waits for it in vain.
#[cfg(unix)]
pub(crate) fn can_lock(file: &File) -> bool {
    use rustix::fs::{FlockOperation, fcntl_lock};
    use rustix::io::Errno;
    match fcntl_lock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => fcntl_lock(file, FlockOperation::Unlock).is_ok(),
        // Somebody holds it, so that it can be held.
        Err(Errno::AGAIN | Errno::ACCESS) => true,
        Err(error) => {
            tracing::error!(%error, "a lock in the folder of the store was refused");
            false
        }
    }
}

#[cfg(not(unix))]
pub(crate) fn can_lock(_file: &File) -> bool {
    true
}

/// Waits for the lock of an owner that is gone. A child that it was just starting when it was killed
/// holds it too, until it is a program of its own.
fn locked_at_last(file: File, patience: Duration) -> Option<File> {
    let (sender, locked) = mpsc::channel();
    // Whoever gets it when nobody waits any more lets go of it at once.
    let wait = move || sender.send(file.lock().map(|()| file));
    thread::Builder::new().name("raincheck-lock".to_owned()).spawn(wait).ok()?;
    locked.recv_timeout(patience).ok()?.ok()
}

/// Tells whether a process still runs, or may.
fn is_running(pid: u32) -> bool {
    if !cfg!(target_os = "linux") {
        return true;
    }
    // A process that ended and that nobody asked about is there as a zombie.
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

/// Reads which process took a store last; whether it still runs is not asked.
pub(crate) fn last_owner(store: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(beside(store, ".lock")).ok()?;
    serde_json::from_str::<Owner>(&text).ok().map(|owner| owner.pid)
}

fn read(file: &mut File) -> Option<Owner> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn taken(owner: Option<&Owner>) -> store::Error {
    let who = match owner {
        Some(Owner { pid, started_at, .. }) => format!("process {pid}, started {started_at}"),
        None => "another process".to_owned(),
    };
    let error = store::Error::new(format!("the store belongs to {who}"));
    error.with_owner(owner.map(|owner| owner.pid)).with_hint(
        "one server at a time owns a store: use that one, or end it and call again, or start this one \
         on a store of its own (--state-dir DIR, or --store memory)",
    )
}
