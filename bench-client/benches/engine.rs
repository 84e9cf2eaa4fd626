//! What one request costs the client outside of the kernel: drawing an operation, encoding it,
//! finding its reply, recording it, and the whole worker without sockets.

use std::hint::black_box;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use bytes::BytesMut;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kvlab_bench_client::Settings;
use kvlab_bench_client::driver::redis::RedisDriver;
use kvlab_bench_client::driver::{Driver, GroupId, Operation, Role};
use kvlab_bench_client::engine::worker::{Action, ConnId, Worker};
use kvlab_bench_client::keyspace::{KeySpace, KeyStream, Share};
use kvlab_bench_client::random::{self, Use};
use kvlab_bench_client::record::Latency;
use kvlab_bench_client::settings::{
    KeyPattern, KeySettings, Pipeline, PipelineMode, RedisTarget, Stop, Target,
};
use kvlab_bench_client::values::ValueBlock;
use kvlab_bench_client::workload::Workload;
use kvlab_timing::Stamp;

const ALONE: Share = Share {
    thread: 0,
    threads: 1,
    first_connection: 0,
    connections: 1,
    all_connections: 1,
};

fn settings(set: u32, get: u32) -> Settings {
    let target = RedisTarget::new(([127, 0, 0, 1], 6379).into(), set, get);
    Settings {
        stop: Stop {
            duration: Some(Duration::from_secs(1_000_000)),
            requests: None,
        },
        keys: KeySettings {
            count: NonZeroU64::MIN.saturating_add(999_999),
            ..KeySettings::default()
        },
        ..Settings::new(Target::Redis(target))
    }
}

fn driver(settings: &Settings) -> RedisDriver {
    let Target::Redis(target) = &settings.target else {
        unreachable!("made above");
    };
    RedisDriver::new(target, &KeySpace::new(&settings.keys), &settings.values)
}

fn keys(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("keys");
    let patterns = [
        ("sequential", KeyPattern::Sequential),
        ("uniform", KeyPattern::Uniform),
        ("zipf", KeyPattern::Zipf { exponent: 0.99 }),
        (
            "gaussian",
            KeyPattern::Gaussian {
                mean: 0.5,
                deviation: 0.1,
            },
        ),
        (
            "hot-set",
            KeyPattern::HotSet {
                keys: 0.1,
                operations: 0.9,
            },
        ),
    ];
    for (name, pattern) in patterns {
        let rng = random::stream(1, 0, 0, Use::Keys(0));
        let mut stream = KeyStream::new(&settings(1, 1).keys, pattern, ALONE, rng);
        group.bench_function(name, |bencher| bencher.iter(|| stream.next_key(0)));
    }
    group.finish();
}

fn draw(criterion: &mut Criterion) {
    let settings = settings(1, 10);
    let block = ValueBlock::new(&settings.values, 1);
    let mut workload = Workload::new(&settings, ALONE, 0, &block);
    criterion.bench_function("workload/set-get-1-10", |bencher| {
        bencher.iter(|| workload.next_plan(0));
    });
}

fn record(criterion: &mut Criterion) {
    let mut latency = Latency::default();
    let mut rng = random::stream(1, 0, 0, Use::Values);
    let samples: Vec<u64> = (0..4096)
        .map(|_| random::below(&mut rng, 2_000_000))
        .collect();
    let mut place = 0;
    criterion.bench_function("record/latency", |bencher| {
        bencher.iter(|| {
            place = (place + 1) & 4095;
            latency.record(black_box(samples[place]));
        });
    });
}

fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    for (name, set, get) in [("get", 0, 1), ("set-32", 1, 0)] {
        let settings = settings(set, get);
        let mut driver = driver(&settings);
        let mut session = driver.open(GroupId(0), Role::Load);
        let block = ValueBlock::new(&settings.values, 1);
        let keys = KeySpace::new(&settings.keys);
        let plan = Workload::new(&settings, ALONE, 0, &block).next_plan(0);
        let mut out = BytesMut::with_capacity(4096);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                out.clear();
                let operation = Operation {
                    plan: &plan,
                    value: block.value(&plan),
                    keys: &keys,
                };
                driver.encode(black_box(&operation), &mut session, &mut out);
                out.len()
            });
        });
    }
    group.finish();
}

fn skim(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("skim");
    let bulk = format!("$32\r\n{}\r\n", "x".repeat(32));
    for (name, reply) in [("ok", "+OK\r\n"), ("nil", "$-1\r\n"), ("bulk-32", &bulk)] {
        let settings = settings(1, 1);
        let mut driver = driver(&settings);
        let mut session = driver.open(GroupId(0), Role::Load);
        let bytes = reply.repeat(64);
        group.throughput(Throughput::Elements(64));
        group.bench_function(BenchmarkId::new(name, 64), |bencher| {
            bencher.iter(|| {
                let mut rest = bytes.as_bytes();
                let mut replies = 0;
                while let Ok(Some(frame)) = driver.frame(&mut session, black_box(rest)) {
                    rest = &rest[frame.len..];
                    replies += 1;
                }
                replies
            });
        });
    }
    group.finish();
}

/// The whole worker: replies in, requests out, everything recorded.
fn worker(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("worker");
    for depth in [1_u32, 16] {
        let mut settings = settings(0, 1);
        settings.pipeline = Pipeline {
            depth: NonZeroU32::MIN.saturating_add(depth - 1),
            mode: PipelineMode::Window,
        };
        let block = ValueBlock::new(&settings.values, 1);
        let mut now = Stamp::ZERO;
        let mut worker = Worker::new(&settings, driver(&settings), ALONE, block, now);
        let conn = ConnId { place: 0, epoch: 0 };
        worker.handle_connected(now, conn, ([127, 0, 0, 1], 1).into(), 0);
        worker.begin(now, now);
        write_all(&mut worker, now);
        let replies = "$3\r\nabc\r\n".repeat(depth as usize);
        group.throughput(Throughput::Elements(u64::from(depth)));
        group.bench_function(BenchmarkId::new("get-window", depth), |bencher| {
            bencher.iter(|| {
                now = now.add_nanos(100);
                worker.handle_bytes(now.into(), conn, black_box(replies.as_bytes()));
                write_all(&mut worker, now)
            });
        });
    }
    group.finish();
}

fn write_all(worker: &mut Worker<RedisDriver>, now: Stamp) -> usize {
    let mut written = 0;
    while let Some(action) = worker.poll_action() {
        if let Action::Flush { conn } = action {
            let n = worker.output(conn).len();
            worker.written(conn, n, now);
            written += n;
        }
    }
    written
}

criterion_group!(benches, keys, draw, record, encode, skim, worker);
criterion_main!(benches);
