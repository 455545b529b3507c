//! The lock that decides who owns what processes share.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{error, io};

use raincheck_core::shortage::is_out_of_files;
use raincheck_core::store;
use raincheck_loopback::ownership::{self, OwnerLock, Taken};

/// Where the lock and the owner's endpoint file are, and whether this process has the lock.
#[derive(Debug)]
pub(super) struct Seat {
    place: PathBuf,
    state: Mutex<State>,
}

/// Who has the seat, and the number of the last search for that.
#[derive(Debug)]
struct State {
    held: Held,
    search: u64,
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
        let state = State { held: Held::Unknown, search: 0 };
        Self { place: place.to_owned(), state: Mutex::new(state) }
    }

    /// Returns the file that leads to the owner.
    pub(super) fn endpoint(&self) -> PathBuf {
        self.place.join("endpoint.json")
    }

    /// Begins a search for who has the seat, and ends the one before: that one takes nothing any more.
    pub(super) fn search(&self) -> u64 {
        let mut state = self.state();
        state.search += 1;
        state.search
    }

    /// Takes the seat for a search if it is free, or tells which process has it. Works with blocking calls.
    pub(super) fn take(&self, search: u64) -> Result<(), Option<u32>> {
        // What is found out is noted before anybody else looks: nobody has the seat without knowing it.
        let mut state = self.state();
        if state.held.is_ours() {
            return Ok(());
        }
        if state.search != search {
            return Err(None);
        }
        match ownership::take(&self.place.join("lock")) {
            Ok(Taken::Ours(lock)) => {
                state.held = Held::Ours(lock);
                Ok(())
            }
            Ok(Taken::Theirs(pid)) => {
                if !matches!(state.held, Held::Theirs(_)) {
                    state.held = Held::Theirs(Theirs { pid, why: String::new() });
                }
                Err(pid)
            }
            Err(error) if passes(&error) => {
                tracing::warn!(%error, "who owns the store cannot be found out for now");
                Err(None)
            }
            Err(error) => {
                tracing::warn!(%error, "who owns the store is left to the store's own lock");
                state.held = Held::Open;
                Ok(())
            }
        }
    }

    /// Notes why the process that has the seat is of no use to this one, and ends the search; `false` when
    /// this process has it meanwhile.
    pub(super) fn refused(&self, theirs: Theirs) -> bool {
        let mut state = self.state();
        if state.held.is_ours() {
            return false;
        }
        state.held = Held::Theirs(theirs);
        state.search += 1;
        true
    }

    /// Lets the store of the seat be opened, or says why it must not be [DUR-4].
    pub(super) fn check(&self) -> Result<(), store::Error> {
        let Theirs { pid, why } = match &self.state().held {
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    const fn is_ours(&self) -> bool {
        matches!(self, Self::Ours(_) | Self::Open)
    }
}

/// Tells whether what keeps a lock from being taken may be gone a moment later.
fn passes(error: &(dyn error::Error + 'static)) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(is_passing_cause)
}

fn is_passing_cause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory, QuotaExceeded, ResourceBusy, StorageFull};
    let kinds = [Interrupted, OutOfMemory, QuotaExceeded, ResourceBusy, StorageFull];
    kinds.contains(&error.kind()) || is_out_of_files(error)
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
        let (first, second) = (one.search(), two.search());
        assert_eq!((one.take(first), one.take(first)), (Ok(()), Ok(())));
        let pid = std::process::id();
        assert_eq!(two.take(second), Err(Some(pid)));
        assert!(two.refused(Theirs { pid: Some(pid), why: "which is older".into() }));
        let error = two.check().expect_err("another's");
        assert_eq!(error.owner, Some(pid));
        assert_eq!(&*error.message, format!("the store belongs to process {pid}, which is older"));
        assert!(one.check().is_ok());
        drop(one);
        assert_eq!(two.take(two.search()), Ok(()));
        assert!(two.check().is_ok());
    }

    #[test]
    fn a_search_that_was_given_up_takes_nothing_and_one_that_took_the_seat_is_not_refused() {
        // [ATTACH-5] [DUR-4]
        let dir = tempfile::tempdir().expect("a folder");
        let seat = Seat::new(&dir.path().join("owner"));
        let first = seat.search();
        assert!(seat.refused(Theirs::default()), "another one has it");
        assert_eq!(seat.take(first), Err(None), "what was left of the search came too late");
        assert!(seat.check().is_err());
        let second = seat.search();
        assert_eq!(seat.take(second), Ok(()));
        assert!(!seat.refused(Theirs::default()), "it was taken just before");
        assert!(seat.check().is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn what_passes_is_not_taken_for_a_folder_without_locks() {
        for (code, is_passing) in [(24, true), (23, true), (28, true), (13, false), (20, false)] {
            let error = io::Error::from_raw_os_error(code);
            assert_eq!(is_passing_cause(&error), is_passing, "{code}");
        }
    }

    #[test]
    fn where_there_is_no_lock_the_store_has_to_do_with_its_own() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("file"), "").expect("written");
        let seat = Seat::new(&dir.path().join("file").join("owner"));
        assert_eq!(seat.take(seat.search()), Ok(()));
        assert!(seat.check().is_ok());
    }
}
