//! Limits on replies, and why a reply cannot be read.

use thiserror::Error;

/// Limits a client puts on the replies it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Deepest nesting of aggregates. Real replies stay below ten.
    pub max_depth: usize,
    /// Longest string in bytes.
    pub max_bulk: u64,
    /// Most elements of one aggregate, where a map of n pairs has 2n.
    pub max_elements: u64,
    /// Longest reply in bytes, all its elements together.
    pub max_frame: usize,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self {
            max_depth: 128,
            max_bulk: 512 * 1024 * 1024,
            max_elements: 1 << 28,
            max_frame: 1024 * 1024 * 1024,
        }
    }
}

/// A malformed reply, or one above a limit. Nothing behind it on the connection can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// No type starts with this byte.
    #[error("unknown reply type byte 0x{0:02x}")]
    UnknownType(u8),
    /// A line holds a CR or LF that does not end it, or a string is not followed by CR LF.
    #[error("expected CR LF at the end of a line or string")]
    MissingLineEnd,
    /// The length of a string or aggregate is not a number, or negative where it cannot be.
    #[error("invalid length after type byte '{}'", char::from(*.0))]
    InvalidLength(u8),
    /// The text of an integer, double, boolean, big number, null or verbatim string is not one.
    #[error("invalid value after type byte '{}'", char::from(*.0))]
    InvalidValue(u8),
    /// A chunk or an end mark outside a streamed string or aggregate, or anything else inside a streamed string.
    #[error("unexpected byte 0x{0:02x} in or outside a streamed reply")]
    UnexpectedStreamPart(u8),
    /// Aggregates are nested deeper than the limit.
    #[error("reply nested deeper than {limit} levels")]
    TooDeep {
        /// The limit that was passed.
        limit: usize,
    },
    /// A string is longer than the limit.
    #[error("string of {len} bytes is above the limit of {limit}")]
    BulkTooLong {
        /// Announced length.
        len: u64,
        /// The limit that was passed.
        limit: u64,
    },
    /// An aggregate has more elements than the limit.
    #[error("aggregate of {len} elements is above the limit of {limit}")]
    TooManyElements {
        /// Announced or counted number of elements.
        len: u64,
        /// The limit that was passed.
        limit: u64,
    },
    /// The whole reply is longer than the limit.
    #[error("reply is longer than the limit of {limit} bytes")]
    FrameTooLong {
        /// The limit that was passed.
        limit: usize,
    },
}
