//! What is known of the cluster: its nodes, and which of them is the master of each partition.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use kvlab_protocol::aerospike::info::{PartitionBitmap, Peer};
use kvlab_protocol::aerospike::limits::PARTITIONS;

use crate::driver::{GroupId, Topology};

/// The nodes and the partition table.
#[derive(Debug)]
pub(super) struct Cluster {
    namespace: String,
    seeds: VecDeque<SocketAddr>,
    nodes: Vec<Node>,
    /// The group of each partition's master.
    masters: Box<[Option<GroupId>]>,
    changes: VecDeque<Topology>,
    /// Whether nodes are reached over TLS.
    tls: bool,
}

/// One node, known by the group of its connections.
#[derive(Debug)]
pub(super) struct Node {
    group: GroupId,
    address: SocketAddr,
    /// Its name, once it has told it, or the one it is expected to tell.
    pub(super) name: Option<String>,
    /// The name in its certificate, where a peer told it.
    tls_name: Option<String>,
    /// Whether it told its name and has a pool.
    pub(super) joined: bool,
    /// Names of its peers, as it told them last.
    peers: Vec<String>,
    pub(super) peers_generation: Option<i64>,
    pub(super) partition_generation: Option<i64>,
    failures: u32,
    removed: bool,
}

impl Cluster {
    /// A cluster of which only seeds are known.
    pub(super) fn new(namespace: &str, seeds: &[SocketAddr]) -> Self {
        let mut cluster = Self {
            namespace: namespace.to_owned(),
            seeds: seeds.iter().copied().collect(),
            nodes: Vec::new(),
            masters: vec![None; PARTITIONS].into(),
            changes: VecDeque::new(),
            tls: false,
        };
        cluster.try_seed();
        cluster
    }

    /// Has the nodes reached over TLS.
    pub(super) fn use_tls(&mut self) {
        self.tls = true;
    }

    /// The question for the peers of a node.
    pub(super) fn peers_question(&self) -> &'static str {
        if self.tls {
            "peers-tls-std"
        } else {
            "peers-clear-std"
        }
    }

    /// The namespace the load goes to.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The next change of the connections that are wanted.
    pub(super) fn poll_change(&mut self) -> Option<Topology> {
        self.changes.pop_front()
    }

    /// Whether every partition has a master.
    pub(super) fn is_complete(&self) -> bool {
        self.masters.iter().all(Option::is_some)
    }

    /// The group of the partition's master.
    pub(super) fn master(&self, partition: u16) -> Option<GroupId> {
        self.masters.get(usize::from(partition)).copied().flatten()
    }

    /// The node of a group.
    pub(super) fn node(&self, group: GroupId) -> Option<&Node> {
        self.nodes.get(usize::from(group.0))
    }

    /// The node of a group, to be changed.
    pub(super) fn node_mut(&mut self, group: GroupId) -> Option<&mut Node> {
        self.nodes.get_mut(usize::from(group.0))
    }

    /// The node at `group` has told its name; false if it is not the node it was taken for.
    pub(super) fn named(&mut self, group: GroupId, name: &str) -> bool {
        let twin = self
            .nodes
            .iter()
            .any(|node| node.group != group && !node.removed && node.name.as_deref() == Some(name));
        let Some(node) = self.node_mut(group) else {
            return false;
        };
        if twin
            || node
                .name
                .as_deref()
                .is_some_and(|expected| expected != name)
        {
            self.remove(group);
            return false;
        }
        node.name = Some(name.to_owned());
        node.failures = 0;
        if !node.joined {
            node.joined = true;
            let address = node.address.into();
            self.changes.push_back(Topology::Pool { group, address });
        }
        true
    }

    /// The node at `group` lists these peers: new ones are tended, and those that nobody lists any
    /// more and that do not answer are dropped.
    pub(super) fn listed(&mut self, group: GroupId, default_port: Option<u16>, peers: &[Peer]) {
        let peers: Vec<_> = peers
            .iter()
            .filter_map(|peer| {
                let tls_name = Some(peer.tls_name.clone()).filter(|name| !name.is_empty());
                Some((peer.node.clone(), address(peer, default_port)?, tls_name))
            })
            .collect();
        for (name, address, tls_name) in &peers {
            let known = self.nodes.iter().any(|node| {
                !node.removed && (node.name.as_deref() == Some(name) || node.address == *address)
            });
            if !known {
                self.add(*address, Some(name.clone()), tls_name.clone());
            }
        }
        if let Some(node) = self.node_mut(group) {
            node.peers = peers.into_iter().map(|(name, ..)| name).collect();
        }
        self.drop_lost();
    }

    /// The node at `group` owns these partitions as master.
    pub(super) fn owns(&mut self, group: GroupId, partitions: &PartitionBitmap) {
        for partition in partitions.iter() {
            if let Some(master) = self.masters.get_mut(usize::from(partition)) {
                *master = Some(group);
            }
        }
    }

    /// The tend connection of `group` could not be made, or was lost.
    pub(super) fn failed(&mut self, group: GroupId) {
        let Some(node) = self.node_mut(group) else {
            return;
        };
        node.failures += 1;
        // What it told before may have changed when it comes back.
        node.peers_generation = None;
        node.partition_generation = None;
        if !node.joined && node.name.is_none() && self.seeds.len() > 1 {
            // A seed that does not answer: the next one may.
            self.remove(group);
            self.try_seed();
        } else {
            self.drop_lost();
        }
    }

    /// Drops the nodes that do not answer and that no living node lists.
    fn drop_lost(&mut self) {
        let others_live = |group: GroupId| {
            self.nodes
                .iter()
                .any(|node| node.group != group && node.joined && node.failures == 0)
        };
        let listed = |name: Option<&str>| {
            self.nodes.iter().any(|node| {
                !node.removed
                    && node.failures == 0
                    && node.peers.iter().any(|peer| Some(peer.as_str()) == name)
            })
        };
        let lost: Vec<GroupId> = self
            .nodes
            .iter()
            .filter(|node| !node.removed && node.failures > 0)
            .filter(|node| others_live(node.group) && !listed(node.name.as_deref()))
            .map(|node| node.group)
            .collect();
        for group in lost {
            self.remove(group);
        }
    }

    fn remove(&mut self, group: GroupId) {
        let Some(node) = self.node_mut(group) else {
            return;
        };
        node.removed = true;
        node.joined = false;
        node.peers.clear();
        self.changes.push_back(Topology::Remove { group });
        for master in &mut self.masters {
            if *master == Some(group) {
                *master = None;
            }
        }
    }

    fn try_seed(&mut self) {
        if let Some(seed) = self.seeds.pop_front() {
            self.seeds.push_back(seed);
            self.add(seed, None, None);
        }
    }

    fn add(&mut self, address: SocketAddr, name: Option<String>, tls_name: Option<String>) {
        // The bound of group numbers is far above any cluster's size times its changes in a run.
        let Ok(number) = u16::try_from(self.nodes.len()) else {
            return;
        };
        let group = GroupId(number);
        self.nodes.push(Node {
            group,
            address,
            name,
            tls_name,
            joined: false,
            peers: Vec::new(),
            peers_generation: None,
            partition_generation: None,
            failures: 0,
            removed: false,
        });
        let address = address.into();
        self.changes.push_back(Topology::Tend { group, address });
    }
}

impl Node {
    /// The name in its certificate, where the cluster tells it.
    pub(super) fn tls_name(&self) -> Option<&str> {
        self.tls_name.as_deref()
    }
}

/// The first address of a peer that needs no name resolution; a worker never waits for a resolver.
fn address(peer: &Peer, default_port: Option<u16>) -> Option<SocketAddr> {
    peer.hosts.iter().find_map(|host| {
        let ip: IpAddr = host.name.parse().ok()?;
        Some(SocketAddr::new(ip, host.port.or(default_port)?))
    })
}
