//! Batches: many record operations in one message.
//!
//! Rows run in order, each atomically and none together with another. Their answers lie one behind
//! the other in frames of up to 128 KiB, each with its row's index; a last message in a frame of its
//! own ends them. A batch that does not hold together (no rows, fewer rows than announced, a first
//! row that repeats, a row without a known namespace) is answered by the last message alone.
//!
//! A row's error other than "not found" and "filtered out" does one of three things: with the flag
//! "respond to all" nothing, with the flag "report the error row" it also becomes the code of the
//! last message, without either it is the code of the last message and no row is answered at all.

use bytes::BytesMut;
use kvlab_protocol::aerospike::BatchFlags;
use kvlab_protocol::aerospike::batch::BatchView;
use kvlab_protocol::aerospike::message::{Info2, put_header_only};
use kvlab_protocol::aerospike::proto::{FrameStart, Kind, begin_frame, finish_frame};
use kvlab_protocol::aerospike::result_code::ResultCode;

use super::answer::{last, put_message};
use super::request::{Parts, Request};
use super::{Runner, State};
use crate::exchange::Class;
use crate::limit::SizeKind;

/// A frame that has grown to this size is closed and the next row begins another.
const FRAME_LEN: usize = 128 * 1024;

/// All frames of an answer together; a batch that needs more ends with code 151. A limit of this
/// server, so that a small message cannot ask for all memory.
const ANSWER_MAX: usize = 256 * 1024 * 1024;

/// Answers a batch message; says whether it writes.
pub(super) fn answer(
    state: &State,
    parts: &Parts<'_>,
    runner: &mut Runner<'_>,
    out: &mut BytesMut,
) -> Class {
    let rows = parts.batch.ok_or(ResultCode::Parameter);
    let checked = rows.and_then(|rows| check(state, rows));
    let (code, class) = match checked {
        Ok((batch, class)) => (run(state, &batch, parts.filter(), runner, out), class),
        Err(code) => (Err(code), Class::Read),
    };
    put_header_only(out, &last(code.err().unwrap_or(ResultCode::Ok)));
    class
}

/// Answers the rows; the error is the code of the last message.
fn run(
    state: &State,
    batch: &BatchView<'_>,
    filter: Option<&[u8]>,
    runner: &mut Runner<'_>,
    out: &mut BytesMut,
) -> Result<(), ResultCode> {
    let flags = batch.flags();
    let before = out.len();
    let mut frame: Option<(FrameStart, usize)> = None;
    let mut outcome = Ok(());
    for row in batch.rows().map_while(Result::ok) {
        let parts = Parts::of(row.fields());
        let Some(namespace) = parts.namespace.and_then(|name| state.namespace(name)) else {
            continue;
        };
        let request = Request::of_row(&row, &parts, filter);
        let (_, start) = *frame.get_or_insert_with(|| {
            let at = out.len();
            (begin_frame(Kind::Message, out), at)
        });
        let code = put_message(row.index, out, |out| runner.run(namespace, &request, out));
        if out.len() - start >= FRAME_LEN
            && let Some((full, _)) = frame.take()
        {
            finish_frame(full, out);
        }
        if out.len() - before > ANSWER_MAX {
            outcome = Err(ResultCode::BatchTooMany);
            break;
        }
        let harmless = matches!(
            code,
            ResultCode::Ok | ResultCode::NotFound | ResultCode::FilteredOut
        );
        if harmless || flags.contains(BatchFlags::RESPOND_ALL) {
            continue;
        }
        if !flags.contains(BatchFlags::REPORT_ERROR_ROW) {
            out.truncate(before);
            return Err(code);
        }
        outcome = outcome.and(Err(code));
    }
    if let Some((open, _)) = frame {
        finish_frame(open, out);
    }
    outcome
}

/// Looks at every row before the first is executed: the rows, and whether any of them writes.
fn check<'a>(state: &State, rows: &'a [u8]) -> Result<(BatchView<'a>, Class), ResultCode> {
    let batch = BatchView::parse(rows).map_err(|error| error.result_code())?;
    let count = usize::try_from(batch.len()).unwrap_or(usize::MAX);
    let sizes = state.sizes.as_ref();
    if sizes.is_some_and(|sizes| sizes.exceeded(SizeKind::Arguments, count).is_some()) {
        return Err(ResultCode::BatchTooMany);
    }
    let mut class = Class::Read;
    for row in batch.rows() {
        let row = row.map_err(|error| error.result_code())?;
        let namespace = Parts::of(row.fields()).namespace;
        if namespace.and_then(|name| state.namespace(name)).is_none() {
            return Err(ResultCode::Parameter);
        }
        if row.head().info2.contains(Info2::WRITE) {
            class = Class::Write;
        }
    }
    Ok((batch, class))
}
