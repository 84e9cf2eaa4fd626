//! What a key holds on the RESP side.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

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
    /// The logarithmic counter of accesses, and the minute it was last changed in, counted from the
    /// start of the server and wrapping around; kept up to date only under a policy that needs it.
    frequency: AtomicU8,
    counted: AtomicU16,
}

/// The frequency of a new key.
pub const NEW_KEY_FREQUENCY: u8 = 5;

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
            frequency: AtomicU8::new(NEW_KEY_FREQUENCY),
            counted: AtomicU16::new(0),
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

    /// Whether it expires.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        self.expires_at.is_some()
    }

    /// Notes an access in the given second.
    #[inline]
    pub fn note_access(&self, second: u32) {
        self.accessed.store(second, Ordering::Relaxed);
    }

    /// How often it is used lately, at a minute of the server's life, where each `decay` minutes
    /// without use take one from it; 0 takes nothing.
    #[must_use]
    pub fn frequency(&self, minute: u16, decay: u16) -> u8 {
        let passed = minute.wrapping_sub(self.counted.load(Ordering::Relaxed));
        let lost = passed.checked_div(decay).unwrap_or(0);
        let frequency = self.frequency.load(Ordering::Relaxed);
        frequency.saturating_sub(u8::try_from(lost).unwrap_or(u8::MAX))
    }

    /// Notes that it was used in a minute, with its frequency after that.
    pub fn note_frequency(&self, minute: u16, frequency: u8) {
        self.frequency.store(frequency, Ordering::Relaxed);
        self.counted.store(minute, Ordering::Relaxed);
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
            frequency: AtomicU8::new(self.frequency.load(Ordering::Relaxed)),
            counted: AtomicU16::new(self.counted.load(Ordering::Relaxed)),
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
