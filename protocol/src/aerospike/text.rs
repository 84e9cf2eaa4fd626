//! A tiny scanner for the texts inside info answers.

/// What is left of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scanner<'a> {
    rest: &'a [u8],
}

impl<'a> Scanner<'a> {
    /// A scanner at the start of `text`.
    pub(crate) const fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    /// The next byte, not consumed.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Whether nothing is left.
    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Consumes the next byte if it is this one.
    pub(crate) fn expect(&mut self, byte: u8) -> Option<()> {
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    /// Everything up to one of the `stops`, which stays, or up to the end.
    pub(crate) fn until(&mut self, stops: &[u8]) -> &'a [u8] {
        let end = self
            .rest
            .iter()
            .position(|byte| stops.contains(byte))
            .unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, b""));
        self.rest = rest;
        text
    }
}
