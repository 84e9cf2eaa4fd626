//! Whole frames as owned trees, for tests, captured traffic and people; not for the hot path.
//!
//! [`Frame::decode`] takes everything apart that has a structure: fields, operations, values,
//! msgpack, batch rows, info answers, security fields. [`Frame::encode`] builds the bytes from the
//! tree alone. For every well-formed frame of today's clients and servers the bytes are the same
//! again; what is written differently is listed here:
//!
//! - the header size byte of a message is always 22 (servers do not look at it),
//! - integers of 1, 2 or 4 bytes become 8 bytes,
//! - msgpack takes its shortest form.

mod field;
mod info;
mod message;

use bytes::{BufMut, Bytes, BytesMut};

use super::admin::{AdminError, AdminField, AdminFieldKind, AdminView, Command, put_admin};
use super::batch::BatchError;
use super::cdt::CallError;
use super::message::{FieldKind, MessageError};
use super::msgpack::MsgpackError;
use super::particle::ParticleError;
use super::proto::{self, Kind, begin_frame, finish_frame};
use super::query::QueryError;
use super::result_code::ResultCode;

pub use field::{BatchRow, BatchRowBody, FieldData, RangeEnds};
pub use info::{InfoAnswer, InfoValue};
pub use message::{Message, Operation, OperationValue};

/// Who sent a frame; some values have another form in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// A request.
    Client,
    /// An answer.
    Server,
}

/// A frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The version byte.
    pub version: u8,
    /// What it holds.
    pub body: Body,
}

/// The body of a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Info commands.
    InfoRequest {
        /// The lines.
        commands: Vec<Bytes>,
        /// Text behind the last newline, which servers ignore.
        ignored: Bytes,
    },
    /// Info answers.
    InfoAnswer(Vec<InfoAnswer>),
    /// A security message.
    Security {
        /// The outcome.
        result: ResultCode,
        /// What is asked for.
        command: Command,
        /// The fields.
        fields: Vec<(AdminFieldKind, Bytes)>,
    },
    /// One or, in answers, several messages.
    Messages(Vec<Message>),
    /// A body that is not looked into (compressed, XDR).
    Opaque(Kind, Bytes),
}

/// A frame body that does not hold together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// Counts, sizes and length of a message.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A field of a fixed size has another.
    #[error("field {kind:?} of {found} bytes")]
    FieldSize {
        /// The field.
        kind: FieldKind,
        /// Bytes found.
        found: usize,
    },
    /// The msgpack of a field.
    #[error("field {kind:?}: {error}")]
    FieldMsgpack {
        /// The field.
        kind: FieldKind,
        /// What is wrong.
        error: MsgpackError,
    },
    /// The msgpack of an expression operation.
    #[error("expression operation: {0}")]
    Expression(MsgpackError),
    /// The value of an operation or a user key.
    #[error(transparent)]
    Particle(#[from] ParticleError),
    /// The call of a collection operation.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A batch field.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// An argument of a scan or query.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A security message.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// An info answer whose value does not have the form of its command.
    #[error(transparent)]
    Info(#[from] super::info::ValueError),
}

impl TreeError {
    /// What a server answers to a request like this.
    #[must_use]
    pub const fn result_code(&self) -> ResultCode {
        match self {
            Self::Particle(error) => error.result_code(),
            Self::Admin(_) => ResultCode::SecurityField,
            _ => ResultCode::Parameter,
        }
    }
}

impl Frame {
    /// Takes a frame apart.
    ///
    /// # Errors
    /// [`TreeError`] at the first part that does not hold together.
    pub fn decode(sender: Sender, frame: &proto::Frame<'_>) -> Result<Self, TreeError> {
        let body = match (frame.header.kind, sender) {
            (Kind::Info, Sender::Client) => info::decode_request(frame.body),
            (Kind::Info, Sender::Server) => Body::InfoAnswer(info::decode_answers(frame.body)?),
            (Kind::Security, _) => decode_security(frame.body)?,
            (Kind::Message, Sender::Client) => {
                let view = super::message::MessageView::parse(frame.body)?;
                Body::Messages(vec![Message::decode(sender, &view)?])
            }
            (Kind::Message, Sender::Server) => {
                let views = super::message::Messages::new(frame.body);
                let decode = |view: Result<_, MessageError>| Message::decode(sender, &view?);
                Body::Messages(views.map(decode).collect::<Result<_, _>>()?)
            }
            (kind, _) => Body::Opaque(kind, Bytes::copy_from_slice(frame.body)),
        };
        Ok(Self {
            version: frame.header.version,
            body,
        })
    }

    /// Appends the frame.
    ///
    /// # Panics
    /// When something is too long or too many for the wire, which nothing that was decoded is.
    pub fn encode(&self, out: &mut BytesMut) {
        let at = out.len();
        match &self.body {
            Body::InfoRequest { commands, ignored } => {
                let frame = begin_frame(Kind::Info, out);
                for command in commands {
                    out.put_slice(command);
                    out.put_u8(b'\n');
                }
                out.put_slice(ignored);
                finish_frame(frame, out);
            }
            Body::InfoAnswer(answers) => info::encode_answers(answers, out),
            Body::Security {
                result,
                command,
                fields,
            } => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(kind, data)| AdminField { kind: *kind, data })
                    .collect();
                put_admin(*result, *command, &fields, out);
            }
            Body::Messages(messages) => {
                let frame = begin_frame(Kind::Message, out);
                messages.iter().for_each(|message| message.encode(out));
                finish_frame(frame, out);
            }
            Body::Opaque(kind, body) => {
                let frame = begin_frame(*kind, out);
                out.put_slice(body);
                finish_frame(frame, out);
            }
        }
        if let Some(version) = out.get_mut(at) {
            *version = self.version;
        }
    }
}

fn decode_security(body: &[u8]) -> Result<Body, TreeError> {
    let view = AdminView::parse(body)?;
    let fields = view
        .fields()
        .map(|field| (field.kind, Bytes::copy_from_slice(field.data)))
        .collect();
    Ok(Body::Security {
        result: view.result,
        command: view.command,
        fields,
    })
}
