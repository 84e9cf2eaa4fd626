//! Room for one printed number.

use std::fmt;
use std::ops::Deref;

/// A printed number, on the stack.
#[derive(Clone, Copy)]
pub struct NumberText {
    bytes: [u8; Self::CAPACITY],
    len: usize,
}

impl NumberText {
    /// Longest text: a sign, 17 digits and up to 7 zeros, or 24 bytes of scientific form.
    const CAPACITY: usize = 32;

    pub(super) fn new() -> Self {
        Self {
            bytes: [0; Self::CAPACITY],
            len: 0,
        }
    }

    pub(super) fn push(&mut self, text: &[u8]) {
        if let Some(free) = self.bytes.get_mut(self.len..self.len + text.len()) {
            free.copy_from_slice(text);
            self.len += text.len();
        }
    }

    /// Counts the last digit down by one.
    pub(super) fn lower_last(&mut self) {
        if let Some(last) = self.bytes.get_mut(..self.len).and_then(<[u8]>::last_mut) {
            *last -= 1;
        }
    }
}

impl Deref for NumberText {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl fmt::Debug for NumberText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NumberText({})", self.escape_ascii())
    }
}

impl fmt::Write for NumberText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.len + text.len() > Self::CAPACITY {
            return Err(fmt::Error);
        }
        self.push(text.as_bytes());
        Ok(())
    }
}
