//! The client's side: requests encoded once, patched for each record.
//!
//! A load generator sends the same request with another key a million times. A [`RecordTemplate`]
//! holds the finished bytes of one; [`RecordTemplate::emit`] copies them, writes the digest over the
//! 20 bytes reserved for it, puts the values in their slots and corrects the sizes around them. A
//! [`BatchTemplate`] does the same for a batch of reads. Neither allocates beyond the growth of the
//! output buffer.
//!
//! The layout is that of the C client: namespace, set, digest, \[user key\], operations.

mod batch;
mod policy;
mod record;

use super::flags::Info1;
use super::message::MessageHeader;

pub use batch::{BatchRead, BatchTemplate};
pub use policy::{Exists, Generation, WritePolicy};
pub use record::{OpValue, RecordKey, RecordTemplate, TemplateOp};

/// Where requests go and what they all carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    /// Namespace name.
    pub namespace: &'a [u8],
    /// Set name; empty for none.
    pub set: &'a [u8],
    /// The server's time limit in milliseconds; 0 takes the server's default.
    pub timeout_ms: u32,
    /// Whether the user key is sent, so that the server stores it.
    pub send_key: bool,
}

const fn read_header(target: &Target<'_>, info1: Info1) -> MessageHeader {
    MessageHeader {
        info1,
        transaction_ttl: target.timeout_ms,
        ..MessageHeader::EMPTY
    }
}

#[cfg(test)]
mod tests;
