//! Memory follows the bytes that arrived, never the lengths that were announced; and once warm, the hot path
//! does not allocate at all.
//!
//! A program of its own, with one test, as the counters are those of the whole process.

// A test that unwraps or indexes wrongly fails, as it should.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::alloc::System;

use bytes::BytesMut;
use kvlab_protocol::resp::request::Template;
use kvlab_protocol::resp::{
    DoubleStyle, ReplyDecoder, ReplySkimmer, ReplyWriter, RequestDecoder, RequestLimits, Version,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn memory_follows_what_arrived() {
    announced_lengths_allocate_nothing();
    many_small_elements_cost_a_fixed_factor();
    warm_hot_path_does_not_allocate();
}

/// Runs `work` and gives the number of allocations and the bytes asked for.
fn count(work: impl FnOnce()) -> (usize, usize) {
    let region = Region::new(ALLOCATOR);
    work();
    let change = region.change();
    let grown = usize::try_from(change.bytes_reallocated).unwrap_or(0);
    (
        change.allocations + change.reallocations,
        change.bytes_allocated + grown,
    )
}

fn announced_lengths_allocate_nothing() {
    let limits = RequestLimits::default();
    for request in [
        &b"*2147483647\r\n"[..],
        b"*1\r\n$536870912\r\n",
        b"*1048576\r\n$500000000\r\nab",
    ] {
        let (count, _) = count(|| {
            let mut decoder = RequestDecoder::new();
            assert_eq!(decoder.decode(request, &limits), Ok(None));
        });
        assert_eq!(count, 0, "{}", request.escape_ascii());
    }
    for reply in [
        &b"*268435456\r\n"[..],
        b"$536870912\r\nab",
        b"%1000000\r\n~1000000\r\n",
        b"=9999\r\n",
    ] {
        let (_, bytes) = count(|| {
            assert_eq!(ReplyDecoder::new().decode(reply), Ok(None));
        });
        // The stack of open aggregates.
        assert!(bytes <= 256, "{bytes} bytes for {}", reply.escape_ascii());
    }
}

fn many_small_elements_cost_a_fixed_factor() {
    let elements = 10_000;
    let mut request = format!("*{elements}\r\n").into_bytes();
    request.extend(b"$0\r\n\r\n".repeat(elements));
    let (_, bytes) = count(|| {
        let mut decoder = RequestDecoder::new();
        let decoded = decoder.decode(&request, &RequestLimits::default());
        assert_eq!(decoded, Ok(Some(request.len())));
    });
    // 16 bytes for an argument of six, in a table that doubles as it grows.
    assert!(
        bytes <= request.len() * 11,
        "{bytes} bytes for {}",
        request.len()
    );

    let mut reply = format!("*{elements}\r\n").into_bytes();
    reply.extend(b"_\r\n".repeat(elements));
    let (_, bytes) = count(|| {
        assert!(ReplyDecoder::new().decode(&reply).unwrap().is_some());
    });
    assert!(
        bytes <= reply.len() * 24,
        "{bytes} bytes for {}",
        reply.len()
    );
}

fn warm_hot_path_does_not_allocate() {
    let template = Template::builder()
        .literal(b"SET")
        .key(b"key:", 10)
        .value(64)
        .build();
    let value = [b'v'; 64];
    let limits = RequestLimits::default();
    let (mut decoder, mut skimmer) = (RequestDecoder::new(), ReplySkimmer::new());
    let (mut requests, mut replies) =
        (BytesMut::with_capacity(8192), BytesMut::with_capacity(8192));
    let mut round = |number| {
        requests.clear();
        replies.clear();
        for _ in 0..16 {
            template.encode(number, &value, &mut requests);
        }
        requests.extend_from_slice(b"GET \"a\"\r\n");
        let mut pos = 0;
        while let Ok(Some(n)) = decoder.decode(&requests[pos..], &limits) {
            let args = decoder.args(&requests[pos..pos + n]);
            let mut reply = ReplyWriter::new(&mut replies, Version::Resp3, DoubleStyle::Shortest);
            reply.simple("OK");
            reply.bulk(args.arg(2));
            reply.integer(1_234_567);
            reply.double(0.1);
            reply.null();
            pos += n;
        }
        assert_eq!(pos, requests.len());
        let mut pos = 0;
        while let Ok(Some(skim)) = skimmer.skim(&replies[pos..]) {
            pos += skim.len;
        }
        assert_eq!(pos, replies.len());
    };
    round(1);
    let (count, _) = count(|| (2..100).for_each(&mut round));
    assert_eq!(count, 0);
}
