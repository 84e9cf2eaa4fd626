//! The arguments of a request, seen in place.
//!
//! A decoded request is a table of byte ranges over one buffer: the frame itself for the array form,
//! or the decoder's unescaped copy for the inline form. [`Args`] is a borrowed view of both; the tail of
//! a view ([`Args::from`]) is a view again, so a command handler can peel off what it has read.

use std::fmt;

/// Where one argument lies in the buffer it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Borrowed arguments of one request, the command name first.
///
/// Reading past the end gives `None` ([`Args::get`]) or an empty slice ([`Args::arg`]), never a panic.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    pub(super) fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Self { bytes, spans }
    }

    /// Number of arguments, the command name included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True for a request without arguments, which a server skips in silence.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Argument `index`, or `None` past the end.
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let span = self.spans.get(index)?;
        self.bytes.get(span.start..span.end)
    }

    /// Argument `index`, or an empty slice past the end: for handlers whose arity is already checked.
    #[must_use]
    #[inline]
    pub fn arg(&self, index: usize) -> &'a [u8] {
        self.get(index).unwrap_or_default()
    }

    /// The command name as sent, or an empty slice.
    #[must_use]
    #[inline]
    pub fn name(&self) -> &'a [u8] {
        self.arg(0)
    }

    /// The arguments from `start` on; empty when there are not so many.
    #[must_use]
    pub fn from(&self, start: usize) -> Args<'a> {
        Args {
            bytes: self.bytes,
            spans: self.spans.get(start..).unwrap_or_default(),
        }
    }

    /// All arguments in order.
    #[must_use]
    pub fn iter(&self) -> ArgsIter<'a> {
        ArgsIter {
            args: *self,
            next: 0,
        }
    }

    /// A copy that outlives the connection's buffer, for a queued or parked command.
    #[must_use]
    pub fn to_owned(&self) -> OwnedArgs {
        self.iter().collect()
    }
}

impl fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|arg| arg.escape_ascii().to_string()))
            .finish()
    }
}

impl<'a> IntoIterator for Args<'a> {
    type Item = &'a [u8];
    type IntoIter = ArgsIter<'a>;

    fn into_iter(self) -> ArgsIter<'a> {
        self.iter()
    }
}

/// Iterator over the arguments of a request.
#[derive(Clone, Debug)]
pub struct ArgsIter<'a> {
    args: Args<'a>,
    next: usize,
}

impl<'a> Iterator for ArgsIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let arg = self.args.get(self.next)?;
        self.next += 1;
        Some(arg)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.args.len().saturating_sub(self.next);
        (left, Some(left))
    }
}

impl ExactSizeIterator for ArgsIter<'_> {}

/// Arguments with their own storage: one buffer and one table, whatever their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedArgs {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl OwnedArgs {
    /// Copies the given arguments.
    ///
    /// ```
    /// use kvlab_protocol::resp::OwnedArgs;
    ///
    /// let owned = OwnedArgs::new(&[b"GET", b"key"]);
    /// assert_eq!(owned.as_args().name(), b"GET");
    /// ```
    #[must_use]
    pub fn new(args: &[&[u8]]) -> Self {
        args.iter().collect()
    }

    /// The borrowed view that command handlers take.
    #[must_use]
    pub fn as_args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.spans)
    }

    /// Bytes of all arguments together, for limits on what is queued.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for OwnedArgs {
    fn from_iter<I: IntoIterator<Item = T>>(args: I) -> Self {
        let mut owned = Self::default();
        for arg in args {
            let start = owned.bytes.len();
            owned.bytes.extend_from_slice(arg.as_ref());
            owned.spans.push(Span {
                start,
                end: owned.bytes.len(),
            });
        }
        owned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_past_the_end_is_none_or_empty() {
        let owned = OwnedArgs::new(&[b"SET", b"k", b""]);
        let args = owned.as_args();
        assert_eq!(args.len(), 3);
        assert_eq!(args.get(2), Some(&b""[..]));
        assert_eq!(args.get(3), None);
        assert_eq!(args.arg(3), b"");
        assert!(args.from(9).is_empty());
    }

    #[test]
    fn tail_and_iterator_see_the_same_arguments() {
        let owned = OwnedArgs::new(&[b"MSET", b"a", b"1", b"b", b"2"]);
        let tail = owned.as_args().from(1);
        assert_eq!(tail.name(), b"a");
        assert_eq!(tail.iter().len(), 4);
        assert_eq!(
            tail.iter().collect::<Vec<_>>(),
            [&b"a"[..], b"1", b"b", b"2"]
        );
        assert_eq!(tail.to_owned(), OwnedArgs::new(&[b"a", b"1", b"b", b"2"]));
    }

    #[test]
    fn debug_form_escapes_bytes() {
        let owned = OwnedArgs::new(&[b"GET", b"a\xff\n"]);
        assert_eq!(format!("{:?}", owned.as_args()), r#"["GET", "a\\xff\\n"]"#);
    }
}
