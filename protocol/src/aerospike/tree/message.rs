//! Messages and their operations as trees.

use bytes::{BufMut, Bytes, BytesMut};

use super::field::FieldData;
use super::{Sender, TreeError};
use crate::aerospike::cdt::Call;
use crate::aerospike::message::{
    FieldKind, MessageHeader, MessageView, MessageWriter, Op, OpCode, ParticleType,
};
use crate::aerospike::msgpack;
use crate::aerospike::particle::Value;

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The header; its counts are those of the wire and not used for encoding.
    pub header: MessageHeader,
    /// The fields in wire order.
    pub fields: Vec<(FieldKind, FieldData)>,
    /// The operations in wire order.
    pub ops: Vec<Operation>,
}

/// An operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// What is done.
    pub op: OpCode,
    /// The particle type.
    pub particle: ParticleType,
    /// The flag byte.
    pub flags: u8,
    /// The bin name.
    pub name: Bytes,
    /// What is carried.
    pub value: OperationValue,
}

/// What an operation carries.
#[derive(Debug, Clone, PartialEq)]
pub enum OperationValue {
    /// A value of a bin.
    Particle(Value),
    /// A call on a list, map, blob or HyperLogLog.
    Call(Call),
    /// An expression and its flags.
    Expression(msgpack::Value),
    /// A value that is led by 8 bytes of last-update time (XDR).
    Opaque(Bytes),
}

impl Message {
    pub(super) fn decode(sender: Sender, view: &MessageView<'_>) -> Result<Self, TreeError> {
        let fields = view
            .fields()
            .map(|field| Ok((field.kind, FieldData::decode(&field)?)));
        let ops = view.ops().map(|op| Operation::decode(sender, &op));
        Ok(Self {
            header: *view.header(),
            fields: fields.collect::<Result<_, TreeError>>()?,
            ops: ops.collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let mut writer = MessageWriter::begin(out, &self.header);
        for (kind, data) in &self.fields {
            writer.field_with(*kind, |out| data.encode(out));
        }
        for op in &self.ops {
            let value = op.value_bytes();
            writer.op_with_flags(op.op, op.particle, op.flags, &op.name, &value);
        }
        writer.finish();
    }
}

impl Operation {
    pub(super) fn decode(sender: Sender, op: &Op<'_>) -> Result<Self, TreeError> {
        let value = match (sender, op.op) {
            _ if op.flags & 1 != 0 => OperationValue::Opaque(Bytes::copy_from_slice(op.value)),
            (Sender::Client, OpCode::CdtRead | OpCode::CdtModify)
            | (Sender::Client, OpCode::BitRead | OpCode::BitModify)
            | (Sender::Client, OpCode::HllRead | OpCode::HllModify) => {
                OperationValue::Call(Call::parse(op.value)?)
            }
            (Sender::Client, OpCode::ExpressionRead | OpCode::ExpressionModify) => {
                let value = msgpack::Value::decode(op.value).map_err(TreeError::Expression)?;
                OperationValue::Expression(value)
            }
            _ => OperationValue::Particle(Value::decode(op.particle, op.value)?),
        };
        Ok(Self {
            op: op.op,
            particle: op.particle,
            flags: op.flags,
            name: Bytes::copy_from_slice(op.name),
            value,
        })
    }

    /// The bytes of the value.
    #[must_use]
    pub fn value_bytes(&self) -> BytesMut {
        let mut out = BytesMut::new();
        match &self.value {
            OperationValue::Particle(value) => value.encode(&mut out),
            OperationValue::Call(call) => call.encode(&mut out),
            OperationValue::Expression(value) => value.encode(&mut out),
            OperationValue::Opaque(bytes) => out.put_slice(bytes),
        }
        out
    }
}
