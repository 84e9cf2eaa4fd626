//! What a key holds on the RESP side.

use bytes::Bytes;

/// A value with its expiry.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The value.
    pub value: Value,
    /// When it expires, in milliseconds since 1970; `None` is never.
    pub expires_at: Option<u64>,
}

/// The types of value.
#[derive(Debug, Clone)]
pub enum Value {
    /// A string.
    String(Bytes),
}
