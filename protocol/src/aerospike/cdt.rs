//! The value of an operation on a list, map, blob or HyperLogLog: a call with arguments.
//!
//! Usual form: a msgpack list `[code, argument...]`. With a context, which leads to a nested list
//! or map: `[ff, [type, value, ...], [code, argument...]]`. Very old clients write the code as two
//! bytes and then a msgpack list of arguments.
//!
//! [`Call`] keeps the three forms apart and does not know the meaning of codes and arguments.

use bytes::{BufMut, BytesMut};

use super::msgpack::{List, MsgpackError, Value, put_array_header, put_integer};
use super::result_code::ResultCode;
use super::writer::wire_len;

/// The code that says a context follows.
const CONTEXT: i64 = 0xff;

/// An operation's code and arguments.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// `[code, argument...]`.
    Plain(Function),
    /// The same inside a nested list or map.
    Nested {
        /// The way there, from the outside in.
        context: Vec<Level>,
        /// What is done there.
        function: Function,
    },
    /// The form of very old clients.
    Old {
        /// What is done.
        code: u16,
        /// The arguments.
        args: Vec<Value>,
    },
}

/// A code and its arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// What is done.
    pub code: i64,
    /// The arguments.
    pub args: Vec<Value>,
}

/// One step of a context.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// How `value` selects: by index, rank, key or value, of a list or map, and whether a missing
    /// part is created.
    pub kind: i64,
    /// What selects.
    pub value: Value,
}

/// A call that does not hold together; a server answers with [`ResultCode::Parameter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No bytes at all.
    #[error("empty collection operation")]
    Empty,
    /// The bytes are no msgpack.
    #[error(transparent)]
    Msgpack(#[from] MsgpackError),
    /// The list does not start with a code.
    #[error("collection operation without a code")]
    Code,
    /// A context that is not a list of pairs with a function behind it.
    #[error("malformed context of a collection operation")]
    Context,
}

impl CallError {
    /// What a server answers.
    #[must_use]
    pub const fn result_code(self) -> ResultCode {
        ResultCode::Parameter
    }
}

impl Call {
    /// Parses the value of an operation.
    ///
    /// # Errors
    /// [`CallError`] when it has none of the three forms.
    pub fn parse(bytes: &[u8]) -> Result<Self, CallError> {
        match bytes {
            [] => Err(CallError::Empty),
            &[high @ 0..=0x7f, low, ref args @ ..] => Ok(Self::Old {
                code: u16::from_be_bytes([high, low]),
                // An operation without arguments may end behind its code.
                args: if args.is_empty() {
                    Vec::new()
                } else {
                    List::decode(args)?.items
                },
            }),
            _ => Self::from_list(List::decode(bytes)?),
        }
    }

    fn from_list(list: List) -> Result<Self, CallError> {
        let mut items = list.items.into_iter();
        let code = items
            .next()
            .as_ref()
            .and_then(Value::as_integer)
            .ok_or(CallError::Code)?;
        if code != CONTEXT {
            return Ok(Self::Plain(Function {
                code,
                args: items.collect(),
            }));
        }
        let (Some(Value::List(context)), Some(Value::List(function)), None) =
            (items.next(), items.next(), items.next())
        else {
            return Err(CallError::Context);
        };
        let context = levels(context.items)?;
        match Self::from_list(function)? {
            Self::Plain(function) => Ok(Self::Nested { context, function }),
            _ => Err(CallError::Context),
        }
    }

    /// The code, whatever the form.
    #[must_use]
    pub fn code(&self) -> i64 {
        match self {
            Self::Plain(function) | Self::Nested { function, .. } => function.code,
            Self::Old { code, .. } => (*code).into(),
        }
    }

    /// The arguments, whatever the form.
    #[must_use]
    pub fn args(&self) -> &[Value] {
        match self {
            Self::Plain(function) | Self::Nested { function, .. } => &function.args,
            Self::Old { args, .. } => args,
        }
    }

    /// The context; empty for the two forms without.
    #[must_use]
    pub fn context(&self) -> &[Level] {
        match self {
            Self::Nested { context, .. } => context,
            _ => &[],
        }
    }

    /// Appends the value of an operation.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Plain(function) => function.encode(out),
            Self::Nested { context, function } => {
                put_array_header(3, out);
                put_integer(CONTEXT, out);
                put_array_header(wire_len(context.len() * 2), out);
                for level in context {
                    put_integer(level.kind, out);
                    level.value.encode(out);
                }
                function.encode(out);
            }
            Self::Old { code, args } => {
                out.put_u16(*code);
                if !args.is_empty() {
                    put_array_header(wire_len(args.len()), out);
                    args.iter().for_each(|arg| arg.encode(out));
                }
            }
        }
    }
}

impl Function {
    fn encode(&self, out: &mut BytesMut) {
        put_array_header(wire_len(self.args.len() + 1), out);
        put_integer(self.code, out);
        self.args.iter().for_each(|arg| arg.encode(out));
    }
}

fn levels(items: Vec<Value>) -> Result<Vec<Level>, CallError> {
    let mut levels = Vec::with_capacity(items.len() / 2);
    let mut items = items.into_iter();
    while let Some(kind) = items.next() {
        let kind = kind.as_integer().ok_or(CallError::Context)?;
        let value = items.next().ok_or(CallError::Context)?;
        levels.push(Level { kind, value });
    }
    Ok(levels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn round_trip(bytes: &[u8]) -> Call {
        let call = Call::parse(bytes).unwrap();
        let mut out = BytesMut::new();
        call.encode(&mut out);
        assert_eq!(out, bytes);
        call
    }

    #[test]
    fn the_three_forms_of_a_list_append() {
        let plain = round_trip(&[0x92, 1, 5]);
        assert_eq!((plain.code(), plain.args()), (1, &[Value::Integer(5)][..]));
        let nested = round_trip(&[0x93, 0xcc, 0xff, 0x92, 0x10, 6, 0x92, 1, 99]);
        assert_eq!(
            (nested.code(), nested.args()),
            (1, &[Value::Integer(99)][..])
        );
        let level = Level {
            kind: 0x10,
            value: Value::Integer(6),
        };
        assert_eq!(nested.context(), [level]);
        let old = round_trip(&[0, 1, 0x91, 5]);
        assert_eq!((old.code(), old.args()), (1, &[Value::Integer(5)][..]));
        round_trip(&[0, 16]);
    }

    #[test]
    fn broken_calls_are_errors() {
        assert_eq!(Call::parse(&[]), Err(CallError::Empty));
        assert_eq!(Call::parse(&[0x90]), Err(CallError::Code));
        assert_eq!(Call::parse(&[0x91, 0xc0]), Err(CallError::Code));
        assert_eq!(
            Call::parse(&[0x92, 0xcc, 0xff, 0x90]),
            Err(CallError::Context)
        );
        assert_eq!(
            Call::parse(&[0x93, 0xcc, 0xff, 0x91, 1, 0x91, 1]),
            Err(CallError::Context)
        );
        assert!(matches!(Call::parse(&[5]), Err(CallError::Msgpack(_))));
        assert!(matches!(
            Call::parse(&[0, 1, 5]),
            Err(CallError::Msgpack(_))
        ));
    }
}
