//! The worker: the load of one thread as a state machine.
//!
//! ```text
//!  Setup --all connections up--> Ready --begin--> Running --nothing due, nothing in flight--> Finished
//!    |                                              |
//!    +--no connection, login refused--> Finished <--+--all connections given up, cut off
//! ```
//!
//! While it runs, the worker matches what is due (the schedule, then operations that wait for
//! their node or for another attempt) with free slots of connections. Connections with a free
//! slot stand in a queue, first come first served, and go to its end with each request they take:
//! the choice is deterministic and spreads an open loop evenly. What is due while no slot is free
//! needs no storage: the schedule simply stays where it is, and the intended moment is kept.
//!
//! Deadlines (time-outs, tends) are not kept in a heap: the worker knows a moment not later than
//! the earliest of them, and looks through its connections when that moment comes. Connections to be
//! made or renewed have a timetable, because in a ramp-up nearly every moment belongs to another.

mod connection;
mod dispatch;
mod lifecycle;
mod links;
mod replies;
mod retry;
#[cfg(test)]
mod tests;
mod timetable;
mod tls;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use kvlab_timing::Stamp;

use self::connection::{Conn, Flight};
use self::retry::Delayed;
use self::timetable::Timetable;
use super::RunError;
use super::recorder::{Part, Recorder};
use crate::driver::{Driver, GroupId, Plan};
use crate::keyspace::{KeySpace, Share};
use crate::record::{ClientRow, ConnectRow, ConnectionLoss, Outcomes, RowKind, Tally};
use crate::schedule::{self, Schedule};
use crate::settings::{
    Address, Backoff, Clients, ConnectSettings, FailureLog, Load, PipelineMode, Retry, Settings,
    Staircase,
};
use crate::values::ValueBlock;
use crate::workload::Workload;

pub(crate) use self::connection::NAMELESS;
pub use self::connection::{Arrival, ConnId};

/// What a worker wants done. After each `handle_*` call the shell takes actions until there are
/// none left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Connect, and answer with `handle_connected` or `handle_closed`.
    Connect {
        /// The connection to make.
        conn: ConnId,
        /// Where to.
        address: Address,
    },
    /// Write the connection's [`Worker::output`], and say so with [`Worker::written`].
    Flush {
        /// On which connection.
        conn: ConnId,
    },
    /// Close the socket; the worker has forgotten it already.
    Close {
        /// Which connection.
        conn: ConnId,
    },
}

/// The load of one thread.
pub struct Worker<D: Driver> {
    driver: D,
    config: Config,
    share: Share,
    keys: KeySpace,
    block: ValueBlock,
    workload: Workload,
    schedule: Schedule,
    /// The measured part, while the warm-up runs.
    measured: Option<(Schedule, Workload)>,
    /// What the schedule's requests are.
    kind: RowKind,
    conns: Vec<Conn<D::Session>>,
    /// Places of connections of removed groups.
    vacant: Vec<usize>,
    groups: Vec<Group>,
    /// Operations whose route is not known.
    homeless: VecDeque<Pending>,
    /// Operations in `homeless` and in all groups' `waiting`.
    waiting: usize,
    /// Operations that wait for the moment to be sent again, by that moment and in their order.
    delayed: BTreeMap<(Stamp, u64), Delayed>,
    /// Operations taken from the schedule and not ended.
    in_play: usize,
    actions: VecDeque<Action>,
    parts: VecDeque<Part>,
    recorder: Recorder,
    stage: Stage,
    timeline: Timeline,
    /// The schedule has nothing more.
    over: bool,
    /// Nothing is sent any more.
    closing: bool,
    /// When to finish even with requests in flight.
    cut_off: Stamp,
    /// When the next request is due, if a slot is free for it; else [`Stamp::MAX`].
    next_due: Stamp,
    /// Not later than the earliest deadline of any connection.
    next_check: Stamp,
    /// When the tend is due that a redirection or a loss asked for.
    tend_wanted: Stamp,
    /// Connections to be made or renewed.
    timetable: Timetable,
    /// Not later than the first entry of the timetable, the next step and the next moment at which
    /// a request is sent again.
    next_plan: Stamp,
    /// Until when the plan of the ramp-up goes.
    ramp_end: Stamp,
    /// Load connections of each node that are wanted at present: all, or those of the steps so far.
    lanes: u32,
    /// Steps of the staircase that were taken.
    steps: u64,
    /// When the next one is due.
    next_step: Stamp,
    /// Places of load connections.
    loads: u64,
    ready_loads: u64,
    connections_at_start: u64,
    /// Load connections that were to be up when the load began, those of later steps among them.
    connections_wanted: u64,
    interrupted: bool,
    last_error: Option<(Address, String)>,
    /// The last words with which a handshake was refused.
    refusal: Option<(Address, String)>,
    setup: Setup,
    /// What ends the run if no thread has a connection.
    hopeless: Option<RunError>,
    /// Whether any server ever sent a byte.
    heard: bool,
    failure: Option<RunError>,
    loss: Option<ConnectionLoss>,
}

/// What stays the same during a run.
#[derive(Clone, Debug)]
struct Config {
    depth: usize,
    batch: bool,
    /// Operations in play at most, in a closed loop.
    tokens: usize,
    load: Load,
    seed: u64,
    requests: Option<u64>,
    duration_ns: Option<u64>,
    warmup_ns: u64,
    drain_ns: u64,
    timeout_ns: u64,
    /// Bound of one attempt to connect.
    connect_ns: u64,
    /// Bound of the set-up.
    setup_ns: u64,
    interval_ns: u64,
    backoff: Backoff,
    connects: ConnectSettings,
    /// Each connection has its own share of the requests.
    separate: bool,
    /// The rate is that of the connections to one node.
    rate_of_each_node: bool,
    retry: Option<Retry>,
    failures: Option<FailureLog>,
    staircase: Option<Staircase>,
    /// Connections of all threads.
    all_connections: u32,
    threads: u32,
}

/// The connections to one node.
#[derive(Debug, Default)]
struct Group {
    /// Where its pool of load connections goes, if it has one.
    pool: Option<Address>,
    /// Load connections with a free slot, in the order in which they get requests.
    free: VecDeque<usize>,
    /// Load connections that are up.
    ready: u32,
    /// Operations that wait for a slot of this group.
    waiting: VecDeque<Pending>,
}

/// An operation that waits for its node or for another attempt.
#[derive(Clone, Copy, Debug)]
struct Pending {
    plan: Plan,
    intended: Stamp,
    kind: RowKind,
    attempt: u16,
    /// Redirections so far, and where it has to go by the last of them.
    redirects: u8,
    ask: Option<GroupId>,
    /// When it was first sent, where a redirection sent it on or it is sent again.
    first_sent: Stamp,
    /// The earliest moment at which it could be sent if a slot was free: its intended moment, or,
    /// when a connection gave it back, the moment of that.
    ready: Stamp,
    since: Stamp,
}

impl Pending {
    /// One that was on a connection, to be sent again; `again` says that the settings want requests
    /// sent again that failed.
    fn again(flight: &Flight, now: Stamp, again: bool) -> Self {
        Self {
            plan: flight.plan,
            intended: flight.intended,
            kind: flight.kind,
            attempt: flight.attempt,
            redirects: flight.redirects,
            ask: None,
            first_sent: flight.first_sent(again),
            ready: now,
            since: now,
        }
    }
}

/// The moments of the set-up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) begun: Stamp,
    /// When the last load connection came up, if all did before the load began.
    pub(crate) all_up: Option<Stamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Setup { deadline: Stamp },
    Ready,
    Running,
    Finished,
}

/// The moments of a run, and the running interval.
#[derive(Clone, Copy, Debug)]
struct Timeline {
    start: Stamp,
    /// Start of the measured part.
    measure: Stamp,
    /// End of the measured part; [`Stamp::MAX`] when only a number of requests ends it.
    end: Stamp,
    interval_ns: u64,
    index: u64,
    begin: Stamp,
    next_cut: Stamp,
}

/// What a worker leaves behind.
#[derive(Debug)]
pub(crate) struct Remains {
    pub(crate) share: Share,
    pub(crate) due: u64,
    pub(crate) late_warmup: Outcomes,
    pub(crate) started: Stamp,
    pub(crate) first: Option<Stamp>,
    pub(crate) last: Option<Stamp>,
    pub(crate) sequence_hash: u64,
    /// Load connections that were wanted.
    pub(crate) connections_wanted: u64,
    /// Those of them that came up: all that were up when the load began, and those of later steps.
    pub(crate) connections_at_start: u64,
    pub(crate) interrupted: bool,
    pub(crate) failure: Option<RunError>,
    pub(crate) loss: Option<ConnectionLoss>,
    pub(crate) rows: Vec<ClientRow>,
    pub(crate) connects: Vec<ConnectRow>,
    pub(crate) setup: Setup,
}

impl<D: Driver> Worker<D> {
    /// A worker that begins to set up at `now`: its first actions are waiting.
    #[must_use]
    pub fn new(
        settings: &Settings,
        driver: D,
        share: Share,
        block: ValueBlock,
        now: Stamp,
    ) -> Self {
        let config = Config::new(settings, share, D::ROUTES_BY_KEY);
        let classes = settings.target.classes().len();
        let rows = settings.record_rows.then(|| rows_expected(settings, share));
        let mut worker = Self {
            driver,
            share,
            keys: KeySpace::new(&settings.keys).named(settings.target.names()),
            workload: Workload::new(settings, share, 0, &block),
            schedule: config.schedule(share, (now, now), 0),
            measured: None,
            kind: RowKind::Load,
            conns: Vec::new(),
            vacant: Vec::new(),
            groups: Vec::new(),
            homeless: VecDeque::new(),
            waiting: 0,
            delayed: BTreeMap::new(),
            in_play: 0,
            actions: VecDeque::with_capacity(4 * usize_of(share.connections)),
            parts: VecDeque::new(),
            recorder: Recorder::new(
                classes,
                config.load.is_open(),
                rows,
                usize_of(share.connections),
            ),
            stage: Stage::Setup {
                deadline: now.add_nanos(config.setup_ns),
            },
            timeline: Timeline::new(now, config.interval_ns),
            over: false,
            closing: false,
            cut_off: Stamp::MAX,
            next_due: Stamp::MAX,
            next_check: Stamp::MAX,
            tend_wanted: Stamp::ZERO,
            timetable: Timetable::default(),
            next_plan: Stamp::MAX,
            ramp_end: now,
            lanes: config.lanes(share, 0),
            steps: 0,
            next_step: Stamp::MAX,
            loads: 0,
            ready_loads: 0,
            connections_at_start: 0,
            connections_wanted: config.lanes(share, 0).into(),
            interrupted: false,
            last_error: None,
            refusal: None,
            setup: Setup {
                begun: now,
                all_up: None,
            },
            hopeless: None,
            heard: false,
            failure: None,
            loss: None,
            block,
            config,
        };
        if worker.config.warmup_ns > 0 {
            let warmup = Workload::new(settings, share, 1, &worker.block);
            let measured = std::mem::replace(&mut worker.workload, warmup);
            // The schedule of the measured part is made when the start is known.
            worker.measured = Some((worker.schedule.clone(), measured));
        }
        worker.apply_topology(now);
        worker
    }

    /// The next thing to do.
    #[inline]
    pub fn poll_action(&mut self) -> Option<Action> {
        let action = self.actions.pop_front()?;
        if let Action::Flush { conn } = action {
            // A connection that was closed since has no output, which the shell finds by itself.
            if let Some(place) = self.place(conn) {
                self.conns[place].flush_queued = false;
            }
        }
        Some(action)
    }

    /// The bytes to write on a connection.
    #[inline]
    #[must_use]
    pub fn output(&self, conn: ConnId) -> &[u8] {
        match self.place(conn) {
            Some(place) => {
                let conn = &self.conns[place];
                conn.out.get(conn.out_start..).unwrap_or_default()
            }
            None => &[],
        }
    }

    /// `n` more bytes of the output were written by a call that began at `t1`.
    #[inline]
    pub fn written(&mut self, conn: ConnId, n: usize, t1: Stamp) {
        let Some(place) = self.place(conn) else {
            return;
        };
        let again = self.config.retry.is_some();
        let recorder = &mut self.recorder;
        recorder.tally.bytes_out += n as u64;
        self.conns[place].written(n, |flight| {
            flight.sent = t1;
            if flight.intended == Stamp::MAX {
                flight.intended = t1;
            }
            if flight.attempt > 0 && again {
                recorder.sent_again(flight.kind);
            } else if flight.is_load() {
                // What a redirection took is no delay of the client.
                let possible = if flight.redirects > 0 {
                    t1
                } else {
                    flight.possible
                };
                recorder.sent(flight.kind, flight.intended, possible, t1);
            }
        });
        self.watch(t1.add_nanos(self.config.timeout_ns));
    }

    /// When [`Self::handle_timeout`] wants to be called, if nothing else happens before.
    #[inline]
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Stamp> {
        let moment = match self.stage {
            Stage::Setup { deadline } => deadline.min(self.next_check).min(self.next_plan),
            Stage::Ready => self.next_check.min(self.next_plan),
            Stage::Running => self
                .next_due
                .min(self.next_check)
                .min(self.next_plan)
                .min(self.timeline.next_cut)
                .min(self.cut_off)
                .min(self.drain_end()),
            Stage::Finished => return None,
        };
        (moment != Stamp::MAX).then_some(moment)
    }

    /// Whether set-up is over and [`Self::begin`] is awaited. It may be over without any connection
    /// of this thread, which goes on trying; where no thread has one, [`Self::stop`] ends the run and
    /// leaves the reason.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    /// Whether there is nothing left to do.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.stage == Stage::Finished
    }

    /// Load connections that are up.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.ready_loads
    }

    /// A finished interval, oldest first.
    pub(crate) fn poll_part(&mut self) -> Option<Part> {
        self.parts.pop_front()
    }

    /// Gives the emptied tally of a part back for use in a later one.
    pub(crate) fn recycle(&mut self, tally: Tally) {
        self.recorder.recycle(tally);
    }

    /// What is left when the worker is finished.
    pub(crate) fn into_remains(self) -> Remains {
        Remains {
            share: self.share,
            due: self.recorder.due,
            late_warmup: self.recorder.late_warmup,
            started: self.timeline.measure,
            first: self.recorder.first,
            last: self.recorder.last,
            // If the warm-up never ended, nothing was drawn from the measured workload.
            sequence_hash: match &self.measured {
                Some((_, measured)) => measured.hash(),
                None => self.workload.hash(),
            },
            connections_wanted: self.connections_wanted,
            connections_at_start: self.connections_at_start,
            interrupted: self.interrupted,
            failure: self.failure,
            loss: self.loss,
            rows: self.recorder.rows.unwrap_or_default(),
            connects: self.recorder.connects,
            setup: self.setup,
        }
    }

    /// The place of a connection, unless the id is of an earlier socket.
    #[inline]
    fn place(&self, id: ConnId) -> Option<usize> {
        let place = usize_of(id.place);
        (self.conns.get(place)?.id == id).then_some(place)
    }

    /// Something has to be looked at by this moment.
    #[inline]
    fn watch(&mut self, deadline: Stamp) {
        self.next_check = self.next_check.min(deadline);
    }

    /// When what is due and not sent is given up.
    fn drain_end(&self) -> Stamp {
        if self.closing {
            Stamp::MAX
        } else {
            self.timeline.end.add_nanos(self.config.drain_ns)
        }
    }

    /// Queues the connection's output for writing.
    #[inline]
    fn flush(&mut self, place: usize) {
        let conn = &mut self.conns[place];
        if !conn.flush_queued {
            conn.flush_queued = true;
            self.actions.push_back(Action::Flush { conn: conn.id });
        }
    }
}

impl<D: Driver> fmt::Debug for Worker<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("share", &self.share)
            .field("stage", &self.stage)
            .field("in_play", &self.in_play)
            .field("connections", &self.ready_loads)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// `routed`: the key decides the connection, so no connection has requests of its own.
    fn new(settings: &Settings, share: Share, routed: bool) -> Self {
        let depth = usize_of(settings.pipeline.depth.get());
        Self {
            depth,
            batch: settings.pipeline.mode == PipelineMode::Batch,
            tokens: depth
                * usize_of(match &settings.staircase {
                    Some(stairs) => stairs.connections(0, share.connections),
                    None => share.connections,
                }),
            load: settings.load,
            seed: settings.seed,
            requests: settings.stop.requests,
            duration_ns: settings.stop.duration.map(nanos),
            warmup_ns: nanos(settings.warmup),
            drain_ns: nanos(settings.drain),
            timeout_ns: nanos(settings.timeout),
            connect_ns: nanos(settings.connect_timeout),
            setup_ns: nanos(settings.setup_limit()),
            interval_ns: nanos(settings.interval),
            backoff: settings.backoff,
            connects: settings.connects,
            rate_of_each_node: settings.rate_of_each_node,
            separate: settings.clients != Clients::Pooled && !routed,
            retry: settings.retry,
            failures: settings.failures.clone(),
            staircase: settings.staircase,
            all_connections: share.all_connections,
            threads: share.threads,
        }
    }

    /// Load connections of a thread to each node after so many steps.
    fn lanes(&self, share: Share, steps: u64) -> u32 {
        match &self.staircase {
            Some(stairs) => stairs.connections(steps, share.connections),
            None => share.connections,
        }
    }

    /// Requests of the measured part that are up to one of the connections alone.
    fn quota(&self, share: Share, lane: u32) -> u64 {
        match self.requests {
            Some(all) if self.separate => {
                let own = schedule::share_of(all, share.thread.into(), share.threads.into());
                schedule::share_of(own, lane.into(), share.connections.into())
            }
            _ => u64::MAX,
        }
    }

    /// The schedule of the measured part (0) or the warm-up (1).
    fn schedule(&self, share: Share, span: (Stamp, Stamp), part: u64) -> Schedule {
        let requests = if part == 0 { self.requests } else { None };
        let Some(stairs) = &self.staircase else {
            return Schedule::new(self.load, share, span, requests, (self.seed, part));
        };
        // Checked with the settings; the rate of all is what there is otherwise.
        let load_after = |steps| {
            let load = stairs.load(self.load, steps, self.all_connections, self.threads);
            load.unwrap_or(self.load)
        };
        let schedule = Schedule::new(load_after(0), share, span, requests, (self.seed, part));
        if part != 0 {
            return schedule;
        }
        let most = self.all_connections.div_ceil(self.threads);
        schedule.with_steps((1..=stairs.steps(most)).filter_map(|steps| {
            let moment = span.0.add_nanos(nanos(stairs.length).saturating_mul(steps));
            match load_after(steps) {
                Load::Open { rate, .. } => Some((moment, rate)),
                Load::Closed => None,
            }
        }))
    }

    /// When a step is due, by the start of the measured part.
    fn step_due(&self, measure: Stamp, steps: u64) -> Stamp {
        let Some(stairs) = &self.staircase else {
            return Stamp::MAX;
        };
        measure.add_nanos(nanos(stairs.length).saturating_mul(steps))
    }
}

/// Rows to make room for: what the schedule or the number of requests asks for, within a bound;
/// more is possible, at the price of a copy in the middle of the run.
fn rows_expected(settings: &Settings, share: Share) -> usize {
    let seconds = (settings.stop.duration.unwrap_or_default() + settings.warmup).as_secs_f64();
    let scheduled = match settings.load {
        Load::Open { rate, .. } => rate.as_f64() * seconds,
        Load::Closed => 50_000.0 * seconds,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates and the number is an estimate"
    )]
    let scheduled = scheduled as u64;
    let all = settings
        .stop
        .requests
        .map_or(scheduled, |requests| requests.min(scheduled.max(1)));
    let mine = all / u64::from(share.threads) + 1024;
    usize::try_from(mine)
        .unwrap_or(usize::MAX)
        .min(MAX_ROWS_RESERVED)
}

const MAX_ROWS_RESERVED: usize = 4_000_000;

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Lossless: the targets have pointers of at least 32 bits.
fn usize_of(number: u32) -> usize {
    number as usize
}
