//! How large a request may be, and how many may be under way on a connection.
//!
//! ```text
//! size-limit = kind "=" amount [ ",text=" rest ]
//! kind       = "request" | "key" | "value" | "arguments" | "pipeline"
//! ```
//!
//! | kind | on RESP | on Aerospike |
//! |---|---|---|
//! | `request` | bytes of the whole request; refused as soon as the length of an argument shows it, the rest is passed over and not kept | bytes of the message, by its header; 13 |
//! | `key` | bytes of each key | bytes of the user key, if it is sent; 4 |
//! | `value` | bytes of the largest argument that is no key | bytes of the record as stored; 13 |
//! | `arguments` | arguments, the command's name included | operations of a message, 4; rows of a batch, 151 |
//! | `pipeline` | requests that were read and are not answered, with the one that is refused | the same; 18 |
//!
//! A request beyond a limit is answered with an error in its turn, is not executed and takes no token
//! of a throttle; the connection goes on. In a text `{limit}` and `{actual}` are filled in.

use std::fmt;
use std::str::FromStr;

use kvlab_protocol::aerospike::result_code::ResultCode;

use super::{ByteSize, LimitError};

/// A limit on the size of requests.
///
/// ```
/// use kvlab_mock_server::limit::{SizeKind, SizeLimit};
///
/// let limit: SizeLimit = "key=32KB,text=ERR key of {actual} bytes".parse()?;
/// assert_eq!((limit.kind, limit.most), (SizeKind::Key, 32_000));
/// assert_eq!(limit.text_for(40_000), "ERR key of 40000 bytes");
/// # Ok::<(), kvlab_mock_server::limit::LimitError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeLimit {
    /// What is limited.
    pub kind: SizeKind,
    /// The largest that passes; at least 1.
    pub most: u64,
    /// What a RESP client is told, without the leading `-`.
    pub text: Option<String>,
}

/// What a size limit is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeKind {
    /// The whole request.
    Request,
    /// A key.
    Key,
    /// A value, or a whole record.
    Value,
    /// The number of arguments or operations.
    Arguments,
    /// The number of requests under way on a connection.
    Pipeline,
}

impl SizeKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::Request,
        Self::Key,
        Self::Value,
        Self::Arguments,
        Self::Pipeline,
    ];

    /// Its name in a text.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Key => "key",
            Self::Value => "value",
            Self::Arguments => "arguments",
            Self::Pipeline => "pipeline",
        }
    }

    fn is_in_bytes(self) -> bool {
        matches!(self, Self::Request | Self::Key | Self::Value)
    }

    /// What a RESP client is told where nothing else is said.
    fn usual_text(self) -> &'static str {
        match self {
            Self::Request => {
                "ERR max request size exceeded. Limit: {limit} bytes, Actual: {actual} bytes"
            }
            Self::Key => "ERR max key size exceeded. Limit: {limit} bytes, Actual: {actual} bytes",
            Self::Value => {
                "ERR max value size exceeded. Limit: {limit} bytes, Actual: {actual} bytes"
            }
            Self::Arguments => {
                "ERR max number of arguments exceeded. Limit: {limit}, Actual: {actual}"
            }
            Self::Pipeline => "ERR max pipeline depth exceeded. Limit: {limit}, Actual: {actual}",
        }
    }

    /// What an Aerospike client is told.
    pub(crate) fn code(self) -> ResultCode {
        match self {
            Self::Request | Self::Value => ResultCode::RecordTooBig,
            Self::Key | Self::Arguments => ResultCode::Parameter,
            Self::Pipeline => ResultCode::DeviceOverload,
        }
    }
}

impl SizeLimit {
    /// What a RESP client is told about a size of `actual`.
    #[must_use]
    pub fn text_for(&self, actual: u64) -> String {
        let text = self.text.as_deref().unwrap_or(self.kind.usual_text());
        text.replace("{limit}", &self.most.to_string())
            .replace("{actual}", &actual.to_string())
    }
}

impl FromStr for SizeLimit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let wrong = |expected| LimitError::new("a size limit", text, expected);
        let (head, own_text) = match text.split_once(",text=") {
            Some((head, own_text)) => (head, Some(own_text.to_owned())),
            None => (text, None),
        };
        let (name, amount) = head.split_once('=').ok_or_else(|| wrong(FORM))?;
        let kind = SizeKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name.trim())
            .ok_or_else(|| wrong(FORM))?;
        let amount = amount.trim();
        let digits = amount.bytes().all(|byte| byte.is_ascii_digit());
        let most = if kind.is_in_bytes() {
            amount.parse().ok().map(|ByteSize(bytes)| bytes)
        } else {
            amount.parse().ok().filter(|_| digits)
        };
        let most = most.filter(|most| *most > 0);
        Ok(Self {
            kind,
            most: most.ok_or_else(|| wrong(AMOUNT))?,
            text: own_text,
        })
    }
}

const FORM: &str = "request=SIZE, key=SIZE, value=SIZE, arguments=N or pipeline=N, with or without \
                    ,text= at the end";
const AMOUNT: &str =
    "a size above 0, as in request=10MB, or a number above 0, as in arguments=3999";

impl TryFrom<&str> for SizeLimit {
    type Error = LimitError;

    fn try_from(text: &str) -> Result<Self, LimitError> {
        text.parse()
    }
}

impl fmt::Display for SizeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.kind.name();
        if self.kind.is_in_bytes() {
            write!(f, "{name}={}", ByteSize(self.most))?;
        } else {
            write!(f, "{name}={}", self.most)?;
        }
        match &self.text {
            Some(text) => write!(f, ",text={text}"),
            None => Ok(()),
        }
    }
}

/// A request that is larger than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Excess {
    pub(crate) kind: SizeKind,
    pub(crate) actual: u64,
}

/// The size limits of a running server, by kind.
#[derive(Debug)]
pub(crate) struct Sizes([Option<SizeLimit>; SizeKind::ALL.len()]);

impl Sizes {
    /// Of two of a kind the first counts.
    pub(crate) fn new(limits: &[SizeLimit]) -> Self {
        Self(SizeKind::ALL.map(|kind| limits.iter().find(|limit| limit.kind == kind).cloned()))
    }

    fn limit(&self, kind: SizeKind) -> Option<&SizeLimit> {
        self.0.get(kind as usize)?.as_ref()
    }

    /// The largest that passes.
    pub(crate) fn most(&self, kind: SizeKind) -> Option<u64> {
        self.limit(kind).map(|limit| limit.most)
    }

    /// Whether something of this size is too large.
    pub(crate) fn exceeded(&self, kind: SizeKind, actual: usize) -> Option<Excess> {
        let actual = u64::try_from(actual).unwrap_or(u64::MAX);
        let too_large = self.most(kind).is_some_and(|most| actual > most);
        too_large.then_some(Excess { kind, actual })
    }

    /// What a RESP client is told.
    pub(crate) fn text(&self, excess: Excess) -> String {
        self.limit(excess.kind)
            .map(|limit| limit.text_for(excess.actual))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_print_as_they_are_read() {
        for (text, printed) in [
            ("request=10MB", "request=10MB"),
            ("key = 32KB", "key=32KB"),
            ("value=1048576", "value=1MiB"),
            (
                "arguments=3999,text=ERR a, b",
                "arguments=3999,text=ERR a, b",
            ),
            ("pipeline=100,text=", "pipeline=100,text="),
        ] {
            let limit: SizeLimit = text.parse().unwrap();
            assert_eq!(limit.to_string(), printed);
            assert_eq!(printed.parse(), Ok(limit));
        }
        for (text, part) in [
            ("", "request=SIZE"),
            ("10MB", "request=SIZE"),
            ("bulk=10MB", "request=SIZE"),
            ("key=0", "above 0"),
            ("arguments=1KB", "above 0"),
            ("pipeline=-1", "above 0"),
        ] {
            let error = text.parse::<SizeLimit>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_limit_itself_passes() {
        let sizes = Sizes::new(&["key=10B".parse().unwrap()]);
        assert_eq!(sizes.exceeded(SizeKind::Key, 10), None);
        let excess = sizes.exceeded(SizeKind::Key, 11).unwrap();
        let text = "ERR max key size exceeded. Limit: 10 bytes, Actual: 11 bytes";
        assert_eq!(sizes.text(excess), text);
        assert_eq!(sizes.exceeded(SizeKind::Value, 11), None);
    }
}
