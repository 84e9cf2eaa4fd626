//! What a node says about its cluster: it is alone and owns every partition.

use std::net::IpAddr;

use bytes::BytesMut;
use kvlab_protocol::aerospike::info::{
    Host, NamespaceReplicas, PartitionBitmap, Peers, Replicas, Services, put_replicas_all,
    put_replicas_master,
};

use super::Scene;

/// The port that peers without one are reached at; servers always write this one.
const DEFAULT_PORT: u16 = 3000;

/// The address under which the client has reached this node: the one it can reach it at again.
pub(super) fn put_service(scene: &Scene<'_>, out: &mut BytesMut) {
    let local = scene.context.client.local;
    let addresses = scene.context.shared.addresses.get();
    if addresses.is_some_and(|addresses| addresses.is_tls(local)) {
        // Plain, it is reached at its plain port; where that is not open, nowhere.
        let plain = addresses.and_then(|addresses| addresses.aerospike.or(addresses.shared));
        put_host(local.ip(), plain.map(|address| address.port()), out);
    } else {
        put_host(local.ip(), Some(local.port()), out);
    }
}

/// Whether there is a port for clients that speak TLS.
pub(super) fn has_tls(scene: &Scene<'_>) -> bool {
    tls_port(scene).is_some()
}

/// The address for clients that speak TLS.
pub(super) fn put_tls_service(scene: &Scene<'_>, out: &mut BytesMut) {
    put_host(scene.context.client.local.ip(), tls_port(scene), out);
}

fn tls_port(scene: &Scene<'_>) -> Option<u16> {
    let addresses = scene.context.shared.addresses.get()?;
    let address = addresses.aerospike_tls.or(addresses.shared_tls)?;
    Some(address.port())
}

fn put_host(ip: IpAddr, port: Option<u16>, out: &mut BytesMut) {
    let host = port.map(|port| Host {
        name: ip.to_canonical().to_string(),
        port: Some(port),
    });
    let hosts = host.into_iter().collect();
    Services { hosts }.put(out);
}

/// The list of other nodes.
pub(super) fn put_peers(out: &mut BytesMut) {
    let peers = Peers {
        generation: 0,
        default_port: Some(DEFAULT_PORT),
        peers: Vec::new(),
    };
    peers.put(out);
}

/// The partition map: one copy, all of it here.
pub(super) fn replicas(scene: &Scene<'_>) -> Replicas {
    let namespaces = scene.context.shared.aerospike.namespaces().iter();
    Replicas {
        namespaces: namespaces
            .map(|namespace| NamespaceReplicas {
                namespace: namespace.name().to_owned(),
                regime: 0,
                columns: vec![PartitionBitmap::FULL],
            })
            .collect(),
    }
}

/// The partition map for older clients.
pub(super) fn put_all(scene: &Scene<'_>, out: &mut BytesMut) {
    put_replicas_all(&replicas(scene), out);
}

/// The master column for older clients.
pub(super) fn put_master(scene: &Scene<'_>, out: &mut BytesMut) {
    put_replicas_master(&replicas(scene), out);
}
