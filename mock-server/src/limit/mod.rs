//! What a server lets pass: limits as state machines on the injected clock.
//!
//! A limit is told a moment and what wants to pass, and answers: pass, wait until, or refuse how. Both
//! shells ask the same machines, so their moments are exact under virtual time.
//!
//! | limit                                         | where                          |
//! |-----------------------------------------------|--------------------------------|
//! | what connections are limited to, as settings  | [`connections`]                |
//! | who is let in, and when                       | [`gatekeeper`]                 |
//! | idle time, age and unsent bytes of one        | [`lifetime`]                   |
//! | sizes in bytes, as people write them          | [`bytes`]                      |

pub mod bytes;
pub mod connections;
pub mod gatekeeper;
pub mod lifetime;

pub use bytes::ByteSize;
pub use connections::{AcceptLimit, AcceptRate, ConnectionLimit, ConnectionLimits, OutputLimit};
pub use gatekeeper::{AcceptCounts, Admission, Gatekeeper, Turned, Verdict};

/// A text that is not a limit, and what was expected in its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{found}' is not {what}: expected {expected}")]
pub struct LimitError {
    /// The kind of value.
    pub what: &'static str,
    /// The text.
    pub found: String,
    /// What it may be.
    pub expected: &'static str,
}

impl LimitError {
    pub(crate) fn new(what: &'static str, found: &str, expected: &'static str) -> Self {
        Self {
            what,
            found: found.to_owned(),
            expected,
        }
    }
}
