//! Info bodies as trees.

use bytes::{BufMut, Bytes, BytesMut};

use super::{Body, TreeError};
use crate::aerospike::info::{
    Answer, AnswerWriter, InfoError, InfoRequest, Peers, Replicas, Services, answers, put_error,
    requests,
};
use crate::aerospike::result_code::ResultCode;

/// The answer to one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InfoAnswer {
    /// The command as sent.
    pub command: Bytes,
    /// Its value.
    pub value: InfoValue,
}

/// A value of an info answer, taken apart where its command is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InfoValue {
    /// `ERROR:<code>:<text>` in capitals, with valid UTF-8.
    Error(ResultCode, String),
    /// A peers list.
    Peers(Peers),
    /// A partition map.
    Replicas(Replicas),
    /// Addresses of a node.
    Services(Services),
    /// Any other text.
    Text(Bytes),
}

pub(super) fn decode_request(body: &[u8]) -> Body {
    let commands: Vec<_> = requests(body)
        .map(|request| Bytes::copy_from_slice(request.raw()))
        .collect();
    let used = commands.iter().map(|command| command.len() + 1).sum();
    let ignored = Bytes::copy_from_slice(body.get(used..).unwrap_or_default());
    Body::InfoRequest { commands, ignored }
}

pub(super) fn decode_answers(body: &[u8]) -> Result<Vec<InfoAnswer>, TreeError> {
    answers(body).map(|answer| decode_answer(&answer)).collect()
}

fn decode_answer(answer: &Answer<'_>) -> Result<InfoAnswer, TreeError> {
    let command = InfoRequest::new(answer.command);
    let value = match (decode_error(answer.value), command.name()) {
        (Some(error), _) => error,
        (None, b"peers-clear-std" | b"peers-clear-alt") => {
            InfoValue::Peers(Peers::parse(answer.value)?)
        }
        (None, b"replicas") => InfoValue::Replicas(Replicas::parse(answer.value)?),
        (None, b"service-clear-std" | b"service-clear-alt") => {
            InfoValue::Services(Services::parse(answer.value)?)
        }
        _ => InfoValue::Text(Bytes::copy_from_slice(answer.value)),
    };
    Ok(InfoAnswer {
        command: Bytes::copy_from_slice(answer.command),
        value,
    })
}

fn decode_error(value: &[u8]) -> Option<InfoValue> {
    if !value.starts_with(b"ERROR:") {
        return None;
    }
    let error = InfoError::parse(value)?;
    let text = str::from_utf8(error.text).ok()?;
    let tree = InfoValue::Error(error.code?, text.to_owned());
    // A code with leading zeros, say, is not how servers write it: keep it as text.
    let mut again = BytesMut::new();
    tree.encode(&mut again);
    (again == value).then_some(tree)
}

impl InfoValue {
    fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Error(code, text) => put_error(*code, text, out),
            Self::Peers(peers) => peers.put(out),
            Self::Replicas(replicas) => replicas.put(out),
            Self::Services(services) => services.put(out),
            Self::Text(text) => out.put_slice(text),
        }
    }
}

pub(super) fn encode_answers(answers: &[InfoAnswer], out: &mut BytesMut) {
    let mut writer = AnswerWriter::begin(out);
    for answer in answers {
        writer.entry_with(&answer.command, |out| answer.value.encode(out));
    }
    writer.finish();
}
