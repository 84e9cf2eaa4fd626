//! RESP: finds commands, looks them up in the [`table`], checks arity and access, runs them.

pub mod command;
pub mod entry;
pub mod table;

use bytes::BytesMut;
use kvlab_protocol::resp::{
    Args, DoubleStyle, ReplyWriter, RequestDecoder, RequestError, RequestLimits, Version,
};

use self::entry::Entry;
use self::table::Spec;
use crate::clients::ClientInfo;
use crate::config::ServerConfig;
use crate::dialect::{Context, Flow, Frame, Refusal};
use crate::exchange::{Class, Exchange, Protocol};
use crate::shared::Shared;
use crate::store::Keyspace;

pub use table::command_names;

/// Databases and state of the RESP side, shared by all workers.
#[derive(Debug)]
pub struct State {
    /// The databases, by number.
    pub databases: Vec<Keyspace<Entry>>,
}

impl State {
    /// Empty databases for a server with `config`.
    #[must_use]
    pub fn new(config: &ServerConfig) -> Self {
        let databases = (0..config.redis.databases)
            .map(|_| Keyspace::new(config.seed))
            .collect();
        Self { databases }
    }
}

/// One RESP connection.
#[derive(Debug)]
pub struct Connection {
    decoder: RequestDecoder,
    /// Parses again the frames that were held, while `decoder` may be inside a later one.
    recaller: RequestDecoder,
    recalled: bool,
    limits: RequestLimits,
    spec: Option<&'static Spec>,
    choices: Choices,
}

/// What a client has chosen for its connection.
#[derive(Debug)]
pub struct Choices {
    /// RESP2 or RESP3.
    pub version: Version,
    /// The selected database.
    pub database: usize,
}

/// One command being run: its arguments, where its reply goes, and what it may touch.
#[derive(Debug)]
pub struct Call<'a, 'c> {
    /// Name and arguments.
    pub args: Args<'a>,
    /// Writes the reply.
    pub reply: ReplyWriter<'a>,
    /// The moment, the client, the shared state.
    pub context: &'a mut Context<'c>,
    /// The choices of the connection.
    pub choices: &'a mut Choices,
}

impl Connection {
    /// A connection that has sent nothing yet.
    #[must_use]
    pub fn new(_shared: &Shared) -> Self {
        Self {
            decoder: RequestDecoder::new(),
            recaller: RequestDecoder::new(),
            recalled: false,
            limits: RequestLimits::default(),
            spec: None,
            choices: Choices {
                version: Version::Resp2,
                database: 0,
            },
        }
    }

    /// The next command at the front of `buf`.
    ///
    /// # Errors
    /// When the input breaks the protocol.
    pub fn decode(&mut self, buf: &[u8]) -> Result<Option<Frame>, Refusal> {
        match self.decoder.decode(buf, &self.limits) {
            Ok(None) => Ok(None),
            Ok(Some(len)) => {
                self.recalled = false;
                let frame = buf.get(..len).unwrap_or_default();
                let args = self.decoder.args(frame);
                let empty = args.is_empty();
                self.spec = table::find(args.name());
                Ok(Some(Frame { len, empty }))
            }
            Err(error) => Err(refusal(&error)),
        }
    }

    /// Looks again at a command that was held.
    pub fn recall(&mut self, frame: &[u8]) -> Frame {
        self.recalled = true;
        // The frame was complete and legal once, under limits that only widen since.
        let _ = self.recaller.decode(frame, &RequestLimits::default());
        let args = self.recaller.args(frame);
        self.spec = table::find(args.name());
        Frame {
            len: frame.len(),
            empty: args.is_empty(),
        }
    }

    /// The current command as rules see it.
    #[must_use]
    pub fn describe<'a>(&'a self, frame: &'a [u8]) -> Exchange<'a> {
        let (command, class, key) = match self.spec {
            Some(spec) => (spec.name, spec.class, self.args(frame).arg(spec.first_key)),
            None => ("unknown", Class::Admin, &[][..]),
        };
        Exchange {
            protocol: Protocol::Redis,
            command,
            class,
            key,
        }
    }

    /// The table ordinal of the current command.
    #[must_use]
    pub fn ordinal(&self) -> u16 {
        self.spec.map_or(0, |spec| spec.ordinal)
    }

    /// Runs the current command.
    pub fn execute(&mut self, frame: &[u8], context: &mut Context<'_>, out: &mut BytesMut) -> Flow {
        let decoder = if self.recalled {
            &self.recaller
        } else {
            &self.decoder
        };
        let args = decoder.args(frame);
        let mut reply = ReplyWriter::new(out, self.choices.version, DoubleStyle::Shortest);
        let Some(spec) = self.spec else {
            reply.error("ERR unknown command");
            return Flow::Done;
        };
        let mut call = Call {
            args,
            reply,
            context,
            choices: &mut self.choices,
        };
        (spec.run)(&mut call)
    }

    /// Writes the last word for input that breaks the protocol.
    pub fn refuse(&mut self, text: &str, out: &mut BytesMut) {
        ReplyWriter::new(out, self.choices.version, DoubleStyle::Shortest).error(text);
    }

    /// The connection is gone.
    pub fn close(&mut self, _shared: &Shared, _client: &ClientInfo) {}

    fn args<'a>(&'a self, frame: &'a [u8]) -> Args<'a> {
        if self.recalled {
            self.recaller.args(frame)
        } else {
            self.decoder.args(frame)
        }
    }
}

fn refusal(error: &RequestError) -> Refusal {
    match error.reply_text() {
        Some(text) => Refusal::Reply(String::from_utf8_lossy(&text).into_owned()),
        None => Refusal::Silent,
    }
}
