//! Limits of a Community Edition 8.1 server that shape requests, in one place.

/// Longest bin name in bytes; a longer one is answered with
/// [`BinName`](super::result_code::ResultCode::BinName).
pub const BIN_NAME_MAX: usize = 15;

/// Longest set name in bytes; a longer one is refused when the record is created.
pub const SET_NAME_MAX: usize = 63;

/// Most operations in one message.
pub const OPS_MAX: usize = 32_768;

/// Most bins in one record.
pub const BINS_MAX: usize = 32_767;

/// Largest record of a default namespace, in bytes.
pub const RECORD_SIZE_MAX: usize = 1_048_576;

/// Longest life of a record, in seconds (ten years).
pub const TTL_MAX_S: u32 = 315_360_000;

/// The request ttl "take the namespace's default".
pub const TTL_NAMESPACE_DEFAULT: u32 = 0;

/// The request ttl "never expire".
pub const TTL_NEVER: u32 = u32::MAX;

/// The request ttl "leave the record's expiry alone".
pub const TTL_KEEP: u32 = u32::MAX - 1;

/// Seconds between the Unix epoch and the epoch of void-times (2010-01-01T00:00:00Z).
pub const VOID_TIME_EPOCH_UNIX_S: u64 = 1_262_304_000;

/// Partitions of a namespace.
pub const PARTITIONS: usize = 4096;
