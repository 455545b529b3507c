//! Stops a process, as far as its files go, at a chosen change of them: what was done stays, and nothing
//! more happens. That is what `kill -9` leaves behind.

use std::cell::Cell;

thread_local! {
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    static IS_BLOWN: Cell<bool> = const { Cell::new(false) };
    static IS_FATAL: Cell<bool> = const { Cell::new(true) };
    static SHARE: Cell<usize> = const { Cell::new(0) };
}

/// Lets `n` changes happen on this thread, and of the next one, when it is a write, `share` percent.
pub(in crate::shelf) fn set(n: u64, share: usize) {
    LEFT.set(Some(n));
    SHARE.set(share);
    IS_BLOWN.set(false);
    IS_FATAL.set(true);
}

/// Lets `n` changes happen on this thread, and fails the next one alone, as a full disk does.
pub(in crate::shelf) fn fail_once(n: u64, share: usize) {
    set(n, share);
    IS_FATAL.set(false);
}

/// Lets everything happen again.
pub(in crate::shelf) fn clear() {
    LEFT.set(None);
    IS_BLOWN.set(false);
}

/// Returns whether the process is gone.
pub(in crate::shelf) fn is_blown() -> bool {
    IS_BLOWN.get() && IS_FATAL.get()
}

/// Returns whether the one failure has been.
pub(in crate::shelf) fn has_failed() -> bool {
    IS_BLOWN.get()
}

/// Returns how many bytes of a write still happen, when it is not all of them.
pub(super) fn spend(len: usize) -> Result<(), usize> {
    match LEFT.get() {
        None => Ok(()),
        Some(0) if IS_BLOWN.replace(true) => Err(0),
        Some(0) => {
            if !IS_FATAL.get() {
                LEFT.set(None);
            }
            Err(len * SHARE.get() / 100)
        }
        Some(n) => {
            LEFT.set(Some(n - 1));
            Ok(())
        }
    }
}
