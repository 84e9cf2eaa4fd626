//! What kind of work a message is, as rules and statistics name it.

use kvlab_protocol::aerospike::message::{Info1, Info2, MessageView, OpCode};

use super::request::Parts;
use crate::exchange::Class;

macro_rules! operations {
    ($($variant:ident $name:literal $doc:literal,)*) => {
        /// The operations a message can ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Operation {
            $(#[doc = $doc] $variant,)*
        }

        /// Operation names by ordinal.
        pub static OPERATION_NAMES: &[&str] = &[$($name,)*];

        impl Operation {
            pub(super) const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

operations! {
    Unknown "unknown" "A message that does not hold together, or of a kind that is refused.",
    Info "info" "Text commands.",
    Security "security" "Login and user management.",
    Get "get" "All or some bins of a record.",
    Exists "exists" "The header of a record.",
    Put "put" "Bins are written and nothing else.",
    Remove "remove" "A record is removed.",
    Touch "touch" "A record's life begins anew.",
    Operate "operate" "Any other list of operations on one record.",
    Batch "batch" "Many records.",
    Query "query" "A scan or query.",
    Udf "udf" "A call of a user-defined function.",
}

impl Operation {
    /// What kind of work the operation is; `writes` if its message says so.
    pub(super) const fn class(self, writes: bool) -> Class {
        match self {
            Self::Unknown | Self::Info | Self::Security => Class::Admin,
            _ if writes => Class::Write,
            _ => Class::Read,
        }
    }

    /// The place of the name in [`OPERATION_NAMES`].
    pub(super) const fn ordinal(self) -> u16 {
        self as u16
    }

    /// Sorts a message.
    #[inline]
    pub(super) fn of(view: &MessageView<'_>, parts: &Parts<'_>) -> Self {
        let header = view.header();
        if header.info1.contains(Info1::BATCH) {
            return Self::Batch;
        }
        if parts.digest.is_none() {
            return Self::Query;
        }
        if parts.is_udf() {
            return Self::Udf;
        }
        let only = |code| view.ops().all(|op| op.op == code);
        if header.info2.contains(Info2::WRITE) {
            return match () {
                () if header.info2.contains(Info2::DELETE) => Self::Remove,
                () if only(OpCode::Write) => Self::Put,
                () if only(OpCode::Touch) => Self::Touch,
                () => Self::Operate,
            };
        }
        match () {
            () if header.info1.contains(Info1::NO_BINS) => Self::Exists,
            () if only(OpCode::Read) => Self::Get,
            () => Self::Operate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_find_their_names() {
        for operation in [Operation::Unknown, Operation::Get, Operation::Udf] {
            let name = OPERATION_NAMES[usize::from(operation.ordinal())];
            assert_eq!(name, operation.name());
        }
    }
}
