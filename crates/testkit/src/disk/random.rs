//! Random numbers that come again with their seed.

/// A generator for tests (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Begins the sequence of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Begins the sequence of the seed in an environment variable, or of a fixed one.
    ///
    /// # Panics
    /// When the variable is set to something else than a number.
    #[must_use]
    pub fn from_environment(variable: &str) -> Self {
        Self(number_from(variable, 1))
    }

    /// Returns the next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`, which is above 0.
    #[expect(clippy::cast_possible_truncation, reason = "the remainder is below a `usize`")]
    pub const fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Returns true half of the time.
    pub const fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }
}

/// Reads a number from an environment variable, so that a long run can ask for more than a short one.
///
/// # Panics
/// When the variable is set to something else than a number.
#[must_use]
pub fn number_from(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("`{variable}` is no number: {text}")),
        Err(_) => otherwise,
    }
}
