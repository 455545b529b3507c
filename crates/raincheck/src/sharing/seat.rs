//! The lock that decides who owns what processes share.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use raincheck_core::store;
use raincheck_loopback::ownership::{self, OwnerLock, Taken};

/// Where the lock and the owner's endpoint file are, and whether this process has the lock.
#[derive(Debug)]
pub(super) struct Seat {
    place: PathBuf,
    held: Mutex<Held>,
}

/// Who has the seat.
#[derive(Debug)]
enum Held {
    /// That is still to be found out.
    Unknown,
    /// This process.
    Ours(#[expect(dead_code, reason = "it is held, not read")] OwnerLock),
    /// Nobody: there is no lock to be had, and the store has to do with its own.
    Open,
    /// Another process.
    Theirs(Theirs),
}

/// The process that has the seat, and why it is of no use to this one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Theirs {
    /// Its number, where that is known.
    pub(super) pid: Option<u32>,
    /// Why this process is not served by it, as an end of a sentence.
    pub(super) why: String,
}

impl Seat {
    pub(super) fn new(place: &Path) -> Self {
        Self { place: place.to_owned(), held: Mutex::new(Held::Unknown) }
    }

    /// Returns the file that leads to the owner.
    pub(super) fn endpoint(&self) -> PathBuf {
        self.place.join("endpoint.json")
    }

    /// Takes the seat if it is free, or tells which process has it. Works with blocking calls.
    pub(super) fn take(&self) -> Result<(), Option<u32>> {
        if self.is_ours() {
            return Ok(());
        }
        match ownership::take(&self.place.join("lock")) {
            Ok(Taken::Ours(lock)) => {
                *self.held() = Held::Ours(lock);
                Ok(())
            }
            Ok(Taken::Theirs(pid)) => {
                let mut held = self.held();
                if !matches!(*held, Held::Theirs(_)) {
                    *held = Held::Theirs(Theirs { pid, why: String::new() });
                }
                Err(pid)
            }
            Err(error) => {
                tracing::warn!(%error, "who owns the store is left to the store's own lock");
                *self.held() = Held::Open;
                Ok(())
            }
        }
    }

    /// Notes why the process that has the seat is of no use to this one.
    pub(super) fn refused(&self, theirs: Theirs) {
        let mut held = self.held();
        if !matches!(*held, Held::Ours(_) | Held::Open) {
            *held = Held::Theirs(theirs);
        }
    }

    fn is_ours(&self) -> bool {
        matches!(*self.held(), Held::Ours(_) | Held::Open)
    }

    /// Lets the store of the seat be opened, or says why it must not be [DUR-4].
    pub(super) fn check(&self) -> Result<(), store::Error> {
        let Theirs { pid, why } = match &*self.held() {
            Held::Ours(_) | Held::Open => return Ok(()),
            Held::Unknown => Theirs::default(),
            Held::Theirs(theirs) => theirs.clone(),
        };
        let who = pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
        let why = if why.is_empty() { why } else { format!(", {why}") };
        Err(store::Error::new(format!("the store belongs to {who}{why}"))
            .with_owner(pid)
            .with_hint(HINT))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const HINT: &str = "serve both with one version and one configuration, or end that process and call \
                    again, or start this one on a store of its own (--state-dir DIR)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_two_has_the_seat_and_the_store_of_the_other_stays_closed() {
        // [ATTACH-1] [DUR-4]
        let dir = tempfile::tempdir().expect("a folder");
        let (one, two) =
            (Seat::new(&dir.path().join("owner")), Seat::new(&dir.path().join("owner")));
        assert!(one.check().is_err(), "nobody has it yet");
        assert_eq!((one.take(), one.take()), (Ok(()), Ok(())));
        let pid = std::process::id();
        assert_eq!(two.take(), Err(Some(pid)));
        two.refused(Theirs { pid: Some(pid), why: "which is older".into() });
        let error = two.check().expect_err("another's");
        assert_eq!(error.owner, Some(pid));
        assert_eq!(&*error.message, format!("the store belongs to process {pid}, which is older"));
        assert!(one.check().is_ok());
        drop(one);
        assert_eq!(two.take(), Ok(()));
        assert!(two.check().is_ok());
    }

    #[test]
    fn where_there_is_no_lock_the_store_has_to_do_with_its_own() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("file"), "").expect("written");
        let seat = Seat::new(&dir.path().join("file").join("owner"));
        assert_eq!(seat.take(), Ok(()));
        assert!(seat.check().is_ok());
    }
}
