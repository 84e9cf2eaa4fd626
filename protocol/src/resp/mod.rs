//! RESP, the protocol of Redis, in its versions 2 and 3.
//!
//! | side   | what                             | type                              |
//! |--------|----------------------------------|-----------------------------------|
//! | server | request bytes to arguments       | [`RequestDecoder`], [`Args`]      |
//! | server | replies to bytes                 | [`ReplyWriter`]                   |
//! | client | arguments to request bytes       | [`request`]                       |
//! | client | where a reply ends, what kind    | [`ReplySkimmer`]                  |
//! | client | reply bytes to a value           | [`ReplyDecoder`], [`Value`]       |
//! | both   | numbers as a server reads/prints | [`number`]                        |
//! | both   | cluster slot of a key            | [`slot`]                          |
//!
//! Every frame opens with one type byte and a line that ends in CR LF:
//!
//! ```text
//! + simple   - error    : integer   $ bulk   * array                        RESP2
//! _ null     , double   # boolean   ( big number   ! bulk error             RESP3
//! = verbatim % map      ~ set       > push         | attribute              RESP3
//! $? *? ~? %?   streamed forms, ended by ";0" (string) or "." (aggregate)  RESP3
//! ```
//!
//! Source: the RESP specifications of redis.io and the behaviour of redis-server 7.0.15, measured by
//! raw socket; each measured oddity is named where it is implemented.

mod args;
mod decode;
mod decode_error;
mod inline;
mod line;
pub mod number;
mod reply_writer;
pub mod request;
mod request_decoder;
mod request_error;
mod skim;
pub mod slot;
mod value;

pub use args::{Args, ArgsIter, OwnedArgs};
pub use decode::ReplyDecoder;
pub use decode_error::{DecodeError, DecodeLimits};
pub use number::DoubleStyle;
pub use reply_writer::ReplyWriter;
pub use request_decoder::{RequestDecoder, RequestLimits};
pub use request_error::RequestError;
pub use skim::{ReplyKind, ReplySkimmer, Skim, error_prefix};
pub use value::Value;

/// Version of the protocol spoken on a connection, as negotiated by `HELLO`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// The protocol of every connection until `HELLO 3` is answered.
    #[default]
    Resp2,
    /// Typed replies: maps, sets, doubles, booleans, pushes.
    Resp3,
}
