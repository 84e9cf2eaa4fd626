//! The Aerospike wire protocol as a Community Edition 8.1 server answers it.
//!
//! | frame | answered by |
//! |---|---|
//! | info | `info`: text commands |
//! | security | code 51, "security not supported"; with users, by `security`; the connection stays usable |
//! | message | one record (`read`, `write`, `remove`), many (`batch`), or a query |
//! | compressed message | code 25, "enterprise only", not executed |
//! | traffic between data centres | the same |
//!
//! What a mock of this size does not do is answered by codes a client knows: scans and queries, bit
//! and HyperLogLog operations, expressions and most collection operations get 16 ("unsupported
//! feature"), user-defined functions 100 with the text of a server that cannot load the module. The
//! connection stays usable after every one of these; only bad framing ends it, without a word.

mod answer;
mod batch;
pub mod bins;
mod cdt;
mod direct;
mod filter;
mod geo;
mod info;
mod modify;
mod namespace;
mod operation;
mod plan;
mod read;
pub mod record;
mod remove;
mod replies;
mod request;
mod security;
mod set;
mod tally;
mod write;

use std::ops::Range;
use std::sync::Arc;

use bytes::BytesMut;
use kvlab_protocol::aerospike::admin::put_answer;
use kvlab_protocol::aerospike::digest::Digest;
use kvlab_protocol::aerospike::info::{AnswerWriter, put_error as put_info_error, requests};
use kvlab_protocol::aerospike::message::{Info2, MessageHeader, MessageView, put_header_only};
use kvlab_protocol::aerospike::proto::{
    Frame as Proto, HEADER_LEN, Kind, begin_frame, decode_frame, decode_header, finish_frame,
    split_frame,
};
use kvlab_protocol::aerospike::result_code::ResultCode;

pub use direct::RecordCopy;
use namespace::Room;

pub use namespace::Namespace;
pub use operation::OPERATION_NAMES;
pub use set::{Set, Sets};

use self::answer::{Outcome, last, put_frame};
use self::bins::Bins;
use self::operation::Operation;
use self::record::{Moment, TtlRules};
use self::request::{Parts, Request};
use self::security::Security;
use self::tally::{Source, Work};
use crate::config::ServerConfig;
use crate::dialect::{Context, Flow, Frame, Refusal};
use crate::exchange::{Class, Exchange, Protocol};
use crate::limit::size::{Excess, Sizes};
use crate::limit::{Blocked, SizeKind};
use crate::shared::Shared;

/// Namespaces and state of the Aerospike side, shared by all workers.
#[derive(Debug)]
pub struct State {
    namespaces: Vec<Namespace>,
    /// Operations and info commands that nobody may run.
    blocked: Vec<Blocked>,
    /// How large requests may be, if that is limited.
    sizes: Option<Sizes>,
    /// Indexes and modules that were registered.
    catalog: info::Catalog,
    /// Who may log in; with nobody, nobody needs to.
    security: Option<Security>,
}

impl State {
    /// Empty namespaces for a server with `config`.
    #[must_use]
    pub fn new(config: &ServerConfig) -> Self {
        let ttl = TtlRules {
            default_ttl: config.aerospike.default_ttl_s,
            nsup_period: config.aerospike.nsup_period_s,
        };
        let names = config.aerospike.namespaces.iter();
        let requests = &config.requests;
        let blocked = requests.blocked.iter();
        let own = |blocked: &&Blocked| blocked.protocol != Some(Protocol::Redis);
        let room = Room::new(requests);
        Self {
            namespaces: names
                .map(|name| Namespace::new(name, config.seed, ttl, config.workers).with(room))
                .collect(),
            blocked: blocked.filter(own).cloned().collect(),
            sizes: (!requests.sizes.is_empty()).then(|| Sizes::new(&requests.sizes)),
            catalog: info::Catalog::default(),
            security: Security::of(config),
        }
    }

    /// The namespace called `name`.
    #[must_use]
    pub fn namespace(&self, name: &[u8]) -> Option<&Namespace> {
        self.namespaces
            .iter()
            .find(|namespace| namespace.name().as_bytes() == name)
    }

    /// Does beforehand what a first login of each user would have to wait for.
    pub fn prepare_logins(&self) {
        if let Some(security) = &self.security {
            security.prepare();
        }
    }

    /// Whether nobody may run this operation or info command.
    pub(super) fn blocks(&self, name: &str) -> bool {
        let covers = |blocked: &Blocked| blocked.covers(Protocol::Aerospike, name);
        self.blocked.iter().any(covers)
    }

    /// The same for an info command as it came.
    pub(super) fn blocks_info(&self, name: &[u8]) -> bool {
        !self.blocked.is_empty() && std::str::from_utf8(name).is_ok_and(|name| self.blocks(name))
    }

    /// All namespaces.
    #[must_use]
    pub fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }
}

/// One Aerospike connection.
#[derive(Debug)]
pub struct Connection {
    /// What the message executed last was.
    operation: Operation,
    class: Class,
    /// Where its digest lies in its frame.
    digest_at: Range<usize>,
    /// Room for the bins of a record while operations run on them.
    scratch: Bins,
    /// Whether the client has told its name.
    has_user_agent: bool,
    /// Whether it may do nothing before a login.
    has_to_log_in: bool,
    sizes: Option<Arc<Sizes>>,
    /// Bytes of a refused message that are still to come.
    skipping: usize,
}

/// Room for bins that grew beyond this is given back after the message.
const KEEP_SCRATCH: usize = 64 * 1024;

impl Connection {
    /// A connection that has sent nothing yet.
    #[must_use]
    pub fn new(shared: &Shared) -> Self {
        Self {
            operation: Operation::Unknown,
            class: Class::Admin,
            digest_at: 0..0,
            scratch: Bins::default(),
            has_user_agent: false,
            has_to_log_in: shared.aerospike.security.is_some(),
            sizes: shared.sizes.clone(),
            skipping: 0,
        }
    }

    /// The next message at the front of `buf`.
    ///
    /// # Errors
    /// When the framing is wrong.
    #[inline]
    pub fn decode(&mut self, buf: &[u8]) -> Result<Option<Frame>, Refusal> {
        if self.sizes.is_some()
            && let Some(frame) = self.decode_measured(buf)
        {
            return Ok(Some(frame));
        }
        match decode_frame(buf) {
            Ok(Some((_, len))) => Ok(Some(Frame {
                len,
                empty: false,
                excess: None,
            })),
            Ok(None) => Ok(None),
            Err(_) => Err(Refusal::Silent),
        }
    }

    /// The header of a message that is too large, or what is there of the rest of it.
    #[cold]
    fn decode_measured(&mut self, buf: &[u8]) -> Option<Frame> {
        if self.skipping > 0 {
            let len = self.skipping.min(buf.len());
            self.skipping -= len;
            return (len > 0).then_some(Frame {
                len,
                empty: true,
                excess: None,
            });
        }
        let header = decode_header(buf).ok().flatten()?;
        let body = usize::try_from(header.len).unwrap_or(usize::MAX);
        let whole = body.saturating_add(HEADER_LEN);
        let sizes = self.sizes.as_ref()?;
        let excess = sizes.exceeded(SizeKind::Request, whole)?;
        self.skipping = body;
        Some(Frame {
            len: HEADER_LEN,
            empty: false,
            excess: Some(excess),
        })
    }

    /// Whether what was refused for its size is still coming in.
    pub(crate) fn is_skipping(&self) -> bool {
        self.skipping > 0
    }

    /// Looks again at a message that was held.
    pub fn recall(&mut self, frame: &[u8]) -> Frame {
        Frame {
            len: frame.len(),
            empty: false,
            excess: None,
        }
    }

    /// The message executed last as rules see it.
    #[must_use]
    pub fn describe<'a>(&'a self, frame: &'a [u8]) -> Exchange<'a> {
        Exchange {
            protocol: Protocol::Aerospike,
            command: self.operation.name(),
            class: self.class,
            key: frame.get(self.digest_at.clone()).unwrap_or_default(),
        }
    }

    /// Ordinal of the last message's operation.
    #[must_use]
    pub fn ordinal(&self) -> u16 {
        self.operation.ordinal()
    }

    /// Sorts the message in `frame`, which is not executed or not yet, so that it can be described.
    pub fn look_at(&mut self, frame: &[u8]) {
        self.digest_at = 0..0;
        let parts = split_frame(frame).ok().flatten();
        let message = parts.filter(|parts| parts.header.kind == Kind::Message);
        let view = message.and_then(|message| MessageView::parse(message.body).ok());
        self.operation = match (&view, parts.map(|parts| parts.header.kind)) {
            (Some(view), _) => Operation::of(view, &Parts::of(view.fields())),
            (None, Some(Kind::Info)) => Operation::Info,
            (None, Some(Kind::Security)) => Operation::Security,
            (None, _) => Operation::Unknown,
        };
        let writes = view.is_some_and(|view| view.header().info2.contains(Info2::WRITE));
        self.class = self.operation.class(writes);
    }

    /// Answers the message looked at last, which is not executed, that the server has too much to do.
    pub fn refuse_overloaded(&mut self, out: &mut BytesMut) {
        match self.operation {
            Operation::Batch => put_header_only(out, &last(ResultCode::DeviceOverload)),
            _ => put_error(ResultCode::DeviceOverload, out),
        }
    }

    /// Answers the message in `frame`, of which only the header may be there, with an error.
    pub(crate) fn decline(&mut self, frame: &[u8], code: ResultCode, out: &mut BytesMut) {
        self.look_at(frame);
        let header = decode_header(frame).ok().flatten();
        match header.map(|header| header.kind) {
            Some(Kind::Info) => {
                self.operation = Operation::Info;
                let body = split_frame(frame).ok().flatten().map(|parts| parts.body);
                let mut answer = AnswerWriter::begin(out);
                for request in requests(body.unwrap_or_default()) {
                    answer.entry_with(request.raw(), |out| put_info_error(code, code.name(), out));
                }
                answer.finish();
            }
            Some(Kind::Security) => {
                self.operation = Operation::Security;
                put_answer(code, out);
            }
            _ if self.operation == Operation::Batch => put_header_only(out, &last(code)),
            _ => put_error(code, out),
        }
    }

    /// Runs the message in `frame`.
    pub fn execute(&mut self, frame: &[u8], context: &mut Context<'_>, out: &mut BytesMut) -> Flow {
        self.operation = Operation::Unknown;
        self.class = Class::Admin;
        self.digest_at = 0..0;
        let now = Moment::new(context.shared.unix_nanos(context.now));
        for namespace in context.shared.aerospike.namespaces() {
            namespace.maintain(now);
        }
        // The frame was decoded before, so it splits.
        let Ok(Some(Proto { header, body, .. })) = split_frame(frame) else {
            return Flow::Close;
        };
        if self.has_to_log_in && header.kind != Kind::Security {
            self.look_at(frame);
            self.refuse_without_login(header.kind, out);
            return Flow::Done;
        }
        match header.kind {
            Kind::Info => {
                self.operation = Operation::Info;
                info::answer(body, now, &mut self.has_user_agent, context, out);
            }
            Kind::Security => {
                self.operation = Operation::Security;
                self.log_in(body, now, context, out);
            }
            Kind::Message => self.message(frame, body, now, context, out),
            Kind::Compressed | Kind::Xdr => put_error(ResultCode::EnterpriseOnly, out),
        }
        Flow::Done
    }

    /// Answers a security message.
    fn log_in(&mut self, body: &[u8], now: Moment, context: &Context<'_>, out: &mut BytesMut) {
        let Some(security) = &context.shared.aerospike.security else {
            return put_answer(ResultCode::SecurityNotSupported, out);
        };
        let user = security.answer(body, !self.has_to_log_in, now.unix_ns / 1_000_000_000, out);
        if let Some(user) = user {
            self.has_to_log_in = false;
            context.client.details().user = user.as_bytes().to_vec();
        }
    }

    /// Answers a request, which was looked at and is not executed, that a login has to come first.
    fn refuse_without_login(&self, kind: Kind, out: &mut BytesMut) {
        match (kind, self.operation) {
            (Kind::Info, _) => {
                // Whatever was asked, and without repeating it.
                let frame = begin_frame(Kind::Info, out);
                out.extend_from_slice(b"ERROR:80:not authenticated\n");
                finish_frame(frame, out);
            }
            (_, Operation::Batch) => put_header_only(out, &last(ResultCode::NotAuthenticated)),
            _ => put_error(ResultCode::NotAuthenticated, out),
        }
    }

    #[inline]
    fn message(
        &mut self,
        frame: &[u8],
        body: &[u8],
        now: Moment,
        context: &mut Context<'_>,
        out: &mut BytesMut,
    ) {
        let view = match MessageView::parse(body) {
            Ok(view) => view,
            Err(error) => return put_error(error.result_code(), out),
        };
        let parts = Parts::of(view.fields());
        self.operation = Operation::of(&view, &parts);
        let state = &context.shared.aerospike;
        let writes = view.header().info2.contains(Info2::WRITE);
        self.class = self.operation.class(writes);
        if !state.blocked.is_empty() && state.blocks(self.operation.name()) {
            context.limited.blocked = true;
            return match self.operation {
                Operation::Batch => put_header_only(out, &last(ResultCode::Forbidden)),
                _ => put_error(ResultCode::Forbidden, out),
            };
        }
        let sizes = state.sizes.as_ref();
        if self.operation == Operation::Batch {
            let mut runner = Runner {
                now,
                worker: context.worker,
                source: Source::BatchRow,
                scratch: &mut self.scratch,
                sizes,
                out_of_memory: 0,
            };
            self.class = batch::answer(state, &parts, &mut runner, out);
            context.limited.out_of_memory += runner.out_of_memory;
        } else {
            let Some(namespace) = parts.namespace.and_then(|name| state.namespace(name)) else {
                return put_error(ResultCode::Namespace, out);
            };
            let Some(digest) = parts.digest else {
                return put_error(ResultCode::Unsupported, out);
            };
            let Ok(digest) = <&Digest>::try_from(digest) else {
                return put_error(ResultCode::Parameter, out);
            };
            self.digest_at = place_of(digest, frame);
            let request = Request::of_message(&view, &parts, digest);
            let mut runner = Runner {
                now,
                worker: context.worker,
                source: Source::Client,
                scratch: &mut self.scratch,
                sizes,
                out_of_memory: 0,
            };
            put_frame(out, |out| runner.run(namespace, &request, out));
            context.limited.out_of_memory += runner.out_of_memory;
        }
        self.scratch.shrink(KEEP_SCRATCH);
    }
}

/// Where in `frame` the digest lies that was borrowed from it.
fn place_of(digest: &Digest, frame: &[u8]) -> Range<usize> {
    let at = digest.as_ptr().addr() - frame.as_ptr().addr();
    at..at + digest.len()
}

/// Executes record operations of one message.
struct Runner<'a> {
    now: Moment,
    worker: usize,
    source: Source,
    scratch: &'a mut Bins,
    sizes: Option<&'a Sizes>,
    /// Writes that were refused because the namespace is full.
    out_of_memory: u64,
}

impl Runner<'_> {
    /// Executes one operation, appends what its answer holds and counts it.
    #[inline]
    fn run(&mut self, namespace: &Namespace, request: &Request<'_>, out: &mut BytesMut) -> Outcome {
        let now = self.now;
        let deletes = request.info2.contains(Info2::DELETE);
        let work = match (request.udf.is_some(), request.writes(), deletes) {
            (true, _, _) => Work::Udf,
            (_, false, _) => Work::Read,
            (_, true, true) => Work::Delete,
            (_, true, false) => Work::Write,
        };
        let checked = request.check().and_then(|()| self.measure(request));
        let outcome = match (checked, work, request.udf) {
            (Err(code), _, _) => Outcome::bare(code),
            (_, _, Some(udf)) => remove::call_function(namespace, request, udf, now, out),
            (_, Work::Read, _) => read::read(namespace, request, now, out),
            (_, Work::Delete, _) => remove::remove(namespace, request, now),
            _ if namespace.stops_writes() => Outcome::bare(ResultCode::OutOfSpace),
            _ => write::write(namespace, request, now, self.scratch, out),
        };
        self.out_of_memory += u64::from(outcome.result == ResultCode::OutOfSpace);
        let tally = namespace.tally();
        tally.count(self.worker, self.source, work, outcome.result);
        outcome
    }
}

impl Runner<'_> {
    /// Whether key and number of operations are within their limits.
    #[inline]
    fn measure(&self, request: &Request<'_>) -> Result<(), ResultCode> {
        let Some(sizes) = self.sizes else {
            return Ok(());
        };
        // In front of a key stands its type.
        let key = request.key.map_or(0, |key| key.len().saturating_sub(1));
        let excess: Option<Excess> = sizes
            .exceeded(SizeKind::Key, key)
            .or_else(|| sizes.exceeded(SizeKind::Arguments, usize::from(request.n_ops)));
        excess.map_or(Ok(()), |excess| Err(excess.kind.code()))
    }
}

/// Writes an answer that is a result code alone.
fn put_error(code: ResultCode, out: &mut BytesMut) {
    put_header_only(out, &MessageHeader::answer(code));
}
