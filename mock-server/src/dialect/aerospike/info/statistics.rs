//! Statistics and settings: texts of `key=value` pairs as a real server writes them.
//!
//! The keys, their order and the settings were taken from a Community Edition 8.1 server and lie in
//! `texts/`; a value that begins with `$` is filled in here. Counters of features that do not exist
//! here stay zero.

use bytes::{BufMut, BytesMut};
use kvlab_protocol::aerospike::info::InfoRequest;
use kvlab_protocol::aerospike::limits::VOID_TIME_EPOCH_UNIX_S;
use kvlab_protocol::aerospike::result_code::ResultCode;

use super::{InfoError, Scene, index};
use crate::dialect::aerospike::{Namespace, Set};
use crate::exchange::Protocol;
use crate::shared::Shared;

const NAMESPACE: &str = include_str!("texts/namespace.txt");
const STATISTICS: &str = include_str!("texts/statistics.txt");
const SERVICE: &str = include_str!("texts/service.txt");
const NETWORK: &str = include_str!("texts/network.txt");
const LOG: &str = include_str!("texts/log.txt");

/// The first setting among the pairs of a namespace; statistics stand in front of it.
const FIRST_SETTING: &str = "active-rack=";

/// Appends the lines of a text joined by semicolons, values filled in by `fill`.
fn put_lines<'a>(
    lines: impl Iterator<Item = &'a str>,
    fill: impl Fn(&str) -> String,
    out: &mut BytesMut,
) {
    for (place, line) in lines.enumerate() {
        if place > 0 {
            out.put_u8(b';');
        }
        match line.split_once("=$") {
            Some((key, name)) => {
                out.put_slice(key.as_bytes());
                out.put_u8(b'=');
                out.put_slice(fill(name).as_bytes());
            }
            None => out.put_slice(line.as_bytes()),
        }
    }
}

/// `namespaces`.
pub(super) fn put_namespaces(scene: &Scene<'_>, out: &mut BytesMut) {
    for (place, namespace) in scene
        .context
        .shared
        .aerospike
        .namespaces()
        .iter()
        .enumerate()
    {
        if place > 0 {
            out.put_u8(b';');
        }
        out.put_slice(namespace.name().as_bytes());
    }
}

/// `namespace/N`.
pub(super) fn namespace(scene: &Scene<'_>, request: InfoRequest<'_>, out: &mut BytesMut) {
    let name = request.path().next().unwrap_or_default();
    match scene.context.shared.aerospike.namespace(name) {
        Some(namespace) => put_namespace(scene, namespace, NAMESPACE.lines(), out),
        None => out.put_slice(b"type=unknown"),
    }
}

fn put_namespace<'a>(
    scene: &Scene<'_>,
    namespace: &Namespace,
    lines: impl Iterator<Item = &'a str>,
    out: &mut BytesMut,
) {
    let objects = namespace.records().len() as u64;
    let fill = |name: &str| match name {
        "objects" => objects.to_string(),
        "current_time" => scene.now.seconds.to_string(),
        "non_expirable_objects" => non_expirable(scene, namespace).to_string(),
        "truncate_lut" => since_2010_ms(namespace.truncated_ns()).to_string(),
        // An entry of the primary index is 64 bytes.
        "index_used_bytes" => (objects * 64).to_string(),
        "data_used_bytes" => namespace.bytes().to_string(),
        "data_used_pct" => namespace.used_pct().to_string(),
        "data_avail_pct" => 100_u64.saturating_sub(namespace.used_pct()).to_string(),
        "data_total_bytes" => namespace.room().total.to_string(),
        "stop_writes" => namespace.stops_writes().to_string(),
        "stop_writes_pct" => namespace.room().stop_writes_pct.to_string(),
        "max_record_size" => namespace.room().record_max.to_string(),
        "default_ttl" => namespace.ttl().default_ttl.to_string(),
        "nsup_period" => namespace.ttl().nsup_period.to_string(),
        count => namespace.tally().get(count).unwrap_or(0).to_string(),
    };
    put_lines(lines, fill, out);
}

fn non_expirable(scene: &Scene<'_>, namespace: &Namespace) -> u64 {
    let mut count = 0;
    namespace.for_each(scene.now, |_, record| {
        count += u64::from(record.meta.void_time == 0);
    });
    count
}

/// A moment as servers show truncation times: milliseconds since 2010, 0 for never.
fn since_2010_ms(unix_ns: u64) -> u64 {
    (unix_ns / 1_000_000).saturating_sub(VOID_TIME_EPOCH_UNIX_S * 1000)
}

/// `sets`, `sets/N`, `sets/N/S`.
pub(super) fn sets(scene: &Scene<'_>, request: InfoRequest<'_>, out: &mut BytesMut) {
    let state = &scene.context.shared.aerospike;
    let mut path = request.path();
    let Some(name) = path.next() else {
        for namespace in state.namespaces() {
            put_sets(scene, namespace, out);
        }
        return;
    };
    let Some(namespace) = state.namespace(name) else {
        return out.put_slice(b"ns_type=unknown");
    };
    match path.next() {
        None => put_sets(scene, namespace, out),
        Some(set) => {
            if let Some(set) = namespace.sets().find(set) {
                put_set(scene, namespace, &set, out);
            }
        }
    }
}

fn put_sets(scene: &Scene<'_>, namespace: &Namespace, out: &mut BytesMut) {
    for set in namespace.sets().list() {
        out.put_slice(b"ns=");
        out.put_slice(namespace.name().as_bytes());
        out.put_slice(b":set=");
        out.put_slice(set.name());
        out.put_u8(b':');
        put_set(scene, namespace, &set, out);
    }
}

fn put_set(scene: &Scene<'_>, namespace: &Namespace, set: &Set, out: &mut BytesMut) {
    let line = format!(
        "objects={}:tombstones=0:data_used_bytes={}:truncate_lut={}:sindexes={}:\
         index_populating=false:truncating=false:default-read-touch-ttl-pct=0:default-ttl=0:\
         disable-eviction=false:enable-index=false:stop-writes-count=0:stop-writes-size=0;",
        set.objects(),
        set.bytes(),
        since_2010_ms(set.truncated_ns()),
        index::count(scene, namespace.name(), set.name()),
    );
    out.put_slice(line.as_bytes());
}

/// `statistics`.
pub(super) fn server(scene: &Scene<'_>, out: &mut BytesMut) {
    let shared = scene.context.shared;
    let connections = shared.gatekeeper.statistics(Protocol::Aerospike);
    let fill = |name: &str| match name {
        "cluster_key" => cluster_key(shared),
        "node" => shared.config.aerospike.node_name.clone(),
        "uptime" => {
            let now = scene.context.now.as_nanos();
            let up = now.saturating_sub(shared.started.as_nanos());
            (up / 1_000_000_000).to_string()
        }
        "objects" => {
            let namespaces = shared.aerospike.namespaces().iter();
            let objects: usize = namespaces.map(|namespace| namespace.records().len()).sum();
            objects.to_string()
        }
        "client_connections" => shared.gatekeeper.connected(Protocol::Aerospike).to_string(),
        "client_connections_opened" => connections.opened.to_string(),
        "client_connections_closed" => connections.closed.to_string(),
        _ => String::new(),
    };
    put_lines(STATISTICS.lines(), fill, out);
}

/// The number of the cluster's current state: drawn at random on a real server, here a function of
/// the seed, so that runs are alike.
pub(super) fn cluster_key(shared: &Shared) -> String {
    let mixed = (shared.config.seed ^ 0x93c4_1158_694c).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
    format!("{mixed:X}")
}

/// `get-config:context=C` and its older name.
pub(super) fn settings(
    scene: &Scene<'_>,
    request: InfoRequest<'_>,
    out: &mut BytesMut,
) -> Result<(), InfoError> {
    let shared = scene.context.shared;
    let config = &shared.config.aerospike;
    let port = scene.context.client.local.port();
    let fill = |name: &str| match name {
        "cluster_name" => config.cluster_name.clone(),
        "node" => config.node_name.clone(),
        "port" => port.to_string(),
        "address" => shared.config.bind.to_string(),
        "threads" => shared.config.workers.to_string(),
        "proto_fd_max" => shared.gatekeeper.cap(Protocol::Aerospike).to_string(),
        "proto_fd_idle_ms" => {
            let idle = shared.config.connections.idle.unwrap_or_default();
            idle.as_millis().to_string()
        }
        _ => String::new(),
    };
    match request.param(b"context").unwrap_or(b"service") {
        b"service" => put_lines(SERVICE.lines(), fill, out),
        b"network" => put_lines(NETWORK.lines(), fill, out),
        b"namespace" => {
            let id = request
                .param(b"id")
                .or_else(|| request.param(b"namespace"))
                .ok_or((ResultCode::Parameter, "missing 'id'"))?;
            let namespace = shared
                .aerospike
                .namespace(id)
                .ok_or((ResultCode::Namespace, "namespace not found on node"))?;
            let settings = NAMESPACE
                .lines()
                .skip_while(|line| !line.starts_with(FIRST_SETTING));
            put_namespace(scene, namespace, settings, out);
        }
        b"security" | b"xdr" => return Err((ResultCode::EnterpriseOnly, "enterprise only")),
        _ => return Err((ResultCode::Parameter, "invalid context")),
    }
    Ok(())
}

/// `log/0`: the levels of the one log.
pub(super) fn log(request: InfoRequest<'_>, out: &mut BytesMut) -> Result<(), InfoError> {
    match request.path().next() {
        Some(b"0") => {
            put_lines(LOG.lines(), |_| String::new(), out);
            Ok(())
        }
        _ => Err((ResultCode::Parameter, "unknown log")),
    }
}
