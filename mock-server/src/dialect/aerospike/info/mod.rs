//! Info: text commands, one a line, each answered by its own text, a tab and a value.
//!
//! The commands are those that clients send while they connect and tend, those of their admin calls
//! (indexes, modules, truncation, jobs) and those of the common tools (statistics, sets, settings).
//! Errors read `ERROR:<code>:<text>`; commands of the Enterprise edition answer
//! `ERROR:25:enterprise only`, unknown ones `ERROR:4:unrecognized command`.

mod catalog;
mod cluster;
mod index;
mod module;
mod statistics;
mod truncate;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, BytesMut};
use kvlab_protocol::aerospike::info::{AnswerWriter, InfoRequest, put_error, requests};
use kvlab_protocol::aerospike::result_code::ResultCode;

pub(super) use catalog::Catalog;

use super::record::Moment;
use crate::dialect::Context;

/// An error answer: the code and the words.
type InfoError = (ResultCode, &'static str);

/// What commands look at.
struct Scene<'a> {
    context: &'a Context<'a>,
    now: Moment,
}

/// Commands whose answers make up the answer to a request without any.
const SUMMARY: [&str; 15] = [
    "features",
    "node",
    "compatibility-id",
    "edition",
    "build_ee_sha",
    "build_sha",
    "build_arch",
    "build_time",
    "build_os",
    "build",
    "version",
    "statistics",
    "services-alumni",
    "services",
    "partition-generation",
];

/// Answers an info message. `has_user_agent` is the connection's memory of having been told one.
pub(super) fn answer(
    body: &[u8],
    now: Moment,
    has_user_agent: &mut bool,
    context: &Context<'_>,
    out: &mut BytesMut,
) {
    let scene = Scene { context, now };
    let mut answer = AnswerWriter::begin(out);
    if body.is_empty() {
        for command in SUMMARY {
            let request = InfoRequest::new(command.as_bytes());
            entry(&scene, request, has_user_agent, &mut answer);
        }
    }
    for request in requests(body) {
        entry(&scene, request, has_user_agent, &mut answer);
    }
    answer.finish();
}

fn entry(
    scene: &Scene<'_>,
    request: InfoRequest<'_>,
    has_user_agent: &mut bool,
    answer: &mut AnswerWriter<'_>,
) {
    answer.entry_with(request.raw(), |out| {
        let before = out.len();
        let state = &scene.context.shared.aerospike;
        let done = match request.name() {
            name if state.blocks_info(name) => Err((ResultCode::Forbidden, "forbidden")),
            b"user-agent-set" => user_agent(request, has_user_agent, out),
            _ => value(scene, request, out),
        };
        if let Err((code, text)) = done {
            out.truncate(before);
            put_error(code, text, out);
        }
    });
}

/// Appends the value of one command.
fn value(scene: &Scene<'_>, request: InfoRequest<'_>, out: &mut BytesMut) -> Result<(), InfoError> {
    let shared = scene.context.shared;
    let config = &shared.config.aerospike;
    match request.name() {
        b"node" | b"name" => out.put_slice(config.node_name.as_bytes()),
        b"build" => out.put_slice(config.build.as_bytes()),
        b"edition" => out.put_slice(EDITION.as_bytes()),
        b"version" => {
            out.put_slice(EDITION.as_bytes());
            out.put_slice(b" build ");
            out.put_slice(config.build.as_bytes());
        }
        b"release" => {
            let build = &config.build;
            out.put_slice(
                format!("edition={EDITION};version={build};os=debian12;arch=x86_64;sha=")
                    .as_bytes(),
            );
        }
        b"build_arch" => out.put_slice(b"x86_64"),
        b"build_os" => out.put_slice(b"debian12"),
        b"build_sha" | b"build_ee_sha" | b"build_time" => {}
        b"compatibility-id" => out.put_slice(b"15"),
        b"features" => out.put_slice(FEATURES.as_bytes()),
        b"status" => out.put_slice(b"ok"),
        b"connection" => out.put_slice(b"admin=false"),
        b"cluster-name" => out.put_slice(config.cluster_name.as_bytes()),
        b"partition-generation" | b"peers-generation" => out.put_u8(b'0'),
        b"rebalance-generation" => out.put_u8(b'1'),
        b"cluster-stable" => out.put_slice(statistics::cluster_key(shared).as_bytes()),
        b"services"
        | b"services-alternate"
        | b"services-alumni"
        | b"services-alumni-reset"
        | b"service-clear-alt" => {}
        b"service" | b"service-clear-std" => cluster::put_service(scene, out),
        b"peers-clear-std" | b"peers-clear-alt" => cluster::put_peers(out),
        b"service-tls-std" if cluster::has_tls(scene) => cluster::put_tls_service(scene, out),
        b"service-tls-alt" if cluster::has_tls(scene) => {}
        b"peers-tls-std" | b"peers-tls-alt" if cluster::has_tls(scene) => cluster::put_peers(out),
        b"replicas" => cluster::replicas(scene).put(out),
        b"replicas-all" => cluster::put_all(scene, out),
        b"replicas-master" => cluster::put_master(scene, out),
        b"namespaces" => statistics::put_namespaces(scene, out),
        b"namespace" => statistics::namespace(scene, request, out),
        b"sets" => statistics::sets(scene, request, out),
        b"statistics" => statistics::server(scene, out),
        b"get-config" | b"config-get" => statistics::settings(scene, request, out)?,
        b"logs" => out.put_slice(b"0:stderr"),
        b"log" => statistics::log(request, out)?,
        b"sindex" | b"sindex-list" => index::list(scene, request, out),
        b"sindex-stat" => index::stat(scene, request, out)?,
        b"sindex-exists" => index::exists(scene, request, out)?,
        b"sindex-create" => index::create(scene, request, out)?,
        b"sindex-delete" => index::delete(scene, request, out)?,
        b"udf-put" => module::put(scene, request, out),
        b"udf-list" => module::list(scene, out),
        b"udf-get" => module::get(scene, request, out),
        b"udf-remove" => module::remove(scene, request, out),
        b"truncate" => truncate::set(scene, request, out)?,
        b"truncate-namespace" => truncate::namespace(scene, request, out)?,
        b"query-show" if request.arguments().is_empty() => {}
        b"query-show" => return Err((ResultCode::NotFound, "job not found")),
        b"query-abort" => return Err((ResultCode::NotFound, "id not active")),
        b"query-abort-all" => out.put_slice(b"OK - number of queries killed: 0"),
        name if is_enterprise(name) => return Err((ResultCode::EnterpriseOnly, "enterprise only")),
        _ => return Err((ResultCode::Parameter, "unrecognized command")),
    }
    Ok(())
}

const EDITION: &str = "Aerospike Community Edition";

const FEATURES: &str = "batch-any;batch-index;blob-bits;cdt-index;cdt-list;cdt-map;\
    cluster-stable;float;geo;sindex-exists;peers;pipelining;pquery;pscans;query-show;relaxed-sc;\
    replicas;replicas-all;replicas-master;replicas-max;truncate-namespace;udf";

/// Commands that only the Enterprise edition has.
fn is_enterprise(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 14] = [
        b"feature-key",
        b"masking",
        b"peers-tls-alt",
        b"peers-tls-std",
        b"quiesce",
        b"quiesce-undo",
        b"rack-ids",
        b"racks",
        b"revive",
        b"roster",
        b"roster-set",
        b"service-tls-alt",
        b"service-tls-std",
        b"tls-list",
    ];
    NAMES.contains(&name) || name.starts_with(b"xdr-")
}

/// The longest user agent a client may send, decoded.
const USER_AGENT_MAX: usize = 64;

/// Notes who the client says it is; a connection is told once.
fn user_agent(
    request: InfoRequest<'_>,
    has_user_agent: &mut bool,
    out: &mut BytesMut,
) -> Result<(), InfoError> {
    let text = request
        .param(b"value")
        .ok_or((ResultCode::Parameter, "missing 'value'"))?;
    let decoded = STANDARD
        .decode(text)
        .map_err(|_| (ResultCode::Parameter, "'value' invalid base64"))?;
    if decoded.len() > USER_AGENT_MAX {
        return Err((ResultCode::Parameter, "'value' too long"));
    }
    if std::mem::replace(has_user_agent, true) {
        return Err((ResultCode::Parameter, "already set"));
    }
    out.put_slice(b"ok");
    Ok(())
}

/// The value of a parameter that has an old and a new name.
fn either<'a>(request: InfoRequest<'a>, new: &[u8], old: &[u8]) -> Option<&'a [u8]> {
    request.param(new).or_else(|| request.param(old))
}
