//! Info messages: text commands, one a line, and their answers.
//!
//! Request: each command ends with a newline; text after the last newline is ignored. Answer, for
//! each command in order: the command exactly as sent, a tab, the value, a newline. A command is a
//! name, then `:` and `key=value;key=value`, or arguments behind `/`, or a stray `;`.
//!
//! Source: behaviour of Community Edition 8.1.2 (`golden/aerospike/info.json`).

mod answer;
mod peers;
mod replicas;

use bytes::{BufMut, BytesMut};

pub use answer::{Answer, Answers, InfoError, ValueError, answers, put_request};
pub use peers::{Host, Peer, Peers, Services};
pub use replicas::{
    BITMAP_LEN, NamespaceReplicas, PartitionBitmap, Replicas, put_replicas_all, put_replicas_master,
};

use super::proto::{FrameStart, Kind, begin_frame, finish_frame};
use super::result_code::ResultCode;

/// One command line of a request, without its newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoRequest<'a> {
    raw: &'a [u8],
}

impl<'a> InfoRequest<'a> {
    /// A command from its text.
    #[must_use]
    pub const fn new(raw: &'a [u8]) -> Self {
        Self { raw }
    }

    /// The line as sent; the answer repeats it. Empty for an empty line.
    #[must_use]
    pub const fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// The command's name: everything before the first `:`, `/` or `;`.
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        self.split().0
    }

    /// What follows the name and its separator; empty if nothing does.
    #[must_use]
    pub fn arguments(&self) -> &'a [u8] {
        self.split().1
    }

    /// The `key=value` pairs of the arguments; an item without `=` has an empty value. Empty items
    /// are left out.
    pub fn params(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let items = self.arguments().split(|&byte| byte == b';');
        items
            .filter(|item| !item.is_empty())
            .map(|item| split_once(item, b'=').unwrap_or((item, b"")))
    }

    /// The value of the first parameter of this name.
    #[must_use]
    pub fn param(&self, key: &[u8]) -> Option<&'a [u8]> {
        self.params()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    }

    /// The arguments between slashes, as in `sets/test/s1`; none if the arguments are empty.
    pub fn path(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let arguments = self.arguments();
        arguments
            .split(|&byte| byte == b'/')
            .filter(move |_| !arguments.is_empty())
    }

    fn split(&self) -> (&'a [u8], &'a [u8]) {
        let end = self
            .raw
            .iter()
            .position(|byte| matches!(byte, b':' | b'/' | b';'));
        let Some((name, rest)) = end.and_then(|end| self.raw.split_at_checked(end)) else {
            return (self.raw, b"");
        };
        (name, rest.get(1..).unwrap_or_default())
    }
}

/// The command lines of a request body; see [`requests`].
#[derive(Debug, Clone)]
pub struct Requests<'a> {
    rest: &'a [u8],
}

/// The commands of a request body, in order. A last line without newline is left out, as servers
/// do; an empty line is a command (an unrecognised one).
#[must_use]
pub const fn requests(body: &[u8]) -> Requests<'_> {
    Requests { rest: body }
}

impl<'a> Iterator for Requests<'a> {
    type Item = InfoRequest<'a>;

    fn next(&mut self) -> Option<InfoRequest<'a>> {
        let end = memchr::memchr(b'\n', self.rest)?;
        let (raw, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest.get(1..)?;
        Some(InfoRequest { raw })
    }
}

/// Writes the answer to an info request: a frame of `command TAB value NEWLINE` lines.
#[derive(Debug)]
#[must_use = "an answer must be finished, or its length stays zero"]
pub struct AnswerWriter<'a> {
    out: &'a mut BytesMut,
    frame: FrameStart,
}

impl<'a> AnswerWriter<'a> {
    /// Begins the frame.
    pub fn begin(out: &'a mut BytesMut) -> Self {
        let frame = begin_frame(Kind::Info, out);
        Self { out, frame }
    }

    /// Adds the answer to one command.
    pub fn entry(&mut self, command: &[u8], value: &[u8]) {
        self.entry_with(command, |out| out.put_slice(value));
    }

    /// Adds the answer to one command; `write` appends the value.
    pub fn entry_with(&mut self, command: &[u8], write: impl FnOnce(&mut BytesMut)) {
        self.out.put_slice(command);
        self.out.put_u8(b'\t');
        write(self.out);
        self.out.put_u8(b'\n');
    }

    /// Adds an error answer, `ERROR:<code>:<text>`.
    pub fn error(&mut self, command: &[u8], code: ResultCode, text: &str) {
        self.entry_with(command, |out| put_error(code, text, out));
    }

    /// Fills in the length.
    pub fn finish(self) {
        finish_frame(self.frame, self.out);
    }
}

/// Writes an error value, `ERROR:<code>:<text>`.
pub fn put_error(code: ResultCode, text: &str, out: &mut BytesMut) {
    out.put_slice(b"ERROR:");
    put_number(u64::from(code.byte()), out);
    out.put_u8(b':');
    out.put_slice(text.as_bytes());
}

/// Writes a decimal number.
pub(crate) fn put_number(number: u64, out: &mut BytesMut) {
    out.put_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Reads a whole decimal number.
pub(crate) fn parse_number<T: core::str::FromStr>(text: &[u8]) -> Option<T> {
    if text.first() == Some(&b'+') {
        return None;
    }
    str::from_utf8(text).ok()?.parse().ok()
}

/// The parts before and after the first `separator`.
pub(crate) fn split_once(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(separator, text)?;
    let (before, after) = text.split_at_checked(at)?;
    Some((before, after.get(1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_newline_and_the_rest_is_ignored() {
        let raw = |body: &'static [u8]| requests(body).map(|r| r.raw()).collect::<Vec<_>>();
        assert_eq!(raw(b"node\nbuild\n"), [&b"node"[..], b"build"]);
        assert_eq!(raw(b"node\n\nbuild"), [&b"node"[..], b""]);
        assert!(raw(b"node").is_empty());
        assert!(raw(b"").is_empty());
    }

    #[test]
    fn stray_separators_belong_to_no_name() {
        for raw in ["node", "node:", "node;"] {
            let request = InfoRequest::new(raw.as_bytes());
            assert_eq!(request.name(), b"node");
            assert_eq!(request.params().count() + request.path().count(), 0);
        }
    }

    #[test]
    fn parameters_and_paths() {
        let request = InfoRequest::new(b"udf-put:filename=u.lua;content=YQ==;content-len=4;");
        assert_eq!(request.name(), b"udf-put");
        assert_eq!(request.param(b"content"), Some(&b"YQ=="[..]));
        assert_eq!(request.param(b"missing"), None);
        assert_eq!(request.params().count(), 3);
        let request = InfoRequest::new(b"sets/test/s1");
        assert_eq!(request.name(), b"sets");
        assert_eq!(request.path().collect::<Vec<_>>(), [&b"test"[..], b"s1"]);
    }

    #[test]
    fn answers_repeat_the_command() {
        let mut out = BytesMut::new();
        let mut answer = AnswerWriter::begin(&mut out);
        answer.entry(b"node", b"A1");
        answer.error(b"", ResultCode::Parameter, "unrecognized command");
        answer.finish();
        let body = b"node\tA1\n\tERROR:4:unrecognized command\n";
        assert_eq!(&out[8..], body);
        assert_eq!(out[..8], [2, 1, 0, 0, 0, 0, 0, 38]);
    }
}
