//! What kind of work a message is, as rules and statistics name it.

use kvlab_protocol::aerospike::message::{Info1, Info2, MessageView, OpCode};

use super::request::Parts;
use crate::exchange::Class;

macro_rules! operations {
    ($($variant:ident $name:literal $class:ident $doc:literal,)*) => {
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

            pub(super) const fn class(self) -> Class {
                match self {
                    $(Self::$variant => Class::$class,)*
                }
            }
        }
    };
}

operations! {
    Unknown "unknown" Admin "A message that does not hold together, or of a kind that is refused.",
    Info "info" Admin "Text commands.",
    Security "security" Admin "Login and user management.",
    Get "get" Read "All or some bins of a record.",
    Exists "exists" Read "The header of a record.",
    Put "put" Write "Bins are written and nothing else.",
    Remove "remove" Write "A record is removed.",
    Touch "touch" Write "A record's life begins anew.",
    Operate "operate" Write "Any other list of operations on one record.",
    Batch "batch" Read "Many records.",
    Query "query" Read "A scan or query.",
    Udf "udf" Write "A call of a user-defined function.",
}

impl Operation {
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
