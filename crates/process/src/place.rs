//! What has to be known of a place before programs are run in it.

use crate::os;

/// Says why programs cannot be run in this place, and what to do about it; `None` when they can.
///
/// On Linux a program is ended by what the process table under `/proc` tells of its children. Where
/// that is missing, or is the one of another pid namespace, every command tool refuses its calls with
/// this reason and the guarantee `not_executed`.
#[must_use]
pub fn place_fault() -> Option<(&'static str, &'static str)> {
    os::place_fault().map(|fault| (fault, HINT))
}

/// What to do about a process table that is none of ours.
pub(crate) const HINT: &str = "mount the /proc of this pid namespace, as `unshare --mount-proc` and \
     every container engine do";
