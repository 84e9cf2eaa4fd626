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
//! | what requests are limited to, as settings     | [`requests`]                   |
//! | operations and bytes per second               | [`throttle`]                   |
//! | sizes of requests, keys, values, pipelines    | [`size`]                       |
//! | memory, and what is evicted                   | [`memory`]                     |
//! | commands that are refused                     | [`block`]                      |
//! | sizes in bytes, as people write them          | [`bytes`]                      |

pub mod block;
pub mod bytes;
pub mod connections;
pub mod gatekeeper;
pub mod lifetime;
pub mod memory;
pub mod requests;
pub mod size;
pub mod throttle;

pub use block::{BlockForm, Blocked};
pub use bytes::ByteSize;
pub use connections::{AcceptLimit, AcceptRate, ConnectionLimit, ConnectionLimits, OutputLimit};
pub use gatekeeper::{AcceptCounts, Admission, Gatekeeper, Turned, Verdict};
pub use memory::{Eviction, Share};
pub use requests::RequestLimits;
pub use size::{SizeKind, SizeLimit};
pub use throttle::{AtLimit, Quantity, Scope, Throttle};

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

/// A conversion that cannot fail fits where one that can is asked for.
impl From<std::convert::Infallible> for LimitError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
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
