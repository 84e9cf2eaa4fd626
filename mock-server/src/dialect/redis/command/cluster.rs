//! Cluster commands, on a server that is no part of a cluster: it knows them and refuses them.

use super::without_subcommand;
use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::fault::Fault;
use crate::dialect::redis::row::category::CONNECTION;
use crate::dialect::redis::row::flag::{ADMIN, FAST, LOADING, NO_ASYNC_LOADING, NOSCRIPT, STALE};
use crate::dialect::redis::row::{Family, Row};

/// The cluster commands.
pub(crate) const FAMILY: Family = Family {
    group: "cluster",
    rows: &[
        Row::new("asking", 1, refuse)
            .flags(FAST)
            .categories(CONNECTION)
            .since(3, 0, 0)
            .doc(
                "",
                "Lets the next command reach a slot that is being imported.",
            ),
        Row::new("cluster", -2, without_subcommand)
            .subcommands(SUBCOMMANDS)
            .since(3, 0, 0)
            .doc("", "Looks at and changes the cluster."),
        Row::new("readonly", 1, refuse)
            .flags(LOADING | STALE | FAST)
            .categories(CONNECTION)
            .since(3, 0, 0)
            .doc("", "Allows reads from a replica."),
        Row::new("readwrite", 1, refuse)
            .flags(LOADING | STALE | FAST)
            .categories(CONNECTION)
            .since(3, 0, 0)
            .doc("", "Takes back READONLY."),
    ],
};

const CHANGE: u32 = ADMIN | STALE | NO_ASYNC_LOADING;

const fn row(name: &'static str, arity: i32, flags: u32) -> Row {
    Row::new(name, arity, refuse).flags(flags).since(3, 0, 0)
}

const SUBCOMMANDS: &[Row] = &[
    row("addslots", -3, CHANGE).doc("slot ...", "Takes over slots."),
    row("addslotsrange", -4, CHANGE)
        .since(7, 0, 0)
        .doc("<start-slot end-slot> ...", "Takes over ranges of slots."),
    row("bumpepoch", 2, CHANGE)
        .tips(&["nondeterministic_output"])
        .doc("", "Advances the epoch."),
    row("count-failure-reports", 3, ADMIN | STALE)
        .tips(&["nondeterministic_output"])
        .doc("node-id", "Counts the reports of a node's failure."),
    row("countkeysinslot", 3, STALE).doc("slot", "Counts the keys of a slot."),
    row("delslots", -3, CHANGE).doc("slot ...", "Gives up slots."),
    row("delslotsrange", -4, CHANGE)
        .since(7, 0, 0)
        .doc("<start-slot end-slot> ...", "Gives up ranges of slots."),
    row("failover", -2, CHANGE).doc("[FORCE | TAKEOVER]", "Makes a replica the master."),
    row("flushslots", 2, CHANGE).doc("", "Gives up all slots."),
    row("forget", 3, CHANGE).doc("node-id", "Forgets a node."),
    row("getkeysinslot", 4, STALE)
        .tips(&["nondeterministic_output"])
        .doc("slot count", "Lists keys of a slot."),
    row("help", 2, LOADING | STALE)
        .since(5, 0, 0)
        .doc("", "Lists the subcommands."),
    row("info", 2, STALE)
        .tips(&["nondeterministic_output"])
        .doc("", "Tells the state of the cluster."),
    row("keyslot", 3, STALE).doc("key", "Tells the slot of a key."),
    row("links", 2, STALE)
        .tips(&["nondeterministic_output"])
        .since(7, 0, 0)
        .doc("", "Lists the connections to other nodes."),
    row("meet", -4, CHANGE).doc("ip port [cluster-bus-port]", "Meets another node."),
    row("myid", 2, STALE).doc("", "Tells the identity of the node."),
    row("myshardid", 2, STALE)
        .tips(&["nondeterministic_output"])
        .since(7, 2, 0)
        .doc("", "Tells the identity of the shard."),
    row("nodes", 2, STALE)
        .tips(&["nondeterministic_output"])
        .doc("", "Lists the nodes."),
    row("replicas", 3, ADMIN | STALE)
        .tips(&["nondeterministic_output"])
        .since(5, 0, 0)
        .doc("node-id", "Lists the replicas of a node."),
    row("replicate", 3, CHANGE).doc("node-id", "Becomes a replica of a node."),
    row("reset", -2, ADMIN | NOSCRIPT | STALE).doc("[HARD | SOFT]", "Forgets the cluster."),
    row("saveconfig", 2, CHANGE).doc("", "Writes the state of the cluster to disk."),
    row("set-config-epoch", 3, CHANGE).doc("config-epoch", "Sets the epoch of a new node."),
    row("setslot", -4, CHANGE).doc(
        "slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>",
        "Binds a slot to a node.",
    ),
    row("shards", 2, STALE)
        .tips(&["nondeterministic_output"])
        .since(7, 0, 0)
        .doc("", "Lists the shards with their nodes."),
    row("slaves", 3, ADMIN | STALE)
        .tips(&["nondeterministic_output"])
        .doc(
            "node-id",
            "Lists the replicas of a node; the old name of REPLICAS.",
        ),
    row("slots", 2, STALE)
        .tips(&["nondeterministic_output"])
        .doc("", "Lists which nodes serve which slots."),
];

fn refuse(_call: &mut Call<'_, '_>) -> Outcome {
    Err(Fault::CLUSTER_OFF)
}
