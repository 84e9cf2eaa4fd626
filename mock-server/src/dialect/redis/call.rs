//! One command being run.

use kvlab_protocol::resp::number::{LongDouble, parse_i64};
use kvlab_protocol::resp::{Args, ReplyWriter};

use super::State;
use super::fault::Fault;
use super::peer::Peer;
use super::table::Command;
use super::view::View;
use crate::dialect::{Context, Flow};

/// What a command does: it wrote its reply, or it gives the error to be written.
pub type Outcome = Result<Flow, Fault>;

/// One command being run: its arguments, where its reply goes, and what it may touch.
#[derive(Debug)]
pub struct Call<'a, 'c> {
    /// Its place in the table.
    pub command: &'static Command,
    /// Name and arguments.
    pub args: Args<'a>,
    /// Writes the reply.
    pub reply: ReplyWriter<'a>,
    /// The moment, the client, the shared state.
    pub context: &'a mut Context<'c>,
    /// What the server remembers of this connection.
    pub peer: &'a mut Peer,
    /// Whether it may be parked: not inside a transaction.
    pub may_park: bool,
}

impl<'c> Call<'_, 'c> {
    /// The state of the RESP side.
    #[must_use]
    pub fn state(&self) -> &'c State {
        &self.context.shared.redis
    }

    /// The selected database.
    ///
    /// # Panics
    /// Never: SELECT admits only databases that exist.
    #[must_use]
    #[inline]
    pub fn view(&self) -> View<'c> {
        View::new(self.context, self.peer.database)
            .unwrap_or_else(|| unreachable!())
            .untraced(self.peer.no_touch)
    }

    /// Another database.
    ///
    /// # Errors
    /// When there is none of this number.
    pub fn view_of(&self, number: i32) -> Result<View<'c>, Fault> {
        usize::try_from(number)
            .ok()
            .and_then(|number| View::new(self.context, number))
            .ok_or(Fault::NO_SUCH_DATABASE)
    }

    /// Argument `position` as an integer.
    ///
    /// # Errors
    /// When it is none.
    pub fn integer(&self, position: usize) -> Result<i64, Fault> {
        parse_i64(self.args.arg(position)).ok_or(Fault::NOT_AN_INTEGER)
    }

    /// Argument `position` as an integer of 32 bits.
    ///
    /// # Errors
    /// When it is none.
    pub fn int(&self, position: usize) -> Result<i32, Fault> {
        i32::try_from(self.integer(position)?).map_err(|_| Fault::OUT_OF_INT)
    }

    /// Argument `position` as a float of extended precision.
    ///
    /// # Errors
    /// When it is none.
    pub fn long_double(&self, position: usize) -> Result<LongDouble, Fault> {
        LongDouble::parse(self.args.arg(position)).ok_or(Fault::NOT_A_FLOAT)
    }

    /// Bytes of all arguments together.
    #[must_use]
    pub fn args_len(&self) -> usize {
        self.args.iter().map(<[u8]>::len).sum()
    }

    /// Whether argument `position` is this word, in any case.
    #[must_use]
    pub fn is_word(&self, position: usize, word: &str) -> bool {
        self.args
            .get(position)
            .is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// Answers with a simple string.
    ///
    /// # Errors
    /// Never; the signature lets a command end with it.
    pub fn simple(&mut self, text: &str) -> Outcome {
        self.reply.simple(text);
        Ok(Flow::Done)
    }

    /// Answers `OK`.
    ///
    /// # Errors
    /// Never; the signature lets a command end with it.
    #[inline]
    pub fn ok(&mut self) -> Outcome {
        self.reply.raw(b"+OK\r\n");
        Ok(Flow::Done)
    }

    /// Answers with an integer.
    ///
    /// # Errors
    /// Never; the signature lets a command end with it.
    #[inline]
    pub fn number(&mut self, number: i64) -> Outcome {
        self.reply.integer(number);
        Ok(Flow::Done)
    }

    /// Answers with a count.
    ///
    /// # Errors
    /// Never; the signature lets a command end with it.
    pub fn count(&mut self, count: usize) -> Outcome {
        self.number(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Answers with a bulk string, or null.
    ///
    /// # Errors
    /// Never; the signature lets a command end with it.
    pub fn bulk_or_null(&mut self, bytes: Option<&[u8]>) -> Outcome {
        match bytes {
            Some(bytes) => self.reply.bulk(bytes),
            None => self.reply.null(),
        }
        Ok(Flow::Done)
    }
}
