//! A reply as a value, in the types of RESP3.

use bytes::{Bytes, BytesMut};

use super::reply_writer::{ReplyWriter, bulk};
use super::{DoubleStyle, Version};

/// A decoded reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A short text without line ends, such as `OK`.
    Simple(Bytes),
    /// An error of one line, its code word first.
    Error(Bytes),
    /// A signed integer.
    Integer(i64),
    /// Bytes.
    Bulk(Bytes),
    /// The absence of a value: `_`, or `$-1` of RESP2.
    Null,
    /// The absence of an array, `*-1`; RESP2 only.
    NullArray,
    /// A floating point number.
    Double(f64),
    /// A truth value.
    Boolean(bool),
    /// An integer of any length, as its decimal digits.
    BigNumber(Bytes),
    /// An error that may hold any bytes.
    BulkError(Bytes),
    /// A text with its format.
    Verbatim {
        /// `txt` or `mkd`.
        format: [u8; 3],
        /// The text.
        data: Bytes,
    },
    /// Values in order.
    Array(Vec<Value>),
    /// Keys and values, in the order sent.
    Map(Vec<(Value, Value)>),
    /// Values without order.
    Set(Vec<Value>),
    /// An out-of-band message.
    Push(Vec<Value>),
    /// A value with attributes, which a reader may ignore.
    Attribute {
        /// Keys and values of the attributes.
        attributes: Vec<(Value, Value)>,
        /// What they belong to; not itself an `Attribute` when decoded.
        value: Box<Value>,
    },
}

impl Value {
    /// Appends the value in the form a server of that version sends it; what RESP2 lacks is sent as
    /// [`ReplyWriter`] says. Doubles have their shortest form.
    pub fn encode(&self, version: Version, out: &mut BytesMut) {
        self.write(&mut ReplyWriter::new(out, version, DoubleStyle::Shortest));
    }

    /// Writes the value as one element of a reply.
    pub fn write(&self, writer: &mut ReplyWriter<'_>) {
        match self {
            Self::Simple(text) => writer.simple_bytes(text),
            Self::Error(text) => writer.error_bytes(text),
            Self::Integer(value) => writer.integer(*value),
            Self::Bulk(data) => writer.bulk(data),
            Self::Null => writer.null(),
            Self::NullArray => writer.null_array(),
            Self::Double(value) => writer.double(*value),
            Self::Boolean(value) => writer.boolean(*value),
            Self::BigNumber(digits) => writer.big_number_bytes(digits),
            Self::BulkError(text) => match writer.version() {
                Version::Resp2 => writer.error_bytes(text),
                Version::Resp3 => bulk(writer.out(), b'!', text),
            },
            Self::Verbatim { format, data } => writer.verbatim(format, data),
            Self::Array(elements) => {
                writer.array(elements.len());
                write_all(elements, writer);
            }
            Self::Set(elements) => {
                writer.set(elements.len());
                write_all(elements, writer);
            }
            Self::Push(elements) => {
                writer.push(elements.len());
                write_all(elements, writer);
            }
            Self::Map(pairs) => {
                writer.map(pairs.len());
                write_pairs(pairs, writer);
            }
            Self::Attribute { attributes, value } => {
                writer.attribute(attributes.len(), |writer| write_pairs(attributes, writer));
                value.write(writer);
            }
        }
    }

    /// True for an error of either form, attributes or not.
    #[must_use]
    pub fn is_error(&self) -> bool {
        match self {
            Self::Error(_) | Self::BulkError(_) => true,
            Self::Attribute { value, .. } => value.is_error(),
            _ => false,
        }
    }
}

fn write_all(elements: &[Value], writer: &mut ReplyWriter<'_>) {
    for element in elements {
        element.write(writer);
    }
}

fn write_pairs(pairs: &[(Value, Value)], writer: &mut ReplyWriter<'_>) {
    for (key, value) in pairs {
        key.write(writer);
        value.write(writer);
    }
}
