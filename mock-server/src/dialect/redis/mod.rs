//! RESP: finds commands, looks them up in the [`table`], checks them ([`dispatch`]), runs them.
//!
//! | what                                     | where                         |
//! |------------------------------------------|-------------------------------|
//! | a command as data                        | [`row`], [`table`]            |
//! | the commands, one file per family        | [`command`]                   |
//! | the checks before a command runs         | [`dispatch`]                  |
//! | what a command may touch                 | [`call`], [`view`], [`peer`]  |
//! | databases, entries, strings              | [`database`], [`entry`], [`text`] |
//! | expiry in the background                 | [`expiry`]                    |
//! | users and what they may do               | [`acl`]                       |
//! | WATCH, CLIENT PAUSE                      | [`watch`], [`pause`]          |
//! | CONFIG                                   | [`settings`]                  |
//! | INFO's counters                          | [`counters`]                  |
//! | error texts                              | [`fault`]                     |
//! | commands that nobody may run             | [`blocked`]                   |
//! | what goes when memory is used up         | [`eviction`]                  |
//! | key patterns, COMMAND DOCS               | [`glob`], [`syntax`]          |

pub mod acl;
pub mod blocked;
pub mod call;
pub mod command;
pub mod counters;
pub mod database;
pub mod dispatch;
pub mod entry;
pub mod eviction;
pub mod expiry;
pub mod fault;
pub mod glob;
pub mod named_keys;
pub mod pause;
pub mod peer;
pub mod row;
pub mod settings;
pub mod syntax;
pub mod table;
pub mod text;
pub mod view;
pub mod watch;

use std::sync::Arc;

use bytes::BytesMut;
use kvlab_protocol::resp::{
    Args, DoubleStyle, ReplyWriter, RequestDecoder, RequestError, RequestLimits,
};

use self::acl::Users;
use self::blocked::BlockList;
use self::call::Call;
use self::counters::Counters;
use self::database::Databases;
use self::dispatch::Named;
use self::eviction::Evictor;
use self::expiry::Expiry;
use self::fault::Fault;
use self::pause::Pause;
use self::peer::Peer;
use self::settings::{Live, Settings};
use self::watch::Watches;
use crate::clients::ClientInfo;
use crate::config::{RedisVersion, ServerConfig};
use crate::dialect::{Context, Flow, Frame, Refusal};
use crate::exchange::{Class, Exchange, Protocol};
use crate::limit::SizeKind;
use crate::limit::size::{Excess, Sizes};
use crate::shared::Shared;

pub use table::command_names;

/// Databases and state of the RESP side, shared by all workers.
#[derive(Debug)]
pub struct State {
    /// The version to be.
    pub version: RedisVersion,
    /// The databases, by number.
    pub databases: Databases,
    /// The parameters of CONFIG.
    pub settings: Settings,
    /// The watched keys.
    pub watches: Watches,
    /// The pause of CLIENT PAUSE.
    pub pause: Pause,
    /// Who there is, and what they may do.
    pub users: Users,
    /// The counters of INFO.
    pub counters: Counters,
    /// Expiry in the background.
    pub expiry: Expiry,
    /// What is evicted when memory is used up.
    pub evictor: Evictor,
    /// Commands that nobody may run, if there are any.
    pub blocked: Option<BlockList>,
}

impl State {
    /// Empty databases for a server with `config`.
    #[must_use]
    pub fn new(config: &ServerConfig) -> Self {
        Self {
            version: config.redis.version,
            databases: Databases::new(config.redis.databases, config.seed),
            settings: Settings::new(config),
            watches: Watches::default(),
            pause: Pause::default(),
            users: Users::new(config),
            counters: Counters::new(config.workers),
            expiry: Expiry::default(),
            evictor: Evictor::new(config.seed),
            blocked: BlockList::new(&config.requests),
        }
    }

    /// Bytes in use, as `used_memory` tells them: an estimate from the data alone, so that it does
    /// not depend on the machine.
    #[must_use]
    pub fn used_memory(&self) -> u64 {
        let keys: usize = (0..self.databases.count())
            .filter_map(|number| self.databases.get(number))
            .map(database::Database::len)
            .sum();
        STARTUP_BYTES + keys as u64 * BYTES_PER_KEY + self.counters.value_bytes()
    }

    /// Whether there is a limit on memory, and it is passed.
    #[must_use]
    #[inline]
    pub fn is_over_memory(&self) -> bool {
        let limit = self.settings.live().memory_max();
        limit > 0 && self.used_memory() > limit
    }

    /// How doubles are printed.
    #[must_use]
    pub fn double_style(&self) -> DoubleStyle {
        if self.version < FIRST_WITH_SHORT_DOUBLES {
            DoubleStyle::SeventeenDigits
        } else {
            DoubleStyle::Shortest
        }
    }
}

/// What a server uses before it holds a key.
const STARTUP_BYTES: u64 = 900_000;
/// What a key takes beside its value.
const BYTES_PER_KEY: u64 = 100;

/// Before this version doubles have 17 digits.
const FIRST_WITH_SHORT_DOUBLES: RedisVersion = RedisVersion {
    major: 7,
    minor: 2,
    patch: 0,
};

/// One RESP connection.
#[derive(Debug)]
pub struct Connection {
    decoder: RequestDecoder,
    /// Parses again the frames that were held, while `decoder` may be inside a later one.
    recaller: RequestDecoder,
    recalled: bool,
    limits: RequestLimits,
    sizes: Option<Arc<Sizes>>,
    live: Arc<Live>,
    version: RedisVersion,
    double_style: DoubleStyle,
    named: Named,
    peer: Peer,
}

impl Connection {
    /// A connection that has sent nothing yet.
    #[must_use]
    pub fn new(shared: &Shared) -> Self {
        let state = &shared.redis;
        Self {
            decoder: RequestDecoder::new(),
            recaller: RequestDecoder::new(),
            recalled: false,
            limits: RequestLimits {
                max_request: shared
                    .sizes
                    .as_ref()
                    .and_then(|sizes| sizes.most(SizeKind::Request))
                    .unwrap_or(u64::MAX),
                ..RequestLimits::default()
            },
            sizes: shared.sizes.clone(),
            live: Arc::clone(state.settings.live()),
            version: state.version,
            double_style: state.double_style(),
            named: Named::Unknown,
            peer: Peer::new(state),
        }
    }

    /// A connection of nobody, for commands that come from inside the process: there is no login and
    /// no permission to ask for.
    #[must_use]
    pub fn inside(shared: &Shared) -> Self {
        let mut connection = Self::new(shared);
        connection.peer = Peer::inside(&shared.redis);
        connection
    }

    /// The next command at the front of `buf`.
    ///
    /// # Errors
    /// When the input breaks the protocol.
    pub fn decode(&mut self, buf: &[u8]) -> Result<Option<Frame>, Refusal> {
        self.limits.max_bulk = self.live.max_bulk();
        self.limits.unauthenticated = self.peer.has_to_log_in();
        match self.decoder.decode(buf, &self.limits) {
            Ok(None) => Ok(None),
            Ok(Some(len)) => {
                self.recalled = false;
                let frame = buf.get(..len).unwrap_or_default();
                let args = self.decoder.args(frame);
                let whole = self.decoder.excess();
                let empty = args.is_empty() && whole.is_none();
                // Most requests name the command that the one before named.
                if !self.named.is(args.name()) {
                    self.named = resolve(args, self.version);
                }
                let excess = self
                    .sizes
                    .as_ref()
                    .filter(|_| !empty)
                    .and_then(|sizes| measure(sizes, self.named, args, whole, len));
                Ok(Some(Frame { len, empty, excess }))
            }
            Err(error) => Err(refusal(&error)),
        }
    }

    /// Looks again at a command that was held.
    pub fn recall(&mut self, frame: &[u8]) -> Frame {
        self.recalled = true;
        // The frame was complete and legal once, under limits that were no wider than these.
        let limits = RequestLimits {
            max_bulk: u64::MAX,
            ..RequestLimits::default()
        };
        self.recaller.restart();
        let _ = self.recaller.decode(frame, &limits);
        let args = self.recaller.args(frame);
        self.named = resolve(args, self.version);
        Frame {
            len: frame.len(),
            empty: args.is_empty(),
            excess: None,
        }
    }

    /// The current command as rules see it.
    #[must_use]
    pub fn describe<'a>(&'a self, frame: &'a [u8]) -> Exchange<'a> {
        let (command, class, key) = match self.named {
            Named::Command(command) if command.first_key > 0 => (
                command.name,
                command.class,
                self.args(frame).arg(command.first_key),
            ),
            Named::Command(command) => (command.name, command.class, &[][..]),
            _ => ("unknown", Class::Admin, &[][..]),
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
        match self.named {
            Named::Command(command) => command.ordinal,
            _ => 0,
        }
    }

    /// Runs the current command.
    pub fn execute(&mut self, frame: &[u8], context: &mut Context<'_>, out: &mut BytesMut) -> Flow {
        let state = &context.shared.redis;
        state
            .expiry
            .tick(context.shared, context.worker, context.now);
        let before = out.len();
        let decoder = if self.recalled {
            &self.recaller
        } else {
            &self.decoder
        };
        let args = decoder.args(frame);
        let reply = ReplyWriter::new(out, self.peer.version, self.double_style);
        let refused = match (&state.blocked, self.named) {
            (Some(blocked), Named::Command(command)) => blocked.refuses_at_once(command, args),
            (Some(blocked), _) => {
                let who = (state.version, self.peer.user.name());
                blocked.refuses_unknown(args, who)
            }
            (None, _) => None,
        };
        let outcome = match self.named {
            _ if let Some(fault) = refused => {
                context.limited.blocked = true;
                Err(self.refuse_unseen(state, context.worker, fault))
            }
            Named::Command(command) => {
                let mut call = Call {
                    command,
                    args,
                    reply,
                    context,
                    peer: &mut self.peer,
                    may_park: true,
                };
                dispatch::dispatch(&mut call)
            }
            named => {
                let fault = dispatch::unknown(args, named);
                Err(self.refuse_unseen(state, context.worker, fault))
            }
        };
        let flow = match outcome {
            Ok(Flow::Park { until }) => return Flow::Park { until },
            Ok(flow) => flow,
            Err(fault) => {
                self.write_fault(&fault, out);
                Flow::Done
            }
        };
        if self.peer.is_silent() {
            out.truncate(before);
        }
        self.peer.next_command();
        let lane = state.counters.lane(context.worker);
        lane.bytes_in.add(frame.len() as u64);
        lane.bytes_out.add((out.len() - before) as u64);
        flow
    }

    /// Accounts for the current command, which is refused before anything of it was looked at.
    fn refuse_unseen(&mut self, state: &State, worker: usize, fault: Fault) -> Fault {
        if let Some(transaction) = &mut self.peer.transaction {
            transaction.broken = true;
        }
        if let Named::Command(command) = self.named {
            let calls = state.counters.lane(worker).calls(command.ordinal);
            calls.rejected.add(1);
        }
        state.counters.count_error(fault.code());
        fault
    }

    /// Answers the current command, which is not executed, with an error.
    pub(crate) fn decline(&mut self, text: &str, context: &Context<'_>, out: &mut BytesMut) {
        let fault = Fault::from_text(text.to_owned());
        let fault = self.refuse_unseen(&context.shared.redis, context.worker, fault);
        if !self.peer.is_silent() {
            self.write_fault(&fault, out);
        }
        self.peer.next_command();
    }

    /// Whether what was refused for its size is still coming in.
    pub(crate) fn is_skipping(&self) -> bool {
        self.decoder.is_skipping()
    }

    /// Answers the current command, which is not executed, that the server has too much to do.
    pub fn refuse_overloaded(&mut self, out: &mut BytesMut) {
        if let Some(transaction) = &mut self.peer.transaction {
            transaction.broken = true;
        }
        if !self.peer.is_silent() {
            ReplyWriter::new(out, self.peer.version, self.double_style)
                .error("BUSY the queue of the server is full");
        }
        self.peer.next_command();
    }

    /// Writes the last word for input that breaks the protocol.
    pub fn refuse(&mut self, text: &str, out: &mut BytesMut) {
        if !self.peer.is_silent() {
            ReplyWriter::new(out, self.peer.version, self.double_style).error(text);
        }
    }

    /// The connection is gone.
    pub fn close(&mut self, shared: &Shared, _client: &ClientInfo) {
        self.peer.discard(&shared.redis);
    }

    fn write_fault(&self, fault: &Fault, out: &mut BytesMut) {
        ReplyWriter::new(out, self.peer.version, self.double_style).error_bytes(fault.text());
    }

    fn args<'a>(&'a self, frame: &'a [u8]) -> Args<'a> {
        if self.recalled {
            self.recaller.args(frame)
        } else {
            self.decoder.args(frame)
        }
    }
}

/// In what a request of `len` bytes is larger than it may be; `whole` if it was given up before its
/// end.
#[cold]
fn measure(
    sizes: &Sizes,
    named: Named,
    args: Args<'_>,
    whole: Option<u64>,
    len: usize,
) -> Option<Excess> {
    if let Some(actual) = whole {
        let kind = SizeKind::Request;
        return Some(Excess { kind, actual });
    }
    let row = match named {
        Named::Command(command) => Some(command.row),
        _ => None,
    };
    let (mut key, mut value) = (0, 0);
    for (place, arg) in args.iter().enumerate().skip(1) {
        let is_key = row.is_some_and(|row| row.has_key_at(place, args.len()));
        let largest = if is_key { &mut key } else { &mut value };
        *largest = arg.len().max(*largest);
    }
    sizes
        .exceeded(SizeKind::Request, len)
        .or_else(|| sizes.exceeded(SizeKind::Arguments, args.len()))
        .or_else(|| sizes.exceeded(SizeKind::Key, key))
        .or_else(|| sizes.exceeded(SizeKind::Value, value))
}

/// What a request names, on a server of this version.
#[inline]
fn resolve(args: Args<'_>, version: RedisVersion) -> Named {
    let Some(command) = table::find(args.name()).filter(|found| found.row.since <= version) else {
        return Named::Unknown;
    };
    if !command.is_container() || args.len() == 1 {
        return Named::Command(command);
    }
    match command
        .subcommand(args.arg(1))
        .filter(|found| found.row.since <= version)
    {
        Some(sub) => Named::Command(sub),
        None => Named::UnknownSubcommand(command),
    }
}

fn refusal(error: &RequestError) -> Refusal {
    match error.reply_text() {
        Some(text) => Refusal::Reply(String::from_utf8_lossy(&text).into_owned()),
        None => Refusal::Silent,
    }
}
