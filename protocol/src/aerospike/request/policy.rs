//! Conditions and effects of a write, and the flag bits they set.

use crate::aerospike::flags::{Info1, Info2, Info3};
use crate::aerospike::message::MessageHeader;

/// What must be true of the record before a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Exists {
    /// Anything: create or update.
    #[default]
    Any,
    /// It must exist.
    UpdateOnly,
    /// It must not exist.
    CreateOnly,
    /// Anything; old bins are dropped.
    CreateOrReplace,
    /// It must exist; old bins are dropped.
    ReplaceOnly,
}

/// How the stored generation is compared before a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Generation {
    /// Not at all.
    #[default]
    Any,
    /// It must be this.
    Equal(u32),
    /// It must be less than this.
    Below(u32),
}

/// The conditions and effects of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WritePolicy {
    /// Condition on existence.
    pub exists: Exists,
    /// Condition on the generation.
    pub generation: Generation,
    /// Ttl in seconds, or one of the `TTL_` values of [`limits`](crate::aerospike::limits).
    pub ttl: u32,
    /// Leave a tombstone (Enterprise).
    pub durable_delete: bool,
    /// Answer when the master has the write.
    pub commit_master: bool,
    /// An answer for every operation, if only an empty one.
    pub respond_all: bool,
}

impl WritePolicy {
    pub(super) fn header(&self, info1: Info1, info2: Info2, timeout_ms: u32) -> MessageHeader {
        let mut header = MessageHeader {
            info1,
            info2: info2 | Info2::WRITE,
            record_ttl: self.ttl,
            transaction_ttl: timeout_ms,
            ..MessageHeader::EMPTY
        };
        match self.exists {
            Exists::Any => {}
            Exists::UpdateOnly => header.info3 |= Info3::UPDATE_ONLY,
            Exists::CreateOnly => header.info2 |= Info2::CREATE_ONLY,
            Exists::CreateOrReplace => header.info3 |= Info3::CREATE_OR_REPLACE,
            Exists::ReplaceOnly => header.info3 |= Info3::REPLACE_ONLY,
        }
        match self.generation {
            Generation::Any => {}
            Generation::Equal(generation) => {
                header.info2 |= Info2::GENERATION_EQUAL;
                header.generation = generation;
            }
            Generation::Below(generation) => {
                header.info2 |= Info2::GENERATION_GREATER;
                header.generation = generation;
            }
        }
        header.info2.set(Info2::DURABLE_DELETE, self.durable_delete);
        header.info2.set(Info2::RESPOND_ALL_OPS, self.respond_all);
        header
            .info3
            .set(Info3::COMMIT_LEVEL_MASTER, self.commit_master);
        header
    }
}
