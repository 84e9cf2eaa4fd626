//! Why a request cannot be read, in the words of a real server.

use std::borrow::Cow;

use thiserror::Error;

/// A malformed request. The connection must be closed after the reply, if there is one.
///
/// `Display` gives the text of a real server without the leading `-ERR `; measured on redis-server 7.0.15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The number after `*` is not an integer or is above the limit.
    #[error("Protocol error: invalid multibulk length")]
    InvalidMultibulkLength,
    /// More arguments than a connection may send before it is authenticated.
    #[error("Protocol error: unauthenticated multibulk length")]
    UnauthenticatedMultibulkLength,
    /// The number after `$` is not an integer, negative or above the limit.
    #[error("Protocol error: invalid bulk length")]
    InvalidBulkLength,
    /// A longer argument than a connection may send before it is authenticated.
    #[error("Protocol error: unauthenticated bulk length")]
    UnauthenticatedBulkLength,
    /// An argument does not start with `$` but with this byte.
    #[error("Protocol error: expected '$', got '{}'", char::from(*.0))]
    ExpectedDollar(u8),
    /// An inline request without an end within the limit.
    #[error("Protocol error: too big inline request")]
    TooBigInline,
    /// A `*` line without an end within the limit.
    #[error("Protocol error: too big mbulk count string")]
    TooBigMultibulkCount,
    /// A `$` line without an end within the limit.
    #[error("Protocol error: too big bulk count string")]
    TooBigBulkCount,
    /// An inline request with a quote that does not close.
    #[error("Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
    /// The first word is `POST` or `Host:`: a web browser was lured here. Close without a reply; a real server
    /// also drops the replies to earlier requests that it has not yet written.
    #[error("possible cross-protocol request, connection closed")]
    CrossProtocol,
}

impl RequestError {
    /// The error reply without its leading `-` and its line end, or `None` when the connection is to be
    /// closed without a word.
    ///
    /// Bytes and not text, as a server quotes the offending byte as it came.
    #[must_use]
    pub fn reply_text(&self) -> Option<Cow<'static, [u8]>> {
        match *self {
            Self::CrossProtocol => None,
            Self::ExpectedDollar(byte) => {
                let mut text = b"ERR Protocol error: expected '$', got '".to_vec();
                // Line ends become blanks, as they would break the reply.
                text.push(if matches!(byte, b'\r' | b'\n') {
                    b' '
                } else {
                    byte
                });
                text.push(b'\'');
                Some(Cow::Owned(text))
            }
            _ => Some(Cow::Owned(format!("ERR {self}").into_bytes())),
        }
    }
}
