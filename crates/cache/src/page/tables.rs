//! Where pages begin, for the page sizes in use.

/// Page tables of one body.
#[derive(Debug, Default)]
pub(crate) struct Tables {}

impl Tables {
    #[expect(clippy::unused_self, reason = "paging fills it")]
    pub(crate) const fn heap_bytes(&self) -> usize {
        0
    }
}
