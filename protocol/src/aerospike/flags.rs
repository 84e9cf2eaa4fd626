//! The four flag bytes of a message header, one type each, and the flag byte of a batch.

use bitflags::bitflags;

bitflags! {
    /// First flag byte: reading.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Info1: u8 {
        /// The message reads.
        const READ = 0x01;
        /// All bins are wanted.
        const GET_ALL = 0x02;
        /// A query that expects few records.
        const SHORT_QUERY = 0x04;
        /// A batch message; the rows are in a field.
        const BATCH = 0x08;
        /// Cross-datacentre traffic.
        const XDR = 0x10;
        /// Metadata only; in an answer: the record came without bins.
        const NO_BINS = 0x20;
        /// Read all replicas and take the newest (available mode).
        const READ_ALL_REPLICAS = 0x40;
        /// The client would take a compressed answer (Enterprise).
        const COMPRESS_RESPONSE = 0x80;
    }

    /// Second flag byte: writing.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Info2: u8 {
        /// The message writes.
        const WRITE = 0x01;
        /// The record is deleted.
        const DELETE = 0x02;
        /// The stored generation must equal the header's.
        const GENERATION_EQUAL = 0x04;
        /// The header's generation must be greater than the stored one.
        const GENERATION_GREATER = 0x08;
        /// A delete leaves a tombstone (Enterprise).
        const DURABLE_DELETE = 0x10;
        /// The record must not exist.
        const CREATE_ONLY = 0x20;
        /// A long query accepts less consistent answers (available mode).
        const RELAX_LONG_QUERY = 0x40;
        /// Every operation gets an answer, if only an empty one.
        const RESPOND_ALL_OPS = 0x80;
    }

    /// Third flag byte: multi-message answers, existence and consistency.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Info3: u8 {
        /// Last message of a multi-message answer.
        const LAST = 0x01;
        /// The write is answered when the master has it.
        const COMMIT_LEVEL_MASTER = 0x02;
        /// Answer: a partition of a scan failed. Request: the client understands that; a scan
        /// without it is refused.
        const PARTITION_DONE = 0x04;
        /// The record must exist.
        const UPDATE_ONLY = 0x08;
        /// Old bins are dropped, the record may be new.
        const CREATE_OR_REPLACE = 0x10;
        /// Old bins are dropped, the record must exist.
        const REPLACE_ONLY = 0x20;
        /// Strong consistency, read type: with [`SC_READ_RELAX`](Self::SC_READ_RELAX) clear this
        /// asks for a linearizable read.
        const SC_READ_TYPE = 0x40;
        /// Strong consistency, relaxed read.
        const SC_READ_RELAX = 0x80;
    }

    /// Fourth flag byte: multi-record transactions.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Info4: u8 {
        /// Verify what a transaction read.
        const MRT_VERIFY_READ = 0x01;
        /// Roll a transaction's write forward.
        const MRT_ROLL_FORWARD = 0x02;
        /// Roll a transaction's write back.
        const MRT_ROLL_BACK = 0x04;
        /// Used between servers.
        const INTERNAL = 0x08;
        /// Fail when the record is locked by another transaction.
        const MRT_ON_LOCKING_ONLY = 0x10;
        /// How much a newer server says about errors, low bit.
        const ERROR_VERBOSITY_LOW = 0x20;
        /// How much a newer server says about errors, high bit.
        const ERROR_VERBOSITY_HIGH = 0x40;
        /// No known meaning.
        const RESERVED = 0x80;
    }

    /// The flag byte of a batch field.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct BatchFlags: u8 {
        /// Run in the service thread for namespaces in memory.
        const INLINE = 0x01;
        /// Run in the service thread for namespaces on a device.
        const INLINE_DEVICE = 0x02;
        /// Answer every row; do not stop at the first error.
        const RESPOND_ALL = 0x04;
        /// When a row stops the batch, send the rows up to and including it.
        const REPORT_ERROR_ROW = 0x08;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_has_a_name_and_unknown_batch_bits_are_kept() {
        assert_eq!(Info1::all().bits(), 0xff);
        assert_eq!(Info2::all().bits(), 0xff);
        assert_eq!(Info3::all().bits(), 0xff);
        assert_eq!(Info4::all().bits(), 0xff);
        assert_eq!(BatchFlags::from_bits_retain(0xf0).bits(), 0xf0);
    }
}
