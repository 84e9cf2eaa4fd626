//! A run made by hand, whose every number can be checked with paper and pencil.
//!
//! All latencies are of the form 2^n - 1 ns: the highest value of their bucket in the histograms,
//! so that quantiles come out exactly.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use kvlab_timing::{Rate, Stamp, WallClock};

use super::Head;
use crate::host::Host;
use crate::limits::{FoundBucket, FoundCap, LimitForm, Limits, SynRetries};
use crate::record::{
    Cause, CauseCounts, ConnectTally, CurvePoint, ErrorKind, Interval, Latency, Notice, Outcomes,
    Phase, SetupSummary, Summary, Tally, ThreadLoad, ThreadSummary,
};
use crate::settings::{Arrivals, Load, Pipeline, PipelineMode, RedisTarget, Settings, Target};

/// 0.524 ms.
pub(super) const A: u64 = (1 << 19) - 1;
/// 1.049 ms.
pub(super) const B: u64 = (1 << 20) - 1;
/// 2.097 ms.
pub(super) const C: u64 = (1 << 21) - 1;
/// 4.194 ms.
pub(super) const D: u64 = (1 << 22) - 1;

/// 2024-01-01 00:00:00 UTC is 1 s before the measured part begins.
pub(super) fn wall() -> WallClock {
    WallClock::fixed(Stamp::ZERO, WallClock::VIRTUAL_EPOCH_NS)
}

pub(super) fn head() -> Head {
    let address: SocketAddr = "127.0.0.1:6379".parse().unwrap();
    let mut settings = Settings::new(Target::Redis(RedisTarget::new(address, 1, 10)));
    settings.threads = NonZeroU32::new(2).unwrap();
    settings.connections = NonZeroU32::new(10).unwrap();
    settings.pipeline = pipeline();
    settings.load = open();
    settings.stop.duration = Some(Duration::from_secs(10));
    settings.warmup = Duration::from_millis(500);
    settings.seed = 42;
    Head {
        program: "kvlab-bench 0.0.0".to_owned(),
        target: "redis://127.0.0.1:6379/0".to_owned(),
        settings,
        host: Host {
            kernel: Some("Linux 6.1.0".to_owned()),
            processor: Some("Example CPU".to_owned()),
            cores: 4,
            governor: None,
            clock_source: Some("tsc".to_owned()),
            load_1_minute: Some(0.5),
        },
        wall: wall(),
    }
}

pub(super) fn closed_head() -> Head {
    let mut head = head();
    head.settings.threads = NonZeroU32::MIN;
    head.settings.load = Load::Closed;
    if let Target::Redis(target) = &mut head.settings.target {
        target.operations.remove(0);
    }
    head
}

fn open() -> Load {
    Load::Open {
        rate: Rate::per_second(2_100).unwrap(),
        arrivals: Arrivals::Uniform,
    }
}

fn pipeline() -> Pipeline {
    Pipeline {
        depth: NonZeroU32::new(64).unwrap(),
        mode: PipelineMode::Window,
    }
}

fn latencies(samples: &[(u64, u64)]) -> Latency {
    let mut latency = Latency::default();
    for &(count, ns) in samples {
        for _ in 0..count {
            latency.record(ns);
        }
    }
    latency
}

/// Ten seconds of an open loop with SET and GET.
pub(super) fn open_loop() -> Summary {
    let mut tally = Tally::new(2);
    let set = &mut tally.classes[0];
    set.outcomes.hits = 1_000;
    set.service = latencies(&[(1_000, A)]);
    set.response = latencies(&[(1_000, B)]);
    let get = &mut tally.classes[1];
    get.outcomes = Outcomes {
        hits: 15_000,
        misses: 4_000,
        errors: 600,
        timeouts: 250,
        lost: 100,
        not_sent: 50,
    };
    get.errors.insert(ErrorKind::new(b"ERR"), 100);
    get.errors.insert(ErrorKind::new(b"WRONGTYPE"), 500);
    get.retries = 7;
    get.service = latencies(&[(18_900, A), (100, C)]);
    get.response = latencies(&[(18_900, B), (100, D)]);
    get.failed = latencies(&[(600, A)]);
    tally.lag = latencies(&[(20_950, 8_191)]);
    tally.lateness = latencies(&[(20_950, 4_095)]);
    tally.sent = 20_957;
    tally.bytes_out = 1_000_000;
    tally.bytes_in = 3_200_000;
    tally.control = 12;
    tally.pushes = 3;
    tally.connects = ConnectTally {
        established: 20,
        failed: 2,
        lost: 1,
        setup: latencies(&[(20, 131_071)]),
        tcp: latencies(&[(22, 65_535)]),
        login: latencies(&[(20, 65_535)]),
        first_reply: latencies(&[(20, A)]),
        causes: causes(),
        texts: [("ERR max number of clients reached".to_owned(), 2)].into(),
        unsolicited_bytes: 72,
        ..ConnectTally::default()
    };
    let thread = |share, due| ThreadSummary {
        connections: 5,
        due,
        cpu_share: Some(share),
        cpu: Some(Duration::from_secs_f64(share * 10.0)),
        spun: Some(Duration::ZERO),
    };
    Summary {
        load: open(),
        pipeline: pipeline(),
        classes: vec!["SET".to_owned(), "GET".to_owned()],
        started: seconds(1),
        first: Some(seconds(1)),
        last: Some(seconds(11)),
        due: 21_000,
        tally,
        warmup: Outcomes {
            hits: 100,
            ..Outcomes::default()
        },
        connections_wanted: 10,
        connections_at_start: 10,
        setup: SetupSummary {
            begun: Stamp::from_nanos(400_000_000),
            all_up: Some(Duration::from_millis(90)),
            curve: vec![point(0, 0, 10), point(45, 8, 2), point(90, 10, 0)],
        },
        limits: limits(),
        threads: vec![thread(0.28, 10_500), thread(0.75, 10_500)],
        sequence_hash: 0x0123_4567_89ab_cdef,
        interrupted: false,
        notices: vec![
            Notice::Busy {
                thread: 1,
                cpu_share: 0.75,
            },
            Notice::TimeoutsExcluded { count: 250 },
        ],
        certificate: None,
    }
}

fn causes() -> CauseCounts {
    let mut causes = CauseCounts::default();
    let line = Cause::ErrorLine(ErrorKind::new(b"ERR"));
    for cause in [line, line, Cause::ResetLater] {
        causes.count(cause);
    }
    causes
}

fn point(ms: u64, up: u64, connecting: u64) -> CurvePoint {
    CurvePoint {
        at: Duration::from_millis(ms),
        up,
        connecting,
    }
}

fn limits() -> Limits {
    Limits {
        bucket: Some(FoundBucket {
            burst: 8,
            per_second: 100.0,
            measured_burst: 8.125,
            measured_per_second: 99.5,
            form: LimitForm::Delay,
            evidence: 12,
        }),
        cap: Some(FoundCap {
            connections: 10,
            form: LimitForm::ErrorLine,
            evidence: 2,
        }),
        retries: SynRetries {
            counts: [3, 0, 1, 0, 0, 0, 0, 0, 0],
        },
        hung: 1,
    }
}

/// Half a second of a closed loop with GET alone, interrupted.
pub(super) fn closed_loop() -> Summary {
    let mut tally = Tally::new(1);
    tally.classes[0].outcomes.hits = 150;
    tally.classes[0].service = latencies(&[(150, A)]);
    tally.sent = 150;
    tally.bytes_out = 5_000;
    tally.bytes_in = 400;
    Summary {
        load: Load::Closed,
        classes: vec!["GET".to_owned()],
        last: Some(Stamp::from_nanos(1_500_000_000)),
        due: 150,
        tally,
        warmup: Outcomes::default(),
        threads: vec![ThreadSummary::default()],
        interrupted: true,
        notices: Vec::new(),
        setup: SetupSummary::default(),
        limits: Limits::default(),
        ..open_loop()
    }
}

/// A quarter of a second of warm-up and half a second of the measured part.
pub(super) fn intervals() -> [Interval; 2] {
    let mut tally = Tally::new(2);
    tally.classes[1].outcomes.hits = 100;
    tally.classes[1].service = latencies(&[(100, A)]);
    tally.classes[1].response = latencies(&[(100, A)]);
    let warmup = Interval {
        index: 0,
        phase: Phase::Warmup,
        begin: Stamp::from_nanos(750_000_000),
        end: seconds(1),
        elapsed: Duration::ZERO,
        tally,
        ended: 0,
        progress: 0.0,
        connections: 10,
        connecting: 0,
        in_flight: 1,
        backlog: 0,
        threads: Vec::new(),
    };
    let mut tally = Tally::new(2);
    tally.classes[1].outcomes = Outcomes {
        hits: 150,
        misses: 49,
        errors: 1,
        timeouts: 1,
        lost: 0,
        not_sent: 1,
    };
    tally.classes[1].retries = 4;
    tally.classes[1].service = latencies(&[(199, A)]);
    tally.classes[1].response = latencies(&[(199, C)]);
    tally.lag = latencies(&[(201, 8_191)]);
    tally.bytes_out = 10_000;
    tally.bytes_in = 20_000;
    let measured = Interval {
        index: 1,
        phase: Phase::Measured,
        begin: seconds(1),
        end: Stamp::from_nanos(1_500_000_000),
        elapsed: Duration::from_millis(500),
        tally,
        ended: 202,
        progress: 0.5,
        connections: 9,
        connecting: 1,
        in_flight: 3,
        backlog: 12,
        threads: vec![
            ThreadLoad {
                cpu_share: 0.25,
                spun_share: 0.0625,
            },
            ThreadLoad {
                cpu_share: 0.5,
                spun_share: 0.0,
            },
        ],
    };
    [warmup, measured]
}

fn seconds(seconds: u64) -> Stamp {
    Stamp::from_nanos(seconds * 1_000_000_000)
}
