//! INFO: which sections are asked for, in which order they come.

use super::info_text as text;
use crate::dialect::Flow;
use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::row::category::DANGEROUS;
use crate::dialect::redis::row::flag::{LOADING, STALE};
use crate::dialect::redis::row::{Family, Row};

/// INFO.
pub(crate) const FAMILY: Family = Family {
    group: "server",
    rows: &[Row::new("info", -1, info)
        .flags(LOADING | STALE)
        .categories(DANGEROUS)
        .tips(&[
            "nondeterministic_output",
            "request_policy:all_shards",
            "response_policy:special",
        ])
        .doc("[section ...]", "Describes the state of the server.")],
};

/// One section of INFO.
struct Section {
    name: &'static str,
    /// Asked for by `default`, and so by no argument at all.
    usual: bool,
    /// Asked for by `all`.
    in_all: bool,
    write: fn(&Call<'_, '_>) -> String,
}

const fn usual(name: &'static str, write: fn(&Call<'_, '_>) -> String) -> Section {
    Section {
        name,
        usual: true,
        in_all: true,
        write,
    }
}

/// The sections in the order in which they are printed.
const SECTIONS: &[Section] = &[
    usual("server", text::server),
    usual("clients", text::clients),
    usual("memory", text::memory),
    usual("persistence", text::persistence),
    usual("stats", text::stats),
    usual("replication", text::replication),
    usual("cpu", text::cpu),
    Section {
        name: "modules",
        usual: true,
        in_all: false,
        write: |_| "# Modules\r\n".to_owned(),
    },
    Section {
        name: "commandstats",
        usual: false,
        in_all: true,
        write: text::commandstats,
    },
    usual("errorstats", text::errorstats),
    Section {
        name: "latencystats",
        usual: false,
        in_all: true,
        write: |_| "# Latencystats\r\n".to_owned(),
    },
    usual("cluster", |_| {
        "# Cluster\r\ncluster_enabled:0\r\n".to_owned()
    }),
    usual("keyspace", text::keyspace),
];

fn info(call: &mut Call<'_, '_>) -> Outcome {
    let asked = call.args.from(1);
    let names = |name: &str| {
        asked
            .iter()
            .any(|arg| arg.eq_ignore_ascii_case(name.as_bytes()))
    };
    let (default, all, everything) = (
        asked.is_empty() || names("default"),
        names("all"),
        names("everything"),
    );
    let sections = SECTIONS.iter().filter(|section| {
        everything || (default && section.usual) || (all && section.in_all) || names(section.name)
    });
    let texts: Vec<_> = sections.map(|section| (section.write)(call)).collect();
    call.reply.verbatim(b"txt", texts.join("\r\n").as_bytes());
    Ok(Flow::Done)
}
