//! The client's side of info messages: build a request, read the answers.

use bytes::{BufMut, BytesMut};

use super::super::proto::{Kind, begin_frame, finish_frame};
use super::super::result_code::ResultCode;
use super::{parse_number, split_once};

/// Writes a whole request frame with one line per command. A command must not contain a newline.
pub fn put_request<'a>(commands: impl IntoIterator<Item = &'a str>, out: &mut BytesMut) {
    let frame = begin_frame(Kind::Info, out);
    for command in commands {
        out.put_slice(command.as_bytes());
        out.put_u8(b'\n');
    }
    finish_frame(frame, out);
}

/// The answer to one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The command as it was sent.
    pub command: &'a [u8],
    /// The value, or an error text, see [`Answer::ok`].
    pub value: &'a [u8],
}

impl<'a> Answer<'a> {
    /// The value, unless it is an error.
    ///
    /// # Errors
    /// The error a server wrote instead of a value.
    pub fn ok(&self) -> Result<&'a [u8], InfoError<'a>> {
        InfoError::parse(self.value).map_or(Ok(self.value), Err)
    }
}

/// An error a server wrote in place of a value: `ERROR:<code>:<text>`, or `FAIL:...` of old ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoError<'a> {
    /// The code, if there is one.
    pub code: Option<ResultCode>,
    /// The text, not checked to be UTF-8.
    pub text: &'a [u8],
}

impl<'a> InfoError<'a> {
    /// Recognises an error value, in any letter case.
    #[must_use]
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (word, rest) = split_once(value, b':').unwrap_or((value, b""));
        if !word.eq_ignore_ascii_case(b"ERROR") && !word.eq_ignore_ascii_case(b"FAIL") {
            return None;
        }
        let (code, text) = split_once(rest, b':').unwrap_or((rest, b""));
        match parse_number::<u8>(code) {
            Some(code) => Some(Self {
                code: Some(ResultCode::from_byte(code)),
                text,
            }),
            None => Some(Self {
                code: None,
                text: rest,
            }),
        }
    }
}

impl core::fmt::Display for InfoError<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let text = String::from_utf8_lossy(self.text);
        match self.code {
            Some(code) => write!(f, "{code}: {text}"),
            None => f.write_str(&text),
        }
    }
}

impl core::error::Error for InfoError<'_> {}

/// A value of an info answer that is not in the form its command promises.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed value of an info answer: expected {expected}")]
pub struct ValueError {
    /// What was expected where the value went wrong.
    pub expected: &'static str,
}

/// The answers of a body; see [`answers`].
#[derive(Debug, Clone)]
pub struct Answers<'a> {
    rest: &'a [u8],
}

/// The answers of a body, in the order of the commands. A line without a tab has an empty value; a
/// last line without newline is left out.
#[must_use]
pub const fn answers(body: &[u8]) -> Answers<'_> {
    Answers { rest: body }
}

impl<'a> Iterator for Answers<'a> {
    type Item = Answer<'a>;

    fn next(&mut self) -> Option<Answer<'a>> {
        let (line, rest) = split_once(self.rest, b'\n')?;
        self.rest = rest;
        let (command, value) = split_once(line, b'\t').unwrap_or((line, b""));
        Some(Answer { command, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_one_line_per_command() {
        let mut out = BytesMut::new();
        put_request(["node", "build"], &mut out);
        assert_eq!(&out[..], b"\x02\x01\0\0\0\0\0\x0bnode\nbuild\n");
    }

    #[test]
    fn answers_come_in_order_with_their_commands() {
        let all: Vec<_> =
            answers(b"node\tA1\nreplicas\t\n\tERROR:4:unrecognized command\n").collect();
        assert_eq!(
            all[0],
            Answer {
                command: b"node",
                value: b"A1"
            }
        );
        assert_eq!(
            all[1],
            Answer {
                command: b"replicas",
                value: b""
            }
        );
        let error = all[2].ok().unwrap_err();
        assert_eq!(error.code, Some(ResultCode::Parameter));
        assert_eq!(error.text, b"unrecognized command");
    }

    #[test]
    fn errors_of_old_servers_are_recognised() {
        assert_eq!(
            InfoError::parse(b"fail:x").unwrap(),
            InfoError {
                code: None,
                text: b"x"
            }
        );
        assert!(InfoError::parse(b"FAIL").is_some());
        assert!(InfoError::parse(b"failed_best_practices=true").is_none());
        assert!(InfoError::parse(b"error=not_found").is_none());
    }
}
