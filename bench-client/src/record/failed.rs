//! Requests that failed for good.

use kvlab_timing::Stamp;

use super::OpClass;

/// A request that failed for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedRequest {
    /// When it ended.
    pub at: Stamp,
    /// Its class.
    pub class: OpClass,
    /// Its (first) key, as it is written to the server.
    pub key: Vec<u8>,
    /// The server's words, or what became of it otherwise.
    pub status: String,
    /// How often it was sent again.
    pub retries: u32,
}
