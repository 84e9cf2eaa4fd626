//! What a RESP command costs between the read and the write: found in the bytes, looked up, checked, run
//! on the store, answered.

use std::hint::black_box;

use bytes::BytesMut;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kvlab_mock_server::ServerConfig;
use kvlab_mock_server::dialect::redis::Connection;
use kvlab_mock_server::dialect::{Context, Listener};
use kvlab_mock_server::virtual_shell::VirtualServer;
use kvlab_timing::Stamp;

fn dispatch(criterion: &mut Criterion) {
    let now = Stamp::from_nanos(1_000_000_000);
    let mut server = VirtualServer::new(ServerConfig::default(), now);
    let id = server.accept(now, Listener::Redis, ([127, 0, 0, 1], 40_000).into());
    let shared = std::sync::Arc::clone(server.shared());
    let Some(client) = shared.clients.find(id) else {
        unreachable!("the client has just been accepted");
    };
    let value = "x".repeat(64);
    let pairs: Vec<_> = (0..10)
        .flat_map(|n| [format!("key:{n}"), value.clone()])
        .collect();
    let mut group = criterion.benchmark_group("redis_dispatch");
    group.throughput(Throughput::Elements(1));
    for (name, command) in [
        ("ping", vec!["PING".to_owned()]),
        ("get/64", vec!["GET".into(), "key:1".into()]),
        ("get/missing", vec!["GET".into(), "nosuch".into()]),
        ("set/64", vec!["SET".into(), "key:1".into(), value.clone()]),
        (
            "set/number",
            vec!["SET".into(), "number".into(), "12345".into()],
        ),
        ("incr", vec!["INCR".into(), "count".into()]),
        ("mset/10x64", [vec!["MSET".to_owned()], pairs].concat()),
    ] {
        let request = request(&command);
        let mut connection = Connection::new(&shared);
        let mut out = BytesMut::with_capacity(4096);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                out.clear();
                let frame = connection.decode(black_box(&request));
                let mut context = Context {
                    limited: Default::default(),
                    now,
                    worker: 0,
                    shared: &shared,
                    client: &client,
                };
                let flow = connection.execute(&request, &mut context, &mut out);
                black_box((frame.is_ok(), flow, out.len()))
            });
        });
    }
    group.finish();
}

fn request(command: &[String]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.len());
    for word in command {
        bytes += &format!("${}\r\n{word}\r\n", word.len());
    }
    bytes.into_bytes()
}

criterion_group!(benches, dispatch);
criterion_main!(benches);
