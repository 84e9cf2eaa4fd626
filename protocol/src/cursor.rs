//! A checked reader over a byte slice: the only place of this crate that does offsets.
//!
//! Every method either advances and returns what was asked for, or returns `None` and leaves the
//! cursor where it was. Integers are big-endian, as both protocols and msgpack write them.

/// What is left to read of a byte slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`.
    #[inline]
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Everything not read yet.
    #[inline]
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// How many bytes are not read yet.
    #[inline]
    pub(crate) const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next `n` bytes.
    #[inline]
    pub(crate) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(n)?;
        self.rest = tail;
        Some(head)
    }

    /// The next `N` bytes as an array.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (head, tail) = self.rest.split_first_chunk::<N>()?;
        self.rest = tail;
        Some(head)
    }

    /// One byte.
    #[inline]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| *byte)
    }

    /// Two bytes, big-endian.
    #[inline]
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(|bytes| u16::from_be_bytes(*bytes))
    }

    /// Four bytes, big-endian.
    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// Eight bytes, big-endian.
    #[inline]
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(|bytes| u64::from_be_bytes(*bytes))
    }

    /// A length of four bytes, then as many bytes as it says.
    #[inline]
    pub(crate) fn sized_u32(&mut self) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let len = usize::try_from(ahead.u32()?).ok()?;
        let bytes = ahead.take(len)?;
        *self = ahead;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::Cursor;

    #[test]
    fn integers_are_big_endian_and_advance() {
        let mut cursor = Cursor::new(&[1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 9]);
        assert_eq!(cursor.u8(), Some(1));
        assert_eq!(cursor.u16(), Some(2));
        assert_eq!(cursor.u32(), Some(3));
        assert_eq!(cursor.u64(), Some(4));
        assert_eq!(cursor.rest(), [9]);
    }

    #[test]
    fn a_failed_read_leaves_the_cursor_in_place() {
        let mut cursor = Cursor::new(&[0, 0, 0, 2, 7]);
        assert_eq!(cursor.sized_u32(), None);
        assert_eq!(cursor.u64(), None);
        assert_eq!(cursor.take(6), None);
        assert_eq!(cursor.remaining(), 5);
        assert_eq!(cursor.u32(), Some(2));
        assert_eq!(cursor.take(1), Some(&[7][..]));
        assert_eq!(cursor.remaining(), 0);
    }
}
