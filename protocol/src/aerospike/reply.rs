//! The client's side: finding the end of an answer and its outcome, without building anything.
//!
//! [`skim`] looks at the frame header and the first message header only: enough for an answer to a
//! single-record request. A batch, scan or query is answered by several frames; [`MultiReply`]
//! counts their messages until the one that carries [`Info3::LAST`].

use super::flags::Info3;
use super::message::{MESSAGE_HEADER_LEN, MessageError, MessageHeader, MessageView, Messages};
use super::proto::{FrameError, Kind, split_frame};
use super::result_code::ResultCode;

/// The outcome of one answer frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplySkim {
    /// Bytes of the whole frame.
    pub len: usize,
    /// What the frame holds.
    pub kind: Kind,
    /// The outcome; `Ok` for an info answer, whose errors are in its text.
    pub result: ResultCode,
    /// The record's generation, 0 if there is none.
    pub generation: u32,
    /// Seconds since 2010 at which the record expires, 0 for never.
    pub void_time: u32,
    /// Values in the answer.
    pub n_ops: u16,
    /// Whether the first message carries the bit that ends a multi-message answer.
    pub last: bool,
}

/// An answer that breaks the protocol; the connection is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// The frame header is bad.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A message does not hold together.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The frame is of a kind that answers nothing, or not this request.
    #[error("unexpected answer of kind {0:?}")]
    Kind(Kind),
    /// A security answer without a header.
    #[error("security answer of {found} bytes")]
    ShortSecurity {
        /// Bytes of the body.
        found: usize,
    },
}

/// Reads the outcome of the whole answer frame at the front of `buf`; `Ok(None)` when more bytes
/// are needed. Fields and values are not looked at.
///
/// # Errors
/// [`ReplyError`] when the bytes are no answer.
#[inline]
pub fn skim(buf: &[u8]) -> Result<Option<ReplySkim>, ReplyError> {
    let Some(frame) = split_frame(buf)? else {
        return Ok(None);
    };
    let mut skim = ReplySkim {
        len: buf.len() - frame.rest.len(),
        kind: frame.header.kind,
        result: ResultCode::Ok,
        generation: 0,
        void_time: 0,
        n_ops: 0,
        last: false,
    };
    match frame.header.kind {
        Kind::Message => {
            let found = frame.body.len();
            let header =
                MessageHeader::decode(frame.body).ok_or(MessageError::ShortHeader { found })?;
            skim.result = header.result;
            skim.generation = header.generation;
            skim.void_time = header.record_ttl;
            skim.n_ops = header.n_ops;
            skim.last = header.info3.contains(Info3::LAST);
        }
        Kind::Security => {
            let &[_, result, ..] = frame.body else {
                return Err(ReplyError::ShortSecurity {
                    found: frame.body.len(),
                });
            };
            skim.result = ResultCode::from_byte(result);
        }
        Kind::Info => {}
        other => return Err(ReplyError::Kind(other)),
    }
    Ok(Some(skim))
}

/// The progress of an answer of several frames.
///
/// ```
/// use bytes::BytesMut;
/// use kvlab_protocol::aerospike::message::{Info3, MessageHeader, put_header_only};
/// use kvlab_protocol::aerospike::reply::MultiReply;
/// use kvlab_protocol::aerospike::result_code::ResultCode;
///
/// let mut buf = BytesMut::new();
/// put_header_only(&mut buf, &MessageHeader::answer(ResultCode::NotFound));
/// put_header_only(&mut buf, &MessageHeader { info3: Info3::LAST, ..MessageHeader::EMPTY });
/// let mut reply = MultiReply::default();
/// while reply.result().is_none() {
///     let len = reply.feed(&buf, |_row| {}).unwrap().expect("both frames are here");
///     let _done = buf.split_to(len);
/// }
/// assert_eq!((reply.rows, reply.not_found), (1, 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MultiReply {
    /// Row or record messages so far, the last message not counted.
    pub rows: u64,
    /// Those with result `Ok`.
    pub found: u64,
    /// Those with result `NotFound`.
    pub not_found: u64,
    /// Those with any other result.
    pub failed: u64,
    /// Partitions reported as failed.
    pub partitions_failed: u64,
    result: Option<ResultCode>,
}

impl MultiReply {
    /// Takes the frame at the front of `buf` and calls `visit` for each of its row or record
    /// messages: the length of the frame, or `Ok(None)` when more bytes are needed. Nothing is
    /// taken once the answer is complete: then the length is 0.
    ///
    /// # Errors
    /// [`ReplyError`] when the bytes are no part of such an answer.
    pub fn feed<'b>(
        &mut self,
        buf: &'b [u8],
        mut visit: impl FnMut(&MessageView<'b>),
    ) -> Result<Option<usize>, ReplyError> {
        if self.result.is_some() {
            return Ok(Some(0));
        }
        let Some(frame) = split_frame(buf)? else {
            return Ok(None);
        };
        if frame.header.kind != Kind::Message {
            return Err(ReplyError::Kind(frame.header.kind));
        }
        if frame.body.is_empty() {
            return Err(MessageError::ShortHeader { found: 0 }.into());
        }
        for message in Messages::new(frame.body) {
            let message = message?;
            let header = message.header();
            if header.info3.contains(Info3::LAST) {
                self.result = Some(header.result);
                break;
            }
            if header.info3.contains(Info3::PARTITION_DONE) {
                self.partitions_failed += 1;
                continue;
            }
            self.rows += 1;
            match header.result {
                ResultCode::Ok => self.found += 1,
                ResultCode::NotFound => self.not_found += 1,
                _ => self.failed += 1,
            }
            visit(&message);
        }
        Ok(Some(buf.len() - frame.rest.len()))
    }

    /// The outcome of the whole, once its last message came.
    #[must_use]
    pub const fn result(&self) -> Option<ResultCode> {
        self.result
    }

    /// The outcome of a request that was refused with a single message without the last bit, as
    /// scans and queries are; `None` when `buf` does not start with such a frame.
    #[must_use]
    pub fn refusal(buf: &[u8]) -> Option<ResultCode> {
        let frame = split_frame(buf).ok().flatten()?;
        let header = MessageHeader::decode(frame.body)?;
        let alone = frame.header.kind == Kind::Message && frame.body.len() == MESSAGE_HEADER_LEN;
        (alone && header.info3.is_empty() && !header.result.is_ok()).then_some(header.result)
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::super::admin::put_answer;
    use super::super::message::{
        OpCode, ParticleType, begin_message, finish_message, put_header_only, put_message_frame,
    };
    use super::super::proto::{begin_frame, finish_frame};
    use super::*;

    #[test]
    fn single_answers_are_skimmed_whole_or_not_at_all() {
        let header = MessageHeader {
            generation: 7,
            record_ttl: 99,
            ..MessageHeader::EMPTY
        };
        let mut out = BytesMut::new();
        put_message_frame(&mut out, &header, |message| {
            message.op(OpCode::Read, ParticleType::Blob, b"a", &[1; 100]);
        });
        let len = out.len();
        for cut in 0..len {
            assert_eq!(skim(&out[..cut]), Ok(None));
        }
        out.extend_from_slice(b"more");
        let reply = skim(&out).unwrap().unwrap();
        assert_eq!((reply.len, reply.generation, reply.void_time), (len, 7, 99));
        assert_eq!(
            (reply.result, reply.n_ops, reply.last),
            (ResultCode::Ok, 1, false)
        );
    }

    #[test]
    fn security_and_info_answers_are_skimmed_too() {
        let mut out = BytesMut::new();
        put_answer(ResultCode::SecurityNotSupported, &mut out);
        let reply = skim(&out).unwrap().unwrap();
        assert_eq!(
            (reply.len, reply.result),
            (24, ResultCode::SecurityNotSupported)
        );
        let reply = skim(b"\x02\x01\0\0\0\0\0\x02a\n").unwrap().unwrap();
        assert_eq!((reply.kind, reply.result), (Kind::Info, ResultCode::Ok));
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        assert_eq!(
            skim(b"\x02\x04\0\0\0\0\0\0"),
            Err(ReplyError::Kind(Kind::Compressed))
        );
        let short = MessageError::ShortHeader { found: 0 }.into();
        assert_eq!(skim(b"\x02\x03\0\0\0\0\0\0"), Err(short));
        assert!(matches!(
            skim(b"*1\r\n$4\r\nPING"),
            Err(ReplyError::Frame(_))
        ));
    }

    #[test]
    fn rows_of_several_frames_are_counted_until_the_last_message() {
        let mut out = BytesMut::new();
        let frame = begin_frame(Kind::Message, &mut out);
        for result in [
            ResultCode::Ok,
            ResultCode::NotFound,
            ResultCode::FilteredOut,
        ] {
            let message = begin_message(&MessageHeader::answer(result), &mut out);
            finish_message(message, &mut out);
        }
        finish_frame(frame, &mut out);
        let first = out.len();
        let last = MessageHeader {
            info3: Info3::LAST,
            ..MessageHeader::EMPTY
        };
        put_header_only(&mut out, &last);
        let mut reply = MultiReply::default();
        let mut rows = 0;
        assert_eq!(reply.feed(&out[..first - 1], |_| rows += 1), Ok(None));
        assert_eq!(reply.feed(&out, |_| rows += 1), Ok(Some(first)));
        assert_eq!(reply.result(), None);
        assert_eq!(reply.feed(&out[first..], |_| rows += 1), Ok(Some(30)));
        assert_eq!(reply.result(), Some(ResultCode::Ok));
        assert_eq!(
            (reply.rows, reply.found, reply.not_found, reply.failed),
            (3, 1, 1, 1)
        );
        assert_eq!(rows, 3);
        assert_eq!(reply.feed(b"", |_| rows += 1), Ok(Some(0)));
    }

    #[test]
    fn refused_scans_are_told_from_rows() {
        let mut out = BytesMut::new();
        put_header_only(&mut out, &MessageHeader::answer(ResultCode::Unsupported));
        assert_eq!(MultiReply::refusal(&out), Some(ResultCode::Unsupported));
        out.clear();
        put_header_only(&mut out, &MessageHeader::answer(ResultCode::Ok));
        assert_eq!(MultiReply::refusal(&out), None);
    }
}
