//! How long an entry lives.

/// Milliseconds since the start of 1970 in UTC, or a length of time in milliseconds.
pub type Millis = u64;

/// The two ends of a life: so long after the last access, and so long after it began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) sliding: Millis,
    pub(super) absolute: Millis,
}

impl Life {
    /// Returns the first instant at which an entry is gone.
    pub(super) fn end(self, created_at: Millis, last_access_at: Millis) -> Millis {
        let slides = last_access_at.saturating_add(self.sliding);
        slides.min(created_at.saturating_add(self.absolute))
    }
}

#[cfg(test)]
mod tests {
    use super::Life;

    #[test]
    fn a_life_slides_up_to_its_absolute_end() {
        let life = Life { sliding: 30, absolute: 100 };
        assert_eq!(life.end(1000, 1000), 1030);
        assert_eq!(life.end(1000, 1069), 1099);
        assert_eq!(life.end(1000, 1070), 1100);
        assert_eq!(life.end(1000, 1099), 1100);
        assert_eq!(life.end(u64::MAX, u64::MAX), u64::MAX);
    }
}
