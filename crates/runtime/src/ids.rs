//! Where identities come from [ID-1].

use std::cell::RefCell;
use std::fmt::Write as _;

use raincheck_core::ids::{ArtifactId, TaskId};
use raincheck_core::time::Timestamp;

/// Makes identities. Only the runtime makes any.
pub trait Ids: Send + Sync + 'static {
    /// Makes the identity of a task that is accepted now.
    fn task(&self, now: Timestamp) -> TaskId;

    /// Makes the name of an artifact.
    fn artifact(&self) -> ArtifactId;

    /// Draws bits that nobody can guess and that are used once.
    fn nonce(&self) -> u128 {
        u128::from_be_bytes(random())
    }
}

/// Makes every identity of fresh bytes of the operating system's generator, so that none can be
/// guessed from another.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsIds;

impl Ids for OsIds {
    fn task(&self, now: Timestamp) -> TaskId {
        TaskId::from_parts(now.as_millis().unsigned_abs(), random())
    }

    fn artifact(&self) -> ArtifactId {
        let mut name = String::from("art_");
        for byte in random::<16>() {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        ArtifactId::from(name)
    }
}

/// Random bytes of the operating system that were not used yet: one system call is for many
/// identities.
struct Pool {
    bytes: [u8; 512],
    n_left: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; 512], n_left: 0 }) };
}

impl Pool {
    /// Takes bytes that nobody gets again.
    #[expect(
        clippy::expect_used,
        reason = "without the system's generator no identity may be made"
    )]
    fn take<const N: usize>(&mut self) -> [u8; N] {
        const { assert!(N <= 512, "more than the pool holds") };
        if self.n_left < N {
            getrandom::fill(&mut self.bytes).expect("the system's random generator answers");
            self.n_left = self.bytes.len();
        }
        let mut taken = [0; N];
        let from = self.bytes.iter_mut().take(self.n_left).rev();
        for (to, from) in taken.iter_mut().zip(from) {
            *to = std::mem::take(from);
        }
        self.n_left -= N;
        taken
    }
}

fn random<const N: usize>() -> [u8; N] {
    POOL.with_borrow_mut(Pool::take)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_of_one_millisecond_differ() {
        // [ID-1]
        let now = Timestamp::from_millis(1_764_288_000_000);
        let ids: std::collections::BTreeSet<_> = (0..1000).map(|_| OsIds.task(now)).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| id.bits() >> 80 == 1_764_288_000_000));
    }

    #[test]
    fn the_name_of_an_artifact_is_plain_and_unique() {
        let (one, two) = (OsIds.artifact(), OsIds.artifact());
        assert_ne!(one, two);
        assert_eq!(one.as_str().len(), 36);
    }
}
