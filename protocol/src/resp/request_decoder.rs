//! Requests as a server reads them: arrays of bulk strings, or inline lines.
//!
//! ```text
//! *2\r\n $3\r\nGET\r\n $3\r\nkey\r\n      array form: count line, then per argument a length line and bytes
//! GET key\r\n                            inline form: one line, LF alone is accepted, quoting as in a shell
//! ```
//!
//! Read as redis-server 7.0.15 reads (measured): the byte after a CR and the two bytes after an argument
//! are skipped unseen; a count of zero or less is an empty request; a NUL hides the rest of a line
//! from the search for its end; numbers have no sign `+`, no leading zeros and no blanks.

use memchr::memchr2;

use super::args::{Args, Span};
use super::inline::split_line;
use super::line::short_length;
use super::number;
use super::request_error::RequestError;

/// Limits a server puts on what it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Longest inline request, and longest count or length line, in bytes.
    pub max_inline: usize,
    /// Longest argument in bytes (`proto-max-bulk-len`).
    pub max_bulk: u64,
    /// Most arguments of one request.
    pub max_args: u64,
    /// Longest request in bytes. A longer one in the array form is given up as soon as the length of
    /// an argument shows it, and its remaining bytes are passed over without being kept: see
    /// [`RequestDecoder::excess`].
    pub max_request: u64,
    /// True until a connection that must authenticate has done so: at most 10 arguments of 16 KiB.
    pub unauthenticated: bool,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            max_inline: 64 * 1024,
            max_bulk: 512 * 1024 * 1024,
            max_args: i32::MAX.unsigned_abs().into(),
            max_request: u64::MAX,
            unauthenticated: false,
        }
    }
}

impl RequestLimits {
    /// Most arguments of a request before authentication.
    pub const UNAUTHENTICATED_ARGS: u64 = 10;
    /// Longest argument before authentication, in bytes.
    pub const UNAUTHENTICATED_BULK: u64 = 16_384;

    /// The default limits with those of a connection that has yet to authenticate on top.
    #[must_use]
    pub fn unauthenticated() -> Self {
        Self {
            unauthenticated: true,
            ..Self::default()
        }
    }

    fn check_count(&self, count: u64) -> Result<(), RequestError> {
        if count > self.max_args {
            return Err(RequestError::InvalidMultibulkLength);
        }
        if self.unauthenticated && count > Self::UNAUTHENTICATED_ARGS {
            return Err(RequestError::UnauthenticatedMultibulkLength);
        }
        Ok(())
    }

    fn check_bulk(&self, len: usize) -> Result<(), RequestError> {
        let len = u64::try_from(len).map_err(|_| RequestError::InvalidBulkLength)?;
        if len > self.max_bulk {
            return Err(RequestError::InvalidBulkLength);
        }
        if self.unauthenticated && len > Self::UNAUTHENTICATED_BULK {
            return Err(RequestError::UnauthenticatedBulkLength);
        }
        Ok(())
    }
}

/// Finds requests in the bytes of one connection.
///
/// It remembers how far it looked, so that a request that arrives byte by byte costs no more than one
/// that arrives whole. It never allocates from an announced length or count: its argument table grows
/// with the arguments that are really there, and is kept for the next request.
///
/// ```
/// use kvlab_protocol::resp::{RequestDecoder, RequestLimits};
///
/// let (mut decoder, limits) = (RequestDecoder::new(), RequestLimits::default());
/// let buf = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n";
/// let n = decoder.decode(buf, &limits)?.unwrap();
/// assert_eq!(decoder.args(&buf[..n]).get(1), Some(&b"k"[..]));
/// assert_eq!(decoder.decode(&buf[n..], &limits)?, Some(6));
/// # Ok::<(), kvlab_protocol::resp::RequestError>(())
/// ```
#[derive(Debug, Default)]
pub struct RequestDecoder {
    state: State,
    /// First byte of the frame that is not yet understood.
    pos: usize,
    /// No line end lies between `pos` and here.
    scanned: usize,
    /// Arguments still to come.
    remaining: u64,
    /// Length of the argument at `pos`, in state `Body`.
    bulk_len: usize,
    /// Bytes that a request above the limit was seen to have.
    excess: Option<u64>,
    spans: Vec<Span>,
    /// Unescaped arguments of an inline request.
    inline: Vec<u8>,
    is_inline: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Between two requests; the table holds the last one.
    #[default]
    Between,
    Count,
    Length,
    Body,
    Inline,
    /// Inside the bytes of an argument of a request that was given up; `bulk_len` are still to come.
    Skip,
    /// Before the length line of a further argument of such a request.
    SkipLength,
}

impl RequestDecoder {
    /// Argument tables above this size are given back after use.
    const SPANS_KEPT: usize = 1024;

    /// A decoder at the start of a connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks for one request at the front of `buf`, all the unconsumed bytes of the connection.
    ///
    /// `Ok(Some(n))`: a request of `n > 0` bytes is complete, [`RequestDecoder::args`] reads it and the
    /// caller drops the `n` bytes. It may have no arguments at all (an empty line, `*0`, `*-1`); a server
    /// answers nothing then. `Ok(None)`: call again with the same bytes and more behind them.
    ///
    /// # Errors
    ///
    /// The request is malformed or above a limit; nothing behind it on the connection can be read.
    #[inline]
    pub fn decode(
        &mut self,
        buf: &[u8],
        limits: &RequestLimits,
    ) -> Result<Option<usize>, RequestError> {
        if self.state == State::Between {
            let Some(&first) = buf.first() else {
                return Ok(None);
            };
            self.begin(first);
        }
        let result = match self.state {
            State::Inline => self.decode_inline(buf, limits),
            State::Skip | State::SkipLength => return self.skip(buf, limits),
            _ => self.decode_array(buf, limits),
        };
        match result {
            Ok(None) => Ok(None),
            Ok(Some(n)) if self.excess.is_some() => Ok(Some(n)),
            Ok(Some(n)) => {
                self.state = State::Between;
                self.refuse_other_protocols(buf)?;
                Ok(Some(n))
            }
            Err(error) => {
                self.state = State::Between;
                self.spans.clear();
                Err(error)
            }
        }
    }

    /// Arguments of the request last completed, where `frame` is its bytes.
    #[must_use]
    #[inline]
    pub fn args<'a>(&'a self, frame: &'a [u8]) -> Args<'a> {
        Args::new(
            if self.is_inline { &self.inline } else { frame },
            &self.spans,
        )
    }

    /// The bytes that the request last completed was seen to have, at least, when it is longer than
    /// `max_request`. What [`RequestDecoder::decode`] returned is then its front, with the arguments
    /// that are whole in it; the calls that follow return what is passed over, as requests without
    /// arguments, until it is over.
    #[must_use]
    #[inline]
    pub fn excess(&self) -> Option<u64> {
        self.excess
    }

    /// Whether bytes of a request that was given up are still to be passed over.
    #[must_use]
    pub fn is_skipping(&self) -> bool {
        matches!(self.state, State::Skip | State::SkipLength)
    }

    /// Forgets what it was in the middle of.
    pub fn restart(&mut self) {
        self.state = State::Between;
    }

    fn begin(&mut self, first: u8) {
        self.excess = None;
        self.spans.clear();
        if self.spans.capacity() > Self::SPANS_KEPT {
            self.spans.shrink_to(Self::SPANS_KEPT);
        }
        self.pos = 0;
        self.scanned = 0;
        self.is_inline = first != b'*';
        self.state = if self.is_inline {
            State::Inline
        } else {
            State::Count
        };
    }

    fn decode_array(
        &mut self,
        buf: &[u8],
        limits: &RequestLimits,
    ) -> Result<Option<usize>, RequestError> {
        if self.state == State::Count {
            let count = match short_length(buf) {
                Some((count, used)) => {
                    self.pos = used;
                    u64::try_from(count).unwrap_or(u64::MAX)
                }
                None => match self.take_line(buf, limits, RequestError::TooBigMultibulkCount)? {
                    None => return Ok(None),
                    Some(line) => {
                        let count = number::parse_i64(line.get(1..).unwrap_or_default())
                            .ok_or(RequestError::InvalidMultibulkLength)?;
                        u64::try_from(count).unwrap_or(0)
                    }
                },
            };
            limits.check_count(count)?;
            self.remaining = count;
            self.state = State::Length;
        }
        while self.remaining > 0 {
            if self.state == State::Length {
                let Some(len) = self.take_length(buf, limits)? else {
                    return Ok(None);
                };
                limits.check_bulk(len)?;
                self.bulk_len = len;
                self.state = State::Body;
                let whole = self.pos.saturating_add(len).saturating_add(2);
                if u64::try_from(whole).unwrap_or(u64::MAX) > limits.max_request {
                    return Ok(Some(self.give_up(whole)));
                }
            }
            let end = self.pos.saturating_add(self.bulk_len);
            let next = end.saturating_add(2);
            if next > buf.len() {
                return Ok(None);
            }
            self.spans.push(Span {
                start: self.pos,
                end,
            });
            self.pos = next;
            self.remaining -= 1;
            self.state = State::Length;
        }
        Ok(Some(self.pos))
    }

    /// The argument at `pos` makes the request longer than it may be: passes over the rest of it.
    #[cold]
    fn give_up(&mut self, whole: usize) -> usize {
        self.excess = Some(u64::try_from(whole).unwrap_or(u64::MAX));
        self.bulk_len = self.bulk_len.saturating_add(2);
        self.remaining -= 1;
        self.state = State::Skip;
        self.pos
    }

    /// Passes over what is there of a request that was given up.
    #[cold]
    fn skip(&mut self, buf: &[u8], limits: &RequestLimits) -> Result<Option<usize>, RequestError> {
        self.excess = None;
        self.spans.clear();
        let mut used = 0;
        loop {
            let rest = buf.get(used..).unwrap_or_default();
            if self.state == State::Skip {
                let passed = rest.len().min(self.bulk_len);
                used += passed;
                self.bulk_len -= passed;
                if self.bulk_len > 0 {
                    break;
                }
                self.state = State::SkipLength;
            }
            if self.remaining == 0 {
                self.state = State::Between;
                break;
            }
            let rest = buf.get(used..).unwrap_or_default();
            (self.pos, self.scanned) = (0, 0);
            match self.take_length(rest, limits) {
                Ok(None) => break,
                Ok(Some(len)) => {
                    used += self.pos;
                    self.bulk_len = len.saturating_add(2);
                    self.remaining -= 1;
                    self.state = State::Skip;
                }
                Err(error) => {
                    self.state = State::Between;
                    return Err(error);
                }
            }
        }
        Ok((used > 0).then_some(used))
    }

    /// Length of the argument whose `$` line starts at `pos`; moves behind the line.
    #[inline]
    fn take_length(
        &mut self,
        buf: &[u8],
        limits: &RequestLimits,
    ) -> Result<Option<usize>, RequestError> {
        let rest = buf.get(self.pos..).unwrap_or_default();
        if rest.first() == Some(&b'$')
            && let Some((len, used)) = short_length(rest)
        {
            self.pos += used;
            return Ok(Some(len));
        }
        let Some(line) = self.take_line(buf, limits, RequestError::TooBigBulkCount)? else {
            return Ok(None);
        };
        match line.split_first() {
            Some((b'$', digits)) => number::parse_i64(digits)
                .and_then(|len| usize::try_from(len).ok())
                .map(Some)
                .ok_or(RequestError::InvalidBulkLength),
            Some((&other, _)) => Err(RequestError::ExpectedDollar(other)),
            // The line is empty: its first byte is the CR that ends it.
            None => Err(RequestError::ExpectedDollar(b'\r')),
        }
    }

    /// The line at `pos` without its CR and the byte behind it; moves behind both.
    fn take_line<'b>(
        &mut self,
        buf: &'b [u8],
        limits: &RequestLimits,
        too_big: RequestError,
    ) -> Result<Option<&'b [u8]>, RequestError> {
        let from = self.scanned.max(self.pos);
        let unseen = buf.get(from..).unwrap_or_default();
        let found = memchr2(b'\r', 0, unseen).map(|at| from + at);
        self.scanned = found.unwrap_or(buf.len());
        let end = found.filter(|&at| buf.get(at) == Some(&b'\r'));
        let waiting = end.unwrap_or(buf.len()) - self.pos;
        if waiting > limits.max_inline {
            return Err(too_big);
        }
        let Some(end) = end.filter(|&end| end + 1 < buf.len()) else {
            return Ok(None);
        };
        let line = buf.get(self.pos..end);
        self.pos = end + 2;
        Ok(line)
    }

    fn decode_inline(
        &mut self,
        buf: &[u8],
        limits: &RequestLimits,
    ) -> Result<Option<usize>, RequestError> {
        let unseen = buf.get(self.scanned..).unwrap_or_default();
        let found = memchr2(b'\n', 0, unseen).map(|at| self.scanned + at);
        self.scanned = found.unwrap_or(buf.len());
        let end = found.filter(|&at| buf.get(at) == Some(&b'\n'));
        if end.unwrap_or(buf.len()) > limits.max_inline {
            return Err(RequestError::TooBigInline);
        }
        let Some(end) = end else {
            return Ok(None);
        };
        let line = buf.get(..end).unwrap_or_default();
        self.inline.clear();
        split_line(
            line.strip_suffix(b"\r").unwrap_or(line),
            &mut self.inline,
            &mut self.spans,
        )
        .map_err(|_| RequestError::UnbalancedQuotes)?;
        Ok(Some(end + 1))
    }

    /// A browser made to speak to this port sends `POST` or `Host:` as a first word.
    #[inline]
    fn refuse_other_protocols(&mut self, buf: &[u8]) -> Result<(), RequestError> {
        if let Some(first) = self.spans.first()
            && matches!(first.end - first.start, 4 | 5)
        {
            let name = self.args(buf).name();
            if name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:") {
                self.spans.clear();
                return Err(RequestError::CrossProtocol);
            }
        }
        Ok(())
    }
}
