//! Record messages: a header of 22 bytes, fields, operations.
//!
//! | offset | bytes | meaning |
//! |---|---|---|
//! | 0 | 1 | header size, 22; servers do not look at it |
//! | 1 | 4 | four flag bytes, see [`Info1`] to [`Info4`] |
//! | 5 | 1 | result code, 0 in requests |
//! | 6 | 4 | generation; in a partition message the partition id |
//! | 10 | 4 | ttl in requests, void-time in answers |
//! | 14 | 4 | timeout in ms in requests, row index in batch answers |
//! | 18 | 2 | number of fields |
//! | 20 | 2 | number of operations |
//!
//! All integers are big-endian. A request body is exactly one message; the body of an answer to a
//! batch, scan or query may hold several, see [`MessageView::parse_prefix`].

use crate::cursor::Cursor;

use super::field::take_fields;
use super::op::take_ops;
use super::result_code::ResultCode;

pub use super::field::{Field, FieldKind, Fields};
pub use super::flags::{Info1, Info2, Info3, Info4};
pub use super::op::{Op, OpCode, Ops, ParticleType};
pub use super::writer::{
    MessageStart, MessageWriter, begin_message, finish_message, put_header_only, put_message_frame,
    put_op_head,
};

/// Bytes of the message header.
pub const MESSAGE_HEADER_LEN: usize = 22;

/// The header in front of fields and operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageHeader {
    /// First flag byte.
    pub info1: Info1,
    /// Second flag byte.
    pub info2: Info2,
    /// Third flag byte.
    pub info3: Info3,
    /// Fourth flag byte.
    pub info4: Info4,
    /// The outcome; `Ok` in requests.
    pub result: ResultCode,
    /// Request: expected generation. Answer: the record's; in a partition message the partition.
    pub generation: u32,
    /// Request: ttl in seconds or a read-touch percentage. Answer: void-time in seconds since 2010,
    /// 0 for never.
    pub record_ttl: u32,
    /// Request: timeout in milliseconds, 0 for the server's default. Batch answer: the row index.
    pub transaction_ttl: u32,
    /// How many fields follow; ignored by writers, which count themselves.
    pub n_fields: u16,
    /// How many operations follow; ignored by writers, which count themselves.
    pub n_ops: u16,
}

impl MessageHeader {
    /// A header with nothing set.
    pub const EMPTY: Self = Self {
        info1: Info1::empty(),
        info2: Info2::empty(),
        info3: Info3::empty(),
        info4: Info4::empty(),
        result: ResultCode::Ok,
        generation: 0,
        record_ttl: 0,
        transaction_ttl: 0,
        n_fields: 0,
        n_ops: 0,
    };

    /// The header of an answer with this outcome and nothing else.
    #[must_use]
    pub const fn answer(result: ResultCode) -> Self {
        Self {
            result,
            ..Self::EMPTY
        }
    }

    /// Decodes the header at the front of `body`; `None` when it is shorter than 22 bytes.
    #[must_use]
    #[inline]
    pub fn decode(body: &[u8]) -> Option<Self> {
        let bytes = body.first_chunk::<MESSAGE_HEADER_LEN>()?;
        let &[
            _,
            i1,
            i2,
            i3,
            i4,
            result,
            g0,
            g1,
            g2,
            g3,
            t0,
            t1,
            t2,
            t3,
            r0,
            r1,
            r2,
            r3,
            f0,
            f1,
            o0,
            o1,
        ] = bytes;
        Some(Self {
            info1: Info1::from_bits_retain(i1),
            info2: Info2::from_bits_retain(i2),
            info3: Info3::from_bits_retain(i3),
            info4: Info4::from_bits_retain(i4),
            result: ResultCode::from_byte(result),
            generation: u32::from_be_bytes([g0, g1, g2, g3]),
            record_ttl: u32::from_be_bytes([t0, t1, t2, t3]),
            transaction_ttl: u32::from_be_bytes([r0, r1, r2, r3]),
            n_fields: u16::from_be_bytes([f0, f1]),
            n_ops: u16::from_be_bytes([o0, o1]),
        })
    }

    /// The 22 bytes of the header, counts included.
    #[must_use]
    #[inline]
    pub fn encode(&self) -> [u8; MESSAGE_HEADER_LEN] {
        let [g0, g1, g2, g3] = self.generation.to_be_bytes();
        let [t0, t1, t2, t3] = self.record_ttl.to_be_bytes();
        let [r0, r1, r2, r3] = self.transaction_ttl.to_be_bytes();
        let [f0, f1] = self.n_fields.to_be_bytes();
        let [o0, o1] = self.n_ops.to_be_bytes();
        let [i1, i2] = [self.info1.bits(), self.info2.bits()];
        let [i3, i4] = [self.info3.bits(), self.info4.bits()];
        let result = self.result.byte();
        [
            22, i1, i2, i3, i4, result, g0, g1, g2, g3, t0, t1, t2, t3, r0, r1, r2, r3, f0, f1, o0,
            o1,
        ]
    }
}

impl Default for MessageHeader {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// A message that does not hold together. A server answers all of these with
/// [`ResultCode::Parameter`] and keeps the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The body is shorter than a header.
    #[error("message body of {found} bytes, at least {MESSAGE_HEADER_LEN} are needed")]
    ShortHeader {
        /// Bytes found.
        found: usize,
    },
    /// The fields do not fit: too few of them, a size of zero, or a size beyond the end.
    #[error("the {announced} announced fields do not fit the message body")]
    Fields {
        /// The count in the header.
        announced: u16,
    },
    /// The operations do not fit: too few of them, or a size too small or beyond the end.
    #[error("the {announced} announced operations do not fit the message body")]
    Ops {
        /// The count in the header.
        announced: u16,
    },
    /// Bytes are left over behind the last operation.
    #[error("{0} bytes left over behind the last operation")]
    Trailing(usize),
}

impl MessageError {
    /// What a server answers.
    #[must_use]
    pub const fn result_code(self) -> ResultCode {
        ResultCode::Parameter
    }
}

/// A message whose sizes and counts were checked; everything is borrowed from its bytes.
#[derive(Debug, Clone, Copy)]
pub struct MessageView<'a> {
    header: MessageHeader,
    fields: &'a [u8],
    ops: &'a [u8],
}

impl<'a> MessageView<'a> {
    /// Parses a body that holds exactly one message.
    ///
    /// # Errors
    /// A [`MessageError`] when counts, sizes and length do not agree.
    #[inline]
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        match Self::parse_prefix(body)? {
            (view, []) => Ok(view),
            (_, rest) => Err(MessageError::Trailing(rest.len())),
        }
    }

    /// Parses the first message of a body that may hold several, and returns what follows it.
    ///
    /// # Errors
    /// A [`MessageError`] when counts, sizes and length do not agree.
    #[inline]
    pub fn parse_prefix(body: &'a [u8]) -> Result<(Self, &'a [u8]), MessageError> {
        let short = MessageError::ShortHeader { found: body.len() };
        let header = MessageHeader::decode(body).ok_or(short)?;
        let mut cursor = Cursor::new(body.get(MESSAGE_HEADER_LEN..).ok_or(short)?);
        let fields = take_fields(&mut cursor, header.n_fields).ok_or(MessageError::Fields {
            announced: header.n_fields,
        })?;
        let ops = take_ops(&mut cursor, header.n_ops).ok_or(MessageError::Ops {
            announced: header.n_ops,
        })?;
        Ok((
            Self {
                header,
                fields,
                ops,
            },
            cursor.rest(),
        ))
    }

    /// The header.
    #[must_use]
    #[inline]
    pub const fn header(&self) -> &MessageHeader {
        &self.header
    }

    /// The fields in wire order.
    #[inline]
    pub const fn fields(&self) -> Fields<'a> {
        Fields::new(self.fields)
    }

    /// The data of the first field of this kind.
    #[must_use]
    #[inline]
    pub fn field(&self, kind: FieldKind) -> Option<&'a [u8]> {
        self.fields().find_kind(kind)
    }

    /// The operations in wire order.
    #[inline]
    pub const fn ops(&self) -> Ops<'a> {
        Ops::new(self.ops)
    }

    /// The bytes of all fields, sizes included.
    #[must_use]
    #[inline]
    pub const fn field_bytes(&self) -> &'a [u8] {
        self.fields
    }

    /// The bytes of all operations, sizes included; a stored record of plain values can be sent
    /// again as they are.
    #[must_use]
    #[inline]
    pub const fn op_bytes(&self) -> &'a [u8] {
        self.ops
    }

    /// Bytes of the message on the wire.
    #[must_use]
    #[inline]
    pub const fn wire_len(&self) -> usize {
        MESSAGE_HEADER_LEN + self.fields.len() + self.ops.len()
    }
}

/// The messages of a body that may hold several.
#[derive(Debug, Clone)]
pub struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    /// The messages of an answer's body.
    #[must_use]
    pub const fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<MessageView<'a>, MessageError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match MessageView::parse_prefix(self.rest) {
            Ok((view, rest)) => {
                self.rest = rest;
                Some(Ok(view))
            }
            Err(error) => {
                self.rest = &[];
                Some(Err(error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_round_trips_through_its_22_bytes() {
        let header = MessageHeader {
            info1: Info1::READ | Info1::GET_ALL,
            info2: Info2::WRITE,
            info3: Info3::LAST,
            info4: Info4::MRT_ON_LOCKING_ONLY,
            result: ResultCode::Other(199),
            generation: 0x0102_0304,
            record_ttl: 0xffff_ffff,
            transaction_ttl: 1000,
            n_fields: 0x0506,
            n_ops: 0x0708,
        };
        let bytes = header.encode();
        assert_eq!(bytes[..6], [22, 3, 1, 1, 16, 199]);
        assert_eq!(bytes[6..10], [1, 2, 3, 4]);
        assert_eq!(bytes[18..], [5, 6, 7, 8]);
        assert_eq!(MessageHeader::decode(&bytes), Some(header));
    }

    #[test]
    fn counts_and_sizes_must_agree_with_the_length() {
        let message = |n_fields: u16, n_ops: u16, rest: &[u8]| {
            let mut bytes = MessageHeader {
                n_fields,
                n_ops,
                ..MessageHeader::EMPTY
            }
            .encode()
            .to_vec();
            bytes.extend_from_slice(rest);
            bytes
        };
        let field = [0, 0, 0, 5, 0, b't', b'e', b's', b't'];
        let op = [0, 0, 0, 5, 1, 0, 0, 1, b'a'];
        let both = [field, op].concat();
        let parse = |bytes: &[u8]| MessageView::parse(bytes).map(|view| view.wire_len());
        assert_eq!(parse(&message(1, 1, &both)), Ok(22 + 18));
        assert_eq!(
            parse(&message(2, 1, &field)),
            Err(MessageError::Fields { announced: 2 })
        );
        assert_eq!(
            parse(&message(1, 1, &field)),
            Err(MessageError::Ops { announced: 1 })
        );
        assert_eq!(parse(&message(1, 0, &both)), Err(MessageError::Trailing(9)));
        assert_eq!(
            parse(&message(1, 0, &[0; 4])),
            Err(MessageError::Fields { announced: 1 })
        );
        let name_too_long = [0, 0, 0, 4, 2, 1, 0, 9];
        assert_eq!(
            parse(&message(0, 1, &name_too_long)),
            Err(MessageError::Ops { announced: 1 })
        );
        assert_eq!(
            parse(&[0; 21]),
            Err(MessageError::ShortHeader { found: 21 })
        );
    }

    #[test]
    fn the_first_of_two_equal_fields_wins() {
        let mut bytes = MessageHeader {
            n_fields: 2,
            ..MessageHeader::EMPTY
        }
        .encode()
        .to_vec();
        bytes.extend_from_slice(&[0, 0, 0, 2, 1, b'x', 0, 0, 0, 2, 1, b'y']);
        let view = MessageView::parse(&bytes).unwrap();
        assert_eq!(view.field(FieldKind::Set), Some(&b"x"[..]));
        assert_eq!(view.fields().count(), 2);
    }

    #[test]
    fn several_messages_are_read_one_by_one() {
        let mut body = MessageHeader::EMPTY.encode().to_vec();
        body.extend_from_slice(&MessageHeader::answer(ResultCode::NotFound).encode());
        let results: Vec<_> = Messages::new(&body)
            .map(|view| view.unwrap().header().result)
            .collect();
        assert_eq!(results, [ResultCode::Ok, ResultCode::NotFound]);
        assert!(Messages::new(&body[..30]).last().unwrap().is_err());
    }
}
