//! One record operation, whether it came as a message or as a row of a batch.

use kvlab_protocol::aerospike::batch::Row;
use kvlab_protocol::aerospike::digest::Digest;
use kvlab_protocol::aerospike::limits::OPS_MAX;
use kvlab_protocol::aerospike::message::{
    FieldKind, Fields, Info1, Info2, Info3, Info4, MessageHeader, MessageView, Ops,
};
use kvlab_protocol::aerospike::result_code::ResultCode;

/// What is asked of one record.
#[derive(Debug, Clone)]
pub(super) struct Request<'a> {
    pub(super) info1: Info1,
    pub(super) info2: Info2,
    pub(super) info3: Info3,
    pub(super) info4: Info4,
    /// Expected generation.
    pub(super) generation: u32,
    /// Ttl of a write, read-touch percentage of a read.
    pub(super) ttl: u32,
    pub(super) digest: &'a Digest,
    /// Set name; empty for none.
    pub(super) set: &'a [u8],
    /// User key with its type byte.
    pub(super) key: Option<&'a [u8]>,
    /// Filter expression.
    pub(super) filter: Option<&'a [u8]>,
    pub(super) in_transaction: bool,
    pub(super) udf: Option<Udf<'a>>,
    pub(super) n_ops: u16,
    pub(super) ops: Ops<'a>,
    /// Whether answers to reads carry the code of a plain read whatever was asked.
    pub(super) plain_reads: bool,
}

/// A call of a user-defined function.
#[derive(Debug, Clone, Copy)]
pub(super) struct Udf<'a> {
    /// Its arguments, a msgpack list.
    pub(super) arguments: Option<&'a [u8]>,
}

/// The fields a record operation may have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Parts<'a> {
    pub(super) namespace: Option<&'a [u8]>,
    pub(super) digest: Option<&'a [u8]>,
    set: &'a [u8],
    key: Option<&'a [u8]>,
    filter: Option<&'a [u8]>,
    in_transaction: bool,
    is_udf: bool,
    udf_arguments: Option<&'a [u8]>,
    /// Rows of a batch.
    pub(super) batch: Option<&'a [u8]>,
}

impl<'a> Parts<'a> {
    /// Sorts fields; of two of one kind the first counts.
    #[inline]
    pub(super) fn of(fields: Fields<'a>) -> Self {
        let mut parts = Self::default();
        let mut set = None;
        for field in fields {
            let place = match field.kind {
                FieldKind::Namespace => &mut parts.namespace,
                FieldKind::Set => &mut set,
                FieldKind::Digest => &mut parts.digest,
                FieldKind::Key => &mut parts.key,
                FieldKind::Filter => &mut parts.filter,
                FieldKind::UdfArguments => &mut parts.udf_arguments,
                FieldKind::Batch | FieldKind::BatchWithSet => &mut parts.batch,
                FieldKind::MrtId => {
                    parts.in_transaction = true;
                    continue;
                }
                FieldKind::UdfPackage => {
                    parts.is_udf = true;
                    continue;
                }
                _ => continue,
            };
            place.get_or_insert(field.data);
        }
        parts.set = set.unwrap_or_default();
        parts
    }

    /// Filter of the whole batch.
    pub(super) fn filter(&self) -> Option<&'a [u8]> {
        self.filter
    }

    /// Whether the message calls a user-defined function.
    pub(super) fn is_udf(&self) -> bool {
        self.is_udf
    }

    fn udf(&self) -> Option<Udf<'a>> {
        let arguments = self.udf_arguments;
        self.is_udf.then_some(Udf { arguments })
    }
}

impl<'a> Request<'a> {
    /// The operation of a message that names a digest.
    #[inline]
    pub(super) fn of_message(
        view: &MessageView<'a>,
        parts: &Parts<'a>,
        digest: &'a Digest,
    ) -> Self {
        let MessageHeader {
            info1,
            info2,
            info3,
            info4,
            generation,
            record_ttl: ttl,
            n_ops,
            ..
        } = *view.header();
        Self {
            info1,
            info2,
            info3,
            info4,
            generation,
            ttl,
            digest,
            set: parts.set,
            key: parts.key,
            filter: parts.filter,
            in_transaction: parts.in_transaction,
            udf: parts.udf(),
            n_ops,
            ops: view.ops(),
            plain_reads: false,
        }
    }

    /// The operation of a batch row; `filter` is the one of the whole batch.
    pub(super) fn of_row(row: &Row<'a>, parts: &Parts<'a>, filter: Option<&'a [u8]>) -> Self {
        let head = row.head();
        Self {
            info1: head.info1,
            info2: head.info2,
            info3: head.info3,
            info4: head.info4,
            generation: head.generation.into(),
            ttl: head.ttl,
            digest: row.digest,
            set: parts.set,
            key: parts.key,
            filter: parts.filter.or(filter),
            in_transaction: parts.in_transaction,
            udf: parts.udf(),
            n_ops: row.n_ops(),
            ops: row.ops(),
            plain_reads: !head.info2.contains(Info2::WRITE),
        }
    }

    pub(super) fn writes(&self) -> bool {
        self.info2.contains(Info2::WRITE)
    }

    pub(super) fn responds_to_all(&self) -> bool {
        self.info2.contains(Info2::RESPOND_ALL_OPS)
    }

    /// What a Community server refuses before it looks at the record: transactions, linearizable
    /// reads, messages that neither read nor write, too many operations.
    #[inline]
    pub(super) fn check(&self) -> Result<(), ResultCode> {
        let transaction = Info4::MRT_VERIFY_READ | Info4::MRT_ROLL_FORWARD | Info4::MRT_ROLL_BACK;
        if self.in_transaction || self.info4.intersects(transaction) {
            return Err(ResultCode::EnterpriseOnly);
        }
        if usize::from(self.n_ops) > OPS_MAX {
            return Err(ResultCode::Parameter);
        }
        if self.writes() {
            return Ok(());
        }
        if !self.info1.contains(Info1::READ) {
            return Err(ResultCode::Parameter);
        }
        let linearize = self.info3 & (Info3::SC_READ_TYPE | Info3::SC_READ_RELAX);
        if linearize == Info3::SC_READ_TYPE {
            return Err(ResultCode::EnterpriseOnly);
        }
        Ok(())
    }
}
