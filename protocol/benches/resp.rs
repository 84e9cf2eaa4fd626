//! Speed of the RESP codecs, per kind of frame and size of its payload.
//!
//! `cargo bench -p kvlab-protocol --bench resp`; names are `area/case/size`. Throughput is in bytes of frames.

use std::hint::black_box;

use bytes::BytesMut;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kvlab_protocol::resp::number::{DoubleStyle, LongDouble, double_text, parse_i64};
use kvlab_protocol::resp::request::{Template, encode_command};
use kvlab_protocol::resp::{
    ReplyDecoder, ReplySkimmer, ReplyWriter, RequestDecoder, RequestLimits, Version, slot,
};

const SIZES: [usize; 4] = [3, 64, 1024, 65_536];

/// Requests as they come in one read: `count` times the same.
fn pipelined(count: usize, args: &[&[u8]]) -> Vec<u8> {
    let mut out = BytesMut::new();
    for _ in 0..count {
        encode_command(args, &mut out);
    }
    out.to_vec()
}

fn requests(c: &mut Criterion) {
    let mut group = c.benchmark_group("resp_request");
    let mut decode = |case: &str, size: usize, wire: &[u8]| {
        group.throughput(Throughput::Bytes(wire.len() as u64));
        group.bench_with_input(BenchmarkId::new(case, size), wire, |bencher, wire| {
            let (mut decoder, limits) = (RequestDecoder::new(), RequestLimits::default());
            bencher.iter(|| {
                let mut rest = black_box(wire);
                while let Ok(Some(n)) = decoder.decode(rest, &limits) {
                    let (frame, tail) = rest.split_at(n);
                    black_box(decoder.args(frame).get(1));
                    rest = tail;
                }
            });
        });
    };
    decode("ping", 4, &pipelined(1, &[b"PING"]));
    decode("get", 16, &pipelined(1, &[b"GET", b"key:000000000042"]));
    for size in SIZES {
        let value = vec![b'v'; size];
        decode(
            "set",
            size,
            &pipelined(1, &[b"SET", b"key:000000000042", &value]),
        );
    }
    decode(
        "get_pipeline_16",
        16,
        &pipelined(16, &[b"GET", b"key:000000000042"]),
    );
    let set: [&[u8]; 3] = [b"SET", b"key:000000000042", b"xxx"];
    decode("set_pipeline_16", 3, &pipelined(16, &set));
    let many = vec![&b"key:000000000042"[..]; 101];
    decode("mget_100", 16, &pipelined(1, &many));
    decode("inline", 16, b"GET key:000000000042\r\n");
    group.finish();
}

/// Replies a load generator reads most.
fn reply_frames() -> Vec<(&'static str, usize, Vec<u8>)> {
    let mut frames = vec![
        ("ok", 2, b"+OK\r\n".to_vec()),
        ("nil", 0, b"$-1\r\n".to_vec()),
        ("integer", 7, b":1234567\r\n".to_vec()),
        (
            "error",
            29,
            b"-ERR value is not an integer or out of range\r\n".to_vec(),
        ),
    ];
    let bulk = |size: usize| {
        [
            format!("${size}\r\n").as_bytes(),
            &vec![b'v'; size],
            b"\r\n",
        ]
        .concat()
    };
    frames.extend(SIZES.map(|size| ("bulk", size, bulk(size))));
    frames.push((
        "array_100",
        64,
        [b"*100\r\n", &bulk(64).repeat(100)[..]].concat(),
    ));
    frames.push(("map_16", 8, [b"%16\r\n", &bulk(8).repeat(32)[..]].concat()));
    frames.push(("double", 18, b",1.1000000000000001\r\n".to_vec()));
    frames
}

fn replies(c: &mut Criterion) {
    for (area, full) in [("resp_skim", false), ("resp_decode", true)] {
        let mut group = c.benchmark_group(area);
        for (case, size, frame) in reply_frames() {
            group.throughput(Throughput::Bytes(frame.len() as u64));
            group.bench_with_input(BenchmarkId::new(case, size), &frame, |bencher, frame| {
                let (mut skimmer, mut decoder) = (ReplySkimmer::new(), ReplyDecoder::new());
                if full {
                    bencher.iter(|| decoder.decode(black_box(frame)));
                } else {
                    bencher.iter(|| skimmer.skim(black_box(frame)));
                }
            });
        }
        group.finish();
    }
}

/// Fills one output buffer per iteration with 16 replies or requests.
fn filling(
    c: &mut Criterion,
    area: &str,
    case: &str,
    size: usize,
    mut write: impl FnMut(&mut BytesMut),
) {
    let mut out = BytesMut::with_capacity(1 << 21);
    write(&mut out);
    let mut group = c.benchmark_group(area);
    group.throughput(Throughput::Bytes(16 * out.len() as u64));
    group.bench_function(BenchmarkId::new(case, size), |bencher| {
        bencher.iter(|| {
            out.clear();
            (0..16).for_each(|_| write(&mut out));
            black_box(&out);
        });
    });
    group.finish();
}

fn writers(c: &mut Criterion) {
    let mut reply = |case: &str, size: usize, write: &dyn Fn(&mut ReplyWriter<'_>)| {
        filling(c, "resp_write_16", case, size, |out| {
            write(&mut ReplyWriter::new(
                out,
                Version::Resp3,
                DoubleStyle::Shortest,
            ));
        });
    };
    reply("ok", 2, &|reply| reply.simple(black_box("OK")));
    reply("null", 0, &|reply| reply.null());
    reply("integer", 7, &|reply| reply.integer(black_box(1_234_567)));
    reply("double", 3, &|reply| reply.double(black_box(1.1)));
    for size in SIZES {
        let value = vec![b'v'; size];
        reply("bulk", size, &|reply| reply.bulk(black_box(&value)));
    }
    let get = Template::builder().literal(b"GET").key(b"key:", 12).build();
    filling(c, "resp_template_16", "get", 16, |out| {
        get.encode(black_box(42), b"", out)
    });
    for size in SIZES {
        let value = vec![b'v'; size];
        let set = Template::builder()
            .literal(b"SET")
            .key(b"key:", 12)
            .value(size)
            .build();
        filling(c, "resp_template_16", "set", size, |out| {
            set.encode(black_box(42), &value, out)
        });
    }
    let args: [&[u8]; 3] = [b"SET", b"key:000000000042", b"xxx"];
    filling(c, "resp_encode_16", "set", 3, |out| {
        encode_command(black_box(&args), out)
    });
}

fn numbers(c: &mut Criterion) {
    let mut group = c.benchmark_group("resp_number");
    group.bench_function("parse_i64/7", |b| {
        b.iter(|| parse_i64(black_box(b"1234567")))
    });
    for (case, style) in [
        ("shortest", DoubleStyle::Shortest),
        ("seventeen", DoubleStyle::SeventeenDigits),
    ] {
        group.bench_function(BenchmarkId::new(case, 8), |b| {
            b.iter(|| double_text(black_box(2625.718885), style));
        });
    }
    group.bench_function("incrbyfloat/5", |b| {
        b.iter(|| {
            let sum = LongDouble::parse(black_box(b"10.50"))?;
            Some(
                sum.checked_add(LongDouble::parse(black_box(b"0.1"))?)?
                    .human_text(),
            )
        });
    });
    group.bench_function("slot/16", |b| {
        b.iter(|| slot::of_key(black_box(b"key:000000000042")))
    });
    group.finish();
}

criterion_group!(benches, requests, replies, writers, numbers);
criterion_main!(benches);
