//! Where a reply ends and what it is, without building it.
//!
//! A load generator wants to know of most replies only that they are complete and whether they are a value,
//! a nil or an error. The skimmer walks over the elements of a reply, counting what is still open on a small
//! stack; it checks all that the full decoder checks, so that both accept the same bytes.

use super::decode_error::{DecodeError, DecodeLimits};
use super::line::{check_scalar, length, line_end, short_length};

/// What a reply amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplyKind {
    /// A value of any type.
    Ok,
    /// The absence of a value: `$-1`, `*-1` or `_`.
    Nil,
    /// An error, simple or bulk; see [`error_prefix`].
    Error,
    /// An out-of-band message, which is not the reply to any request.
    Push,
}

/// A complete reply at the front of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Skim {
    /// Bytes of the reply, attributes before it included.
    pub len: usize,
    /// What it amounts to.
    pub kind: ReplyKind,
}

/// Finds the ends of replies in the bytes of one connection.
///
/// It remembers where it stopped, so a reply that arrives byte by byte costs no more than one that arrives
/// whole.
///
/// ```
/// use kvlab_protocol::resp::{ReplyKind, ReplySkimmer};
///
/// let mut skimmer = ReplySkimmer::new();
/// let buf = b"$3\r\nabc\r\n$-1\r\n";
/// let first = skimmer.skim(buf)?.unwrap();
/// assert_eq!((first.len, first.kind), (9, ReplyKind::Ok));
/// assert_eq!(skimmer.skim(&buf[first.len..])?.unwrap().kind, ReplyKind::Nil);
/// # Ok::<(), kvlab_protocol::resp::DecodeError>(())
/// ```
#[derive(Debug, Default)]
pub struct ReplySkimmer {
    limits: DecodeLimits,
    /// True between two calls that belong to the same reply.
    underway: bool,
    /// First byte of the frame that is not yet understood.
    pos: usize,
    /// No line end lies between `pos` and here.
    scanned: usize,
    /// Length and type of the string whose bytes start at `pos`.
    body: Option<(usize, u8)>,
    /// An attribute is complete, and what it belongs to has not begun.
    value_due: bool,
    kind: Option<ReplyKind>,
    open: Vec<Level>,
}

/// An aggregate, or a streamed string, that is not complete.
#[derive(Clone, Copy, Debug)]
struct Level {
    kind: u8,
    /// Elements still to come; of a streamed one, elements it has so far.
    count: u64,
    streamed: bool,
}

/// What one step over the bytes found.
enum Step {
    /// The next bytes have not arrived.
    Incomplete,
    /// An element without parts is over.
    Element,
    /// The streamed aggregate or string on top of the stack is over.
    Closed,
    /// Something was opened, or a chunk of a streamed string was passed.
    Onward,
}

impl ReplySkimmer {
    /// A skimmer with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A skimmer with the given limits.
    #[must_use]
    pub fn with_limits(limits: DecodeLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Looks for one reply at the front of `buf`, all the unconsumed bytes of the connection.
    ///
    /// `Ok(Some(skim))`: a reply of `skim.len` bytes is complete, which the caller drops. `Ok(None)`: call again
    /// with the same bytes and more behind them.
    ///
    /// # Errors
    ///
    /// The reply is malformed or above a limit; nothing behind it can be read.
    #[inline]
    pub fn skim(&mut self, buf: &[u8]) -> Result<Option<Skim>, DecodeError> {
        if !self.underway
            && let Some(skim) = skim_short(buf, self.limits.max_bulk)
            && skim.len <= self.limits.max_frame
        {
            return Ok(Some(skim));
        }
        self.skim_any(buf)
    }

    fn skim_any(&mut self, buf: &[u8]) -> Result<Option<Skim>, DecodeError> {
        if !self.underway {
            self.restart();
        }
        self.underway = true;
        let result = self.walk(buf).and_then(|end| {
            let limit = self.limits.max_frame;
            if end.map_or(buf.len(), |skim| skim.len) > limit {
                return Err(DecodeError::FrameTooLong { limit });
            }
            Ok(end)
        });
        self.underway = matches!(result, Ok(None));
        result
    }

    fn restart(&mut self) {
        self.pos = 0;
        self.scanned = 0;
        self.body = None;
        self.value_due = false;
        self.kind = None;
        self.open.clear();
    }

    fn walk(&mut self, buf: &[u8]) -> Result<Option<Skim>, DecodeError> {
        loop {
            let step = if let Some((len, kind)) = self.body {
                self.pass_body(buf, len, kind)?
            } else if self.pass_short_element(buf) {
                Step::Element
            } else {
                self.pass_line(buf)?
            };
            match step {
                Step::Incomplete => return Ok(None),
                Step::Onward => continue,
                Step::Element => {}
                Step::Closed => {
                    self.open.pop();
                }
            }
            if self.complete_element()? {
                return Ok(Some(Skim {
                    len: self.pos,
                    kind: self.kind.unwrap_or(ReplyKind::Ok),
                }));
            }
        }
    }

    /// Counts a complete element in whatever contains it; true if nothing does.
    fn complete_element(&mut self) -> Result<bool, DecodeError> {
        while let Some(level) = self.open.last_mut() {
            if level.streamed {
                level.count += 1;
                let (len, limit) = (level.count, self.limits.max_elements);
                return if len > limit {
                    Err(DecodeError::TooManyElements { len, limit })
                } else {
                    Ok(false)
                };
            }
            level.count -= 1;
            if level.count > 0 {
                return Ok(false);
            }
            let attribute = level.kind == b'|';
            self.open.pop();
            if attribute {
                self.value_due = true;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Passes an element of an aggregate that is complete and of the most usual types.
    #[inline]
    fn pass_short_element(&mut self, buf: &[u8]) -> bool {
        // Streamed strings hold chunks only.
        let Some(Level {
            kind: b'*' | b'%' | b'~' | b'>' | b'|',
            ..
        }) = self.open.last()
        else {
            return false;
        };
        let rest = buf.get(self.pos..).unwrap_or_default();
        let Some(skim) = skim_short(rest, self.limits.max_bulk) else {
            return false;
        };
        self.pos += skim.len;
        self.value_due = false;
        true
    }

    /// Passes the line at `pos`, which opens, is or closes an element.
    fn pass_line(&mut self, buf: &[u8]) -> Result<Step, DecodeError> {
        let Some(&kind) = buf.get(self.pos) else {
            return Ok(Step::Incomplete);
        };
        self.check_type(kind)?;
        let from = self.scanned.max(self.pos + 1);
        let Some(end) = line_end(buf, from)? else {
            // A CR at the very end is looked at again, with the byte behind it.
            self.scanned = buf.len().saturating_sub(1).max(from);
            return Ok(Step::Incomplete);
        };
        let text = buf.get(self.pos + 1..end).unwrap_or_default();
        self.pos = end + 2;
        let outermost = self.open.is_empty();
        let mut reply_kind = ReplyKind::Ok;
        let step = match kind {
            b'+' => Step::Element,
            b'-' => {
                reply_kind = ReplyKind::Error;
                Step::Element
            }
            b':' | b',' | b'#' | b'(' => {
                check_scalar(kind, text)?;
                Step::Element
            }
            b'_' if text.is_empty() => {
                reply_kind = ReplyKind::Nil;
                Step::Element
            }
            b'_' => return Err(DecodeError::InvalidValue(kind)),
            b'$' | b'*' if text == b"-1" => {
                reply_kind = ReplyKind::Nil;
                Step::Element
            }
            b'$' | b'*' | b'%' | b'~' if text == b"?" => self.open_level(kind, 0, true)?,
            b'$' | b'!' | b'=' | b';' => {
                if kind == b'!' {
                    reply_kind = ReplyKind::Error;
                }
                self.open_string(kind, text)?
            }
            b'*' | b'%' | b'~' | b'>' | b'|' => {
                if kind == b'>' {
                    reply_kind = ReplyKind::Push;
                }
                self.open_aggregate(kind, text)?
            }
            b'.' => {
                let whole = self
                    .open
                    .last()
                    .is_some_and(|l| l.kind != b'%' || l.count % 2 == 0);
                if !whole || !text.is_empty() || self.value_due {
                    return Err(DecodeError::UnexpectedStreamPart(kind));
                }
                Step::Closed
            }
            other => return Err(DecodeError::UnknownType(other)),
        };
        if !matches!(kind, b'|' | b'.' | b';') {
            self.value_due = false;
            if outermost {
                self.kind = Some(reply_kind);
            }
        }
        Ok(step)
    }

    /// Refuses a type byte that is unknown, or out of place: chunks stand in streamed strings and nowhere else,
    /// end marks close streamed aggregates only.
    fn check_type(&self, kind: u8) -> Result<(), DecodeError> {
        if !b"+-:$*_,#(!=%~>|;.".contains(&kind) {
            return Err(DecodeError::UnknownType(kind));
        }
        let fits = match self.open.last() {
            Some(level) if level.streamed && level.kind == b'$' => kind == b';',
            Some(level) if level.streamed => kind != b';',
            _ => kind != b';' && kind != b'.',
        };
        if fits {
            Ok(())
        } else {
            Err(DecodeError::UnexpectedStreamPart(kind))
        }
    }

    fn open_string(&mut self, kind: u8, text: &[u8]) -> Result<Step, DecodeError> {
        let len = length(kind, text)?;
        let limit = self.limits.max_bulk;
        if len > limit {
            return Err(DecodeError::BulkTooLong { len, limit });
        }
        if kind == b';' && len == 0 {
            return Ok(Step::Closed);
        }
        if kind == b'=' && len < 4 {
            return Err(DecodeError::InvalidLength(kind));
        }
        let len = usize::try_from(len).map_err(|_| DecodeError::InvalidLength(kind))?;
        self.body = Some((len, kind));
        Ok(Step::Onward)
    }

    fn open_aggregate(&mut self, kind: u8, text: &[u8]) -> Result<Step, DecodeError> {
        let len = length(kind, text)?;
        let count = if matches!(kind, b'%' | b'|') {
            len.saturating_mul(2)
        } else {
            len
        };
        let limit = self.limits.max_elements;
        if count > limit {
            return Err(DecodeError::TooManyElements { len: count, limit });
        }
        match (count, kind) {
            (0, b'|') => {
                self.value_due = true;
                Ok(Step::Onward)
            }
            (0, _) => Ok(Step::Element),
            _ => self.open_level(kind, count, false),
        }
    }

    fn open_level(&mut self, kind: u8, count: u64, streamed: bool) -> Result<Step, DecodeError> {
        let limit = self.limits.max_depth;
        if self.open.len() >= limit {
            return Err(DecodeError::TooDeep { limit });
        }
        self.open.push(Level {
            kind,
            count,
            streamed,
        });
        Ok(Step::Onward)
    }

    /// Passes the bytes of a string and the CR LF behind them.
    fn pass_body(&mut self, buf: &[u8], len: usize, kind: u8) -> Result<Step, DecodeError> {
        let end = self.pos.saturating_add(len);
        let Some(line_end) = buf.get(end..end.saturating_add(2)) else {
            return Ok(Step::Incomplete);
        };
        if line_end != b"\r\n" {
            return Err(DecodeError::MissingLineEnd);
        }
        if kind == b'=' && buf.get(self.pos + 3) != Some(&b':') {
            return Err(DecodeError::InvalidValue(kind));
        }
        self.pos = end + 2;
        self.body = None;
        Ok(if kind == b';' {
            Step::Onward
        } else {
            Step::Element
        })
    }
}

/// The first word of an error reply (`ERR`, `WRONGTYPE`, `MOVED`), attributes before it skipped; empty for a
/// frame that is not a complete error.
///
/// ```
/// use kvlab_protocol::resp::error_prefix;
///
/// assert_eq!(error_prefix(b"-LOADING Redis is loading\r\n"), b"LOADING");
/// assert_eq!(error_prefix(b"!21\r\nSYNTAX invalid syntax\r\n"), b"SYNTAX");
/// ```
#[must_use]
pub fn error_prefix(frame: &[u8]) -> &[u8] {
    let text = match super::decode::without_attributes(frame) {
        [b'-', text @ ..] => text,
        [b'!', rest @ ..] => match rest.iter().position(|&byte| byte == b'\n') {
            Some(at) => rest.get(at + 1..).unwrap_or_default(),
            None => &[],
        },
        _ => &[],
    };
    text.split(|byte| matches!(byte, b' ' | b'\r' | b'\n'))
        .next()
        .unwrap_or_default()
}

/// The replies that make up nearly all traffic, complete in the buffer: `+OK`, a nil, an integer, a bulk string,
/// the last two with up to nine digits.
#[inline]
fn skim_short(buf: &[u8], max_bulk: u64) -> Option<Skim> {
    let (len, kind) = match *buf {
        [b'+', b'O', b'K', b'\r', b'\n', ..] => (5, ReplyKind::Ok),
        [b'$', b'-', b'1', b'\r', b'\n', ..] => (5, ReplyKind::Nil),
        [b'_', b'\r', b'\n', ..] => (3, ReplyKind::Nil),
        [b':', ..] => {
            let (_, len) = short_length(buf)?;
            (buf.get(len - 1) == Some(&b'\n')).then_some((len, ReplyKind::Ok))?
        }
        [b'$', ..] => {
            let (len, start) = short_length(buf)?;
            let end = start + len;
            let whole = buf.get(start - 1) == Some(&b'\n') && buf.get(end..end + 2)? == b"\r\n";
            let allowed = u64::try_from(len).is_ok_and(|len| len <= max_bulk);
            (whole && allowed).then_some((end + 2, ReplyKind::Ok))?
        }
        _ => return None,
    };
    Some(Skim { len, kind })
}
