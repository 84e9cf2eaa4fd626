//! What a key holds on the RESP side.

use std::sync::atomic::{AtomicU32, Ordering};

use super::fault::Fault;
use super::text::Text;

/// A value with its expiry.
#[derive(Debug)]
pub struct Entry {
    /// The value.
    pub value: Value,
    /// When it expires, in milliseconds since 1970; `None` is never.
    pub expires_at: Option<u64>,
    /// Second of the last access, counted from the start of the server.
    accessed: AtomicU32,
}

/// The types of value.
#[derive(Debug, Clone)]
pub enum Value {
    /// A string.
    String(Text),
}

impl Entry {
    /// A value without expiry.
    #[must_use]
    pub fn new(value: Value) -> Self {
        Self {
            value,
            expires_at: None,
            accessed: AtomicU32::new(0),
        }
    }

    /// A string as SET stores it: kept as a number if it is one.
    #[must_use]
    pub fn string(bytes: &[u8]) -> Self {
        Self::new(Value::String(Text::encode(bytes)))
    }

    /// With this expiry.
    #[must_use]
    pub fn expiring(mut self, expires_at: Option<u64>) -> Self {
        self.expires_at = expires_at;
        self
    }

    /// Notes an access in the given second.
    #[inline]
    pub fn note_access(&self, second: u32) {
        self.accessed.store(second, Ordering::Relaxed);
    }

    /// The second of the last access, counted from the start of the server.
    #[must_use]
    pub fn accessed(&self) -> u32 {
        self.accessed.load(Ordering::Relaxed)
    }
}

impl Clone for Entry {
    fn clone(&self) -> Self {
        Self {
            value: self.value.clone(),
            expires_at: self.expires_at,
            accessed: AtomicU32::new(self.accessed()),
        }
    }
}

impl Value {
    /// The name that TYPE gives to it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::String(_) => "string",
        }
    }

    /// The name that OBJECT ENCODING gives to it.
    #[must_use]
    pub fn encoding(&self) -> &'static str {
        match self {
            Self::String(text) => text.encoding(),
        }
    }

    /// Bytes that it is counted with in `used_memory`, beside those of its key.
    #[must_use]
    #[inline]
    pub fn size(&self) -> usize {
        match self {
            Self::String(text) => text.size(),
        }
    }

    /// What OBJECT REFCOUNT says.
    #[must_use]
    pub fn refcount(&self) -> i64 {
        match self {
            Self::String(text) if text.is_shared_number() => i64::from(i32::MAX),
            Self::String(_) => 1,
        }
    }

    /// The string.
    ///
    /// # Errors
    /// When the value is of another type.
    #[inline]
    pub fn text(&self) -> Result<&Text, Fault> {
        match self {
            Self::String(text) => Ok(text),
        }
    }

    /// The string, to be changed.
    ///
    /// # Errors
    /// When the value is of another type.
    #[inline]
    pub fn text_mut(&mut self) -> Result<&mut Text, Fault> {
        match self {
            Self::String(text) => Ok(text),
        }
    }
}
