//! Result codes of record, batch, query and security answers.
//!
//! One byte on the wire, in the message header and in security answers; info errors print the same
//! numbers as text. Codes without a name here are kept as [`ResultCode::Other`].

macro_rules! result_codes {
    ($($code:literal $name:ident $text:literal,)*) => {
        /// What a server answered.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ResultCode {
            $(#[doc = concat!($text, " (", stringify!($code), ")")] $name,)*
            /// A code this crate has no name for.
            Other(u8),
        }

        impl ResultCode {
            /// Every named code, in the order of the numbers.
            pub const NAMED: &'static [Self] = &[$(Self::$name,)*];

            /// The code of a byte; an unknown one is kept.
            #[must_use]
            #[inline]
            pub const fn from_byte(byte: u8) -> Self {
                match byte {
                    $($code => Self::$name,)*
                    other => Self::Other(other),
                }
            }

            /// The byte on the wire.
            #[must_use]
            #[inline]
            pub const fn byte(self) -> u8 {
                match self {
                    $(Self::$name => $code,)*
                    Self::Other(other) => other,
                }
            }

            /// The code in words; `"other"` for one without a name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                    Self::Other(_) => "other",
                }
            }
        }
    };
}

result_codes! {
    0 Ok "ok",
    1 ServerError "unknown server error",
    2 NotFound "record not found",
    3 Generation "generation mismatch",
    4 Parameter "bad parameter",
    5 RecordExists "record exists",
    6 BinExists "bin exists",
    7 ClusterKey "cluster key mismatch",
    8 OutOfSpace "out of space",
    9 Timeout "timeout",
    10 AlwaysForbidden "always forbidden",
    11 Unavailable "partition unavailable",
    12 IncompatibleType "incompatible type",
    13 RecordTooBig "record too big",
    14 KeyBusy "key busy",
    15 ScanAbort "query aborted",
    16 Unsupported "unsupported feature",
    17 BinNotFound "bin not found",
    18 DeviceOverload "device overload",
    19 KeyMismatch "key mismatch",
    20 Namespace "unknown namespace",
    21 BinName "bad bin name",
    22 Forbidden "operation forbidden",
    23 ElementNotFound "element not found",
    24 ElementExists "element exists",
    25 EnterpriseOnly "enterprise only",
    26 OpNotApplicable "operation not applicable",
    27 FilteredOut "filtered out",
    28 LostConflict "lost conflict",
    32 XdrKeyBusy "XDR key busy",
    50 SecurityLast "last of a security answer",
    51 SecurityNotSupported "security not supported",
    52 SecurityNotEnabled "security not enabled",
    53 SecurityScheme "bad security scheme",
    54 SecurityCommand "bad security command",
    55 SecurityField "bad security field",
    56 SecurityState "bad security state",
    60 User "unknown user",
    61 UserExists "user exists",
    62 Password "bad password",
    63 ExpiredPassword "expired password",
    64 ForbiddenPassword "forbidden password",
    65 Credential "invalid credential",
    66 ExpiredSession "expired session",
    70 Role "unknown role",
    71 RoleExists "role exists",
    72 Privilege "bad privilege",
    73 Whitelist "bad whitelist",
    74 QuotasNotEnabled "quotas not enabled",
    75 Quota "bad quota",
    80 NotAuthenticated "not authenticated",
    81 RoleViolation "role violation",
    82 NotWhitelisted "not whitelisted",
    83 QuotaExceeded "quota exceeded",
    100 Udf "UDF failed",
    120 MrtBlocked "blocked by a transaction",
    121 MrtVersion "transaction version mismatch",
    122 MrtExpired "transaction expired",
    123 MrtTooManyWrites "too many writes in a transaction",
    124 MrtCommitted "transaction already committed",
    125 MrtAborted "transaction already aborted",
    126 MrtAlreadyLocked "record already locked by this transaction",
    127 MrtMonitorExists "transaction monitor exists",
    150 BatchDisabled "batch disabled",
    151 BatchTooMany "too many rows in a batch",
    152 BatchQueuesFull "batch queues full",
    160 GeoJson "bad GeoJSON",
    200 IndexExists "index exists",
    201 IndexNotFound "index not found",
    202 IndexMemory "index out of memory",
    203 IndexNotReadable "index not readable",
    204 Index "index error",
    205 IndexName "bad index name",
    206 IndexTooMany "too many indexes",
    210 QueryAborted "query aborted by a user",
    211 QueryQueueFull "query queue full",
    212 QueryTimeout "query timeout",
    213 Query "query error",
}

impl ResultCode {
    /// Whether this is [`ResultCode::Ok`].
    #[must_use]
    #[inline]
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Ok)
    }
}

impl From<u8> for ResultCode {
    fn from(byte: u8) -> Self {
        Self::from_byte(byte)
    }
}

impl From<ResultCode> for u8 {
    fn from(code: ResultCode) -> Self {
        code.byte()
    }
}

impl core::fmt::Display for ResultCode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ({})", self.name(), self.byte())
    }
}

#[cfg(test)]
mod tests {
    use super::ResultCode;

    #[test]
    fn every_byte_survives() {
        for byte in 0..=u8::MAX {
            assert_eq!(u8::from(ResultCode::from(byte)), byte);
        }
    }

    #[test]
    fn unknown_codes_are_kept() {
        assert_eq!(ResultCode::from(199), ResultCode::Other(199));
        assert_eq!(ResultCode::Other(199).to_string(), "other (199)");
        assert_eq!(ResultCode::from(2).to_string(), "record not found (2)");
    }

    #[test]
    fn named_codes_are_never_other() {
        for &code in ResultCode::NAMED {
            assert_eq!(ResultCode::from(code.byte()), code);
        }
    }
}
