//! Member names that an object already has.

use std::hash::{BuildHasher, Hasher, RandomState};

/// From this many members on, an object's names are compared when it closes, by sorting.
const FEW: usize = 16;

/// Names of the objects that are open, as hashes under a key of this scan.
///
/// Two different names share a hash with a chance of 2^-64, and whoever writes a body cannot look
/// for such a pair, since the key is random.
pub(super) struct Names {
    key: u64,
    seen: Vec<(u64, u32)>,
}

/// The part of [`Names`] that belongs to one object.
#[derive(Clone, Copy)]
pub(super) struct Scope {
    base: usize,
    /// One bit for each hash: most names are told new without a comparison.
    bits: u64,
}

impl Names {
    pub(super) fn new() -> Self {
        Self { key: RandomState::new().build_hasher().finish(), seen: Vec::new() }
    }

    pub(super) const fn open(&self) -> Scope {
        Scope { base: self.seen.len(), bits: 0 }
    }

    /// Adds a name that begins at `offset`; returns whether it is known to be there already.
    pub(super) fn add(&mut self, scope: &mut Scope, name: &[u8], offset: u32) -> bool {
        let hash = hash(self.key, name);
        let bit = 1 << (hash >> 58);
        let is_maybe_there = scope.bits & bit != 0;
        scope.bits |= bit;
        if is_maybe_there {
            let of_object = self.seen.get(scope.base..).unwrap_or(&[]);
            if of_object.len() <= FEW && of_object.iter().any(|&(other, _)| other == hash) {
                return true;
            }
        }
        self.seen.push((hash, offset));
        false
    }

    /// Forgets an object's names; says where one of them came a second time.
    pub(super) fn close(&mut self, scope: Scope) -> Result<(), usize> {
        let Scope { base, .. } = scope;
        let of_object = self.seen.get_mut(base..).unwrap_or(&mut []);
        let mut twice = None;
        if of_object.len() > FEW {
            of_object.sort_unstable();
            twice = of_object
                .array_windows()
                .filter(|[a, b]| a.0 == b.0)
                .map(|[_, b]| super::to_usize(b.1))
                .min();
        }
        self.seen.truncate(base);
        twice.map_or(Ok(()), Err)
    }
}

fn hash(key: u64, name: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = name.as_chunks::<8>();
    let mut state = key ^ u64::try_from(name.len()).unwrap_or(u64::MAX).wrapping_mul(FACTOR);
    for word in words {
        state = fold(state ^ u64::from_le_bytes(*word), key | 1);
    }
    let last = rest.iter().fold(0, |word, &byte| (word << 8) | u64::from(byte));
    fold(fold(state ^ last, FACTOR), key | 1)
}

/// Returns both halves of the product, one over the other.
fn fold(a: u64, b: u64) -> u64 {
    let [low, high] = halves(u128::from(a) * u128::from(b));
    low ^ high
}

#[expect(clippy::cast_possible_truncation, reason = "takes a number apart into its halves")]
const fn halves(wide: u128) -> [u64; 2] {
    [wide as u64, (wide >> 64) as u64]
}
