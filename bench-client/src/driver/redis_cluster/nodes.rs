//! What is known of a Redis cluster: its primaries, and which of them serves each slot.

use std::collections::VecDeque;

use kvlab_protocol::resp::Value;
use kvlab_protocol::resp::slot::SLOTS;

use super::map::{Served, address, read_map, slot};
use crate::driver::{GroupId, Topology};
use crate::settings::Address;

/// The nodes and the slot table.
#[derive(Debug)]
pub(super) struct Nodes {
    /// A node is known by the group of its connections, which is its place here.
    nodes: Vec<Node>,
    /// The group of the primary of each slot.
    owners: Box<[Option<GroupId>]>,
    changes: VecDeque<Topology>,
    /// Whether a map that covers all slots was seen.
    mapped: bool,
    /// For requests without a key.
    turn: usize,
}

#[derive(Debug)]
struct Node {
    address: Address,
    /// It has a pool of load connections.
    pooled: bool,
    /// It has a connection to learn the cluster.
    tended: bool,
    /// Its tend connection failed since it last told the map.
    failing: bool,
    /// Maps in a row that do not name it.
    unlisted: u8,
    removed: bool,
}

impl Nodes {
    /// A cluster of which one node is known.
    pub(super) fn new(seed: Address) -> Self {
        let mut nodes = Self {
            nodes: Vec::new(),
            owners: vec![None; usize::from(SLOTS)].into(),
            changes: VecDeque::new(),
            mapped: false,
            turn: 0,
        };
        if let Some(group) = nodes.node_at(seed) {
            nodes.tend(group);
        }
        nodes
    }

    /// The next change of the connections that are wanted.
    pub(super) fn poll_change(&mut self) -> Option<Topology> {
        self.changes.pop_front()
    }

    /// Whether every slot had a primary once.
    pub(super) fn is_complete(&self) -> bool {
        self.mapped
    }

    /// Who serves a slot.
    pub(super) fn owner(&self, slot: u16) -> Option<GroupId> {
        self.owners.get(usize::from(slot)).copied().flatten()
    }

    /// The address of a group's node.
    pub(super) fn address(&self, group: GroupId) -> Option<Address> {
        self.nodes
            .get(usize::from(group.0))
            .map(|node| node.address)
    }

    /// The primaries in turn, for requests that any node answers.
    pub(super) fn any(&mut self) -> Option<GroupId> {
        for _ in 0..self.nodes.len() {
            self.turn = (self.turn + 1) % self.nodes.len();
            let node = &self.nodes[self.turn];
            if node.pooled && !node.removed {
                return group(self.turn);
            }
        }
        None
    }

    /// The answer to `CLUSTER SLOTS` or `CLUSTER SHARDS` by the node of `asked`.
    ///
    /// # Errors
    /// It cannot be used; in words for people.
    pub(super) fn listed(&mut self, asked: GroupId, answer: &Value) -> Result<(), String> {
        let own = self.address(asked).ok_or("a node that is gone answered")?;
        let map = read_map(answer, own)?;
        let covered: u32 = map
            .iter()
            .map(|(first, last, _)| u32::from(last.saturating_sub(*first)) + 1)
            .sum();
        if !self.mapped && covered < u32::from(SLOTS) {
            return Err(format!(
                "the cluster is not ready: {covered} of {SLOTS} slots are served"
            ));
        }
        self.mapped = true;
        if let Some(node) = self.nodes.get_mut(usize::from(asked.0)) {
            node.failing = false;
        }
        for (first, last, address) in &map {
            let Some(group) = self.primary(*address) else {
                continue;
            };
            let range = usize::from(*first)..=usize::from(*last);
            for owner in self.owners.get_mut(range).into_iter().flatten() {
                *owner = Some(group);
            }
        }
        self.drop_unlisted(&map);
        self.tend_somebody();
        Ok(())
    }

    /// A slot was moved for good; false if it is said in a way that cannot be followed.
    pub(super) fn moved(&mut self, slot: u16, address: Address) -> bool {
        let Some(group) = self.primary(address) else {
            return false;
        };
        let Some(owner) = self.owners.get_mut(usize::from(slot)) else {
            return false;
        };
        *owner = Some(group);
        true
    }

    /// A slot is on its way to this node.
    pub(super) fn asked(&mut self, address: Address) -> Option<GroupId> {
        self.primary(address)
    }

    /// The tend connection of a group could not be made, or was lost: another node may know more.
    pub(super) fn failed(&mut self, group: GroupId) {
        if let Some(node) = self.nodes.get_mut(usize::from(group.0)) {
            node.failing = true;
        }
        self.tend_somebody();
    }

    /// The group of a primary, with a pool of connections from now on.
    fn primary(&mut self, address: Address) -> Option<GroupId> {
        let group = self.node_at(address)?;
        let node = self.nodes.get_mut(usize::from(group.0))?;
        node.unlisted = 0;
        if !node.pooled {
            node.pooled = true;
            self.changes.push_back(Topology::Pool { group, address });
        }
        Some(group)
    }

    fn node_at(&mut self, address: Address) -> Option<GroupId> {
        let known = self
            .nodes
            .iter()
            .position(|node| !node.removed && node.address == address);
        if let Some(place) = known {
            return group(place);
        }
        // The bound of group numbers is far above any cluster's size times its changes in a run.
        let group = group(self.nodes.len())?;
        self.nodes.push(Node {
            address,
            pooled: false,
            tended: false,
            failing: false,
            unlisted: 0,
            removed: false,
        });
        Some(group)
    }

    /// Drops the nodes that serve no slot any more. Not at once: they may have requests under way,
    /// a redirection may know more than the node that was asked, and a slot that is on its way makes
    /// a node serve before it has one.
    fn drop_unlisted(&mut self, map: &[Served]) {
        for place in 0..self.nodes.len() {
            let node = &mut self.nodes[place];
            let listed = map.iter().any(|(.., address)| *address == node.address);
            if node.removed || listed || !node.pooled {
                continue;
            }
            node.unlisted = node.unlisted.saturating_add(1);
            if node.unlisted < MAPS_BEFORE_REMOVAL {
                continue;
            }
            let Some(group) = group(place) else { continue };
            self.nodes[place].removed = true;
            self.changes.push_back(Topology::Remove { group });
            for owner in &mut self.owners {
                if *owner == Some(group) {
                    *owner = None;
                }
            }
        }
    }

    /// Keeps one connection to a node that answers to learn the cluster.
    fn tend_somebody(&mut self) {
        let healthy = |node: &Node| node.tended && !node.failing && !node.removed;
        if self.nodes.iter().any(healthy) {
            return;
        }
        let next = self
            .nodes
            .iter()
            .position(|node| !node.removed && !node.tended);
        if let Some(group) = next.and_then(group) {
            self.tend(group);
        }
    }

    fn tend(&mut self, group: GroupId) {
        if let Some(node) = self.nodes.get_mut(usize::from(group.0)) {
            node.tended = true;
            let address = node.address;
            self.changes.push_back(Topology::Tend { group, address });
        }
    }
}

/// Maps in a row that do not name a node before its connections are closed.
const MAPS_BEFORE_REMOVAL: u8 = 5;

fn group(place: usize) -> Option<GroupId> {
    u16::try_from(place).ok().map(GroupId)
}

/// Slot and address of `MOVED 3999 127.0.0.1:6381` and of the same with `ASK`; the node that said
/// it has the address `own`.
pub(super) fn read_redirection(line: &str, own: Address) -> Option<(u16, Address)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let slot = slot(words.next()?.parse().ok()?)?;
    let (host, port) = words.next()?.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some((slot, address(host, port.parse().ok()?, own).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Address {
        Address::Tcp(text.parse().unwrap())
    }

    fn own() -> Address {
        at("127.0.0.1:7000")
    }

    fn range(first: i64, last: i64, host: Value, port: i64) -> Value {
        let node = vec![host, Value::Integer(port), Value::Bulk("id".into())];
        Value::Array(vec![
            Value::Integer(first),
            Value::Integer(last),
            Value::Array(node),
        ])
    }

    fn changes(nodes: &mut Nodes) -> Vec<Topology> {
        std::iter::from_fn(|| nodes.poll_change()).collect()
    }

    fn text(host: &str) -> Value {
        Value::Bulk(host.to_owned().into())
    }

    fn two() -> Value {
        Value::Array(vec![
            range(0, 8_191, text(""), 7000),
            range(8_192, 16_383, text("127.0.0.1"), 7001),
        ])
    }

    #[test]
    fn the_seed_is_asked_and_each_primary_gets_a_pool() {
        let mut nodes = Nodes::new(own());
        let (first, second) = (GroupId(0), GroupId(1));
        assert_eq!(
            changes(&mut nodes),
            [Topology::Tend {
                group: first,
                address: own()
            }]
        );
        assert!(!nodes.is_complete());
        nodes.listed(first, &two()).unwrap();
        assert!(nodes.is_complete());
        assert_eq!(
            changes(&mut nodes),
            [
                Topology::Pool {
                    group: first,
                    address: own()
                },
                Topology::Pool {
                    group: second,
                    address: at("127.0.0.1:7001")
                },
            ]
        );
        assert_eq!(nodes.owner(8_191), Some(first));
        assert_eq!(nodes.owner(8_192), Some(second));
        // The same again changes nothing.
        nodes.listed(first, &two()).unwrap();
        assert!(changes(&mut nodes).is_empty());
    }

    #[test]
    fn a_cluster_that_serves_a_part_of_the_slots_is_not_ready() {
        let mut nodes = Nodes::new(own());
        let part = Value::Array(vec![range(0, 99, Value::Null, 7000)]);
        let refused = nodes.listed(GroupId(0), &part).unwrap_err();
        assert!(refused.contains("100 of 16384 slots"), "{refused}");
        let named = Value::Array(vec![range(0, 16_383, text("redis-a.internal"), 7000)]);
        let refused = nodes.listed(GroupId(0), &named).unwrap_err();
        assert!(refused.contains("redis-a.internal"), "{refused}");
    }

    #[test]
    fn moves_and_asks_are_followed_and_a_node_without_slots_goes() {
        let mut nodes = Nodes::new(own());
        nodes.listed(GroupId(0), &two()).unwrap();
        changes(&mut nodes);
        let third = at("127.0.0.1:7002");
        assert_eq!(nodes.asked(third), Some(GroupId(2)));
        assert_eq!(nodes.owner(5), Some(GroupId(0)));
        assert!(nodes.moved(5, third));
        assert_eq!(nodes.owner(5), Some(GroupId(2)));
        assert!(!nodes.moved(16_384, third));
        let pool = Topology::Pool {
            group: GroupId(2),
            address: third,
        };
        assert_eq!(changes(&mut nodes), [pool]);
        // One that owns nothing for a while is closed, one that was asked since is kept.
        let all = Value::Array(vec![range(0, 16_383, text(""), 7000)]);
        for _ in 1..MAPS_BEFORE_REMOVAL {
            nodes.listed(GroupId(0), &all).unwrap();
            assert!(changes(&mut nodes).is_empty());
            // It serves again, by a slot that is on its way.
            assert_eq!(nodes.asked(third), Some(GroupId(2)));
        }
        nodes.listed(GroupId(0), &all).unwrap();
        let gone = Topology::Remove { group: GroupId(1) };
        assert_eq!(changes(&mut nodes), [gone]);
        assert_eq!(nodes.owner(9_000), Some(GroupId(0)));
    }

    #[test]
    fn where_the_asked_node_fails_another_one_is_asked() {
        let mut nodes = Nodes::new(own());
        nodes.listed(GroupId(0), &two()).unwrap();
        changes(&mut nodes);
        nodes.failed(GroupId(0));
        let tend = Topology::Tend {
            group: GroupId(1),
            address: at("127.0.0.1:7001"),
        };
        assert_eq!(changes(&mut nodes), [tend]);
        nodes.failed(GroupId(0));
        assert!(changes(&mut nodes).is_empty());
    }

    #[test]
    fn redirections_are_read_as_the_specification_writes_them() {
        for (line, slot, address) in [
            ("MOVED 3999 127.0.0.1:6381", 3_999, at("127.0.0.1:6381")),
            ("ASK 3999 127.0.0.1:6381", 3_999, at("127.0.0.1:6381")),
            ("MOVED 0 :6381", 0, at("127.0.0.1:6381")),
            ("MOVED 16383 ::1:6381", 16_383, at("[::1]:6381")),
        ] {
            assert_eq!(read_redirection(line, own()), Some((slot, address)));
        }
        for line in ["MOVED", "MOVED x 1:2", "MOVED 16384 127.0.0.1:1", "ASK 1 2"] {
            assert_eq!(read_redirection(line, own()), None, "{line}");
        }
    }
}
