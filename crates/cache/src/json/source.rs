//! Where the bytes of a body are.

use std::{io, ops::Range, sync::Arc};

/// Bytes that never change while they are looked at: memory, compressed blocks, a file.
///
/// Implemented for `[u8]` and everything that points to one; a body of the shelf implements it for
/// blocks that it decompresses on demand.
pub trait Source: Send + Sync {
    /// Returns the number of bytes.
    fn len(&self) -> usize;

    /// Appends the bytes of `range` to `out`.
    ///
    /// Readers ask for at most 32 KiB at a time, at multiples of 32 KiB, unless they want the whole
    /// of a value or of a page.
    ///
    /// # Errors
    ///
    /// When the bytes cannot be read, or `range` goes past the end ([`io::ErrorKind::InvalidInput`]).
    fn read(&self, range: Range<usize>, out: &mut Vec<u8>) -> io::Result<()>;

    /// Returns all bytes at once where they stand in memory, so that nothing need be copied.
    fn bytes(&self) -> Option<&[u8]> {
        None
    }

    /// Returns whether there is no byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Source for [u8] {
    fn len(&self) -> usize {
        <[u8]>::len(self)
    }

    fn read(&self, range: Range<usize>, out: &mut Vec<u8>) -> io::Result<()> {
        let part = self.get(range).ok_or(io::ErrorKind::InvalidInput)?;
        out.extend_from_slice(part);
        Ok(())
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(self)
    }
}

impl Source for Vec<u8> {
    fn len(&self) -> usize {
        Self::len(self)
    }

    fn read(&self, range: Range<usize>, out: &mut Vec<u8>) -> io::Result<()> {
        Source::read(self.as_slice(), range, out)
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(self)
    }
}

impl<T: Source + ?Sized> Source for &T {
    fn len(&self) -> usize {
        T::len(self)
    }

    fn read(&self, range: Range<usize>, out: &mut Vec<u8>) -> io::Result<()> {
        T::read(self, range, out)
    }

    fn bytes(&self) -> Option<&[u8]> {
        T::bytes(self)
    }
}

impl<T: Source + ?Sized> Source for Arc<T> {
    fn len(&self) -> usize {
        T::len(self)
    }

    fn read(&self, range: Range<usize>, out: &mut Vec<u8>) -> io::Result<()> {
        T::read(self, range, out)
    }

    fn bytes(&self) -> Option<&[u8]> {
        T::bytes(self)
    }
}
