//! Random numbers that follow from a seed.

/// A generator of random numbers: splitmix64.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// Makes the generator of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Makes another generator.
    #[must_use]
    pub const fn split(&mut self) -> Self {
        Self(self.next())
    }

    /// Draws a number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub const fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// Whether a chance of one in `n` came true.
    pub const fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}
