//! The sections of INFO. The fields and their order are those of redis-server 7.0.15.
//!
//! What is counted is true. What a mock has no equal of (memory, processor, disk) has the value of an
//! idle server, or one computed from the data alone, so that no run depends on the machine it is made
//! on: two servers with the same seed, commands and clock print the same bytes.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use crate::config::RedisVersion;
use crate::dialect::redis::STARTUP_BYTES;
use crate::dialect::redis::call::Call;
use crate::dialect::redis::table;
use crate::dialect::redis::view::View;
use crate::exchange::Protocol;

/// Collects `name:value` lines.
struct Lines(String);

impl Lines {
    fn section(name: &str) -> Self {
        Self(format!("# {name}\r\n"))
    }

    fn add(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{name}:{value}\r\n");
        self
    }

    fn zeros(self, names: &[&str]) -> Self {
        names.iter().fold(self, |lines, name| lines.add(name, 0))
    }

    /// Clients that were ended for what they left waiting, on servers that tell.
    fn disconnections(self, call: &Call<'_, '_>) -> Self {
        if call.state().version < FIRST_WITH_DISCONNECTIONS {
            return self;
        }
        let output = &call.state().counters.output_limit;
        self.add("client_query_buffer_limit_disconnections", 0).add(
            "client_output_buffer_limit_disconnections",
            output.load(Ordering::Relaxed),
        )
    }

    fn memory(self, name: &str, bytes: u64) -> Self {
        self.add(name, bytes)
            .add(&format!("{name}_human"), human(bytes))
    }
}

pub(super) fn server(call: &Call<'_, '_>) -> String {
    let shared = call.context.shared;
    let micros = shared.unix_nanos(call.context.now) / 1000;
    let uptime = call.context.now.saturating_since(shared.started) / 1_000_000_000;
    let port = shared
        .addresses
        .get()
        .and_then(|addresses| {
            let plain = addresses.redis.or(addresses.shared);
            plain.or(addresses.redis_tls).or(addresses.shared_tls)
        })
        .map_or(0, |address| address.port());
    Lines::section("Server")
        .add("redis_version", call.state().version)
        .add("redis_git_sha1", "00000000")
        .add("redis_git_dirty", 0)
        .add("redis_build_id", "0")
        .add("redis_mode", "standalone")
        .add("os", "Linux x86_64")
        .add("arch_bits", 64)
        .add("monotonic_clock", "POSIX clock_gettime")
        .add("multiplexing_api", "epoll")
        .add("atomicvar_api", "c11-builtin")
        .add("gcc_version", "0.0.0")
        .add("process_id", 1)
        .add("process_supervised", "no")
        .add("run_id", identity(shared.config.seed, 1))
        .add("tcp_port", port)
        .add("server_time_usec", micros)
        .add("uptime_in_seconds", uptime)
        .add("uptime_in_days", uptime / 86_400)
        .add("hz", 10)
        .add("configured_hz", call.state().settings.value("hz"))
        .add("lru_clock", (micros / 1_000_000) & 0x00ff_ffff)
        .add("executable", "/usr/local/bin/redis-server")
        .add("config_file", "")
        .add("io_threads_active", 0)
        .0
}

pub(super) fn clients(call: &Call<'_, '_>) -> String {
    Lines::section("Clients")
        .add(
            "connected_clients",
            super::client_filter::connected(call).count(),
        )
        .add("cluster_connections", 0)
        .add("maxclients", call.state().settings.value("maxclients"))
        .zeros(&[
            "client_recent_max_input_buffer",
            "client_recent_max_output_buffer",
            "blocked_clients",
            "tracking_clients",
            "clients_in_timeout_table",
        ])
        .0
}

pub(super) fn memory(call: &Call<'_, '_>) -> String {
    let state = call.state();
    let used = state.used_memory();
    let dataset = used - STARTUP_BYTES;
    let maxmemory = state.settings.live().memory_max();
    Lines::section("Memory")
        .memory("used_memory", used)
        .memory("used_memory_rss", used)
        .memory("used_memory_peak", used)
        .add("used_memory_peak_perc", "100.00%")
        .add("used_memory_overhead", STARTUP_BYTES)
        .add("used_memory_startup", STARTUP_BYTES)
        .add("used_memory_dataset", dataset)
        .add("used_memory_dataset_perc", "100.00%")
        .add("allocator_allocated", used)
        .add("allocator_active", used)
        .add("allocator_resident", used)
        .memory("total_system_memory", SYSTEM_BYTES)
        .zeros(&["used_memory_lua", "used_memory_vm_eval"])
        .add("used_memory_lua_human", human(0))
        .zeros(&[
            "used_memory_scripts_eval",
            "number_of_cached_scripts",
            "number_of_functions",
            "number_of_libraries",
            "used_memory_vm_functions",
        ])
        .memory("used_memory_vm_total", 0)
        .add("used_memory_functions", 0)
        .memory("used_memory_scripts", 0)
        .memory("maxmemory", maxmemory)
        .add("maxmemory_policy", state.settings.live().eviction())
        .add("allocator_frag_ratio", "1.00")
        .add("allocator_frag_bytes", 0)
        .add("allocator_rss_ratio", "1.00")
        .add("allocator_rss_bytes", 0)
        .add("rss_overhead_ratio", "1.00")
        .add("rss_overhead_bytes", 0)
        .add("mem_fragmentation_ratio", "1.00")
        .zeros(&[
            "mem_fragmentation_bytes",
            "mem_not_counted_for_evict",
            "mem_replication_backlog",
            "mem_total_replication_buffers",
            "mem_clients_slaves",
            "mem_clients_normal",
            "mem_cluster_links",
            "mem_aof_buffer",
        ])
        .add("mem_allocator", "libc")
        .zeros(&[
            "active_defrag_running",
            "lazyfree_pending_objects",
            "lazyfreed_objects",
        ])
        .0
}

pub(super) fn persistence(call: &Call<'_, '_>) -> String {
    let shared = call.context.shared;
    let append_only = call.state().settings.value("appendonly") == "yes";
    Lines::section("Persistence")
        .zeros(&[
            "loading",
            "async_loading",
            "current_cow_peak",
            "current_cow_size",
            "current_cow_size_age",
        ])
        .add("current_fork_perc", "0.00")
        .zeros(&["current_save_keys_processed", "current_save_keys_total"])
        .add(
            "rdb_changes_since_last_save",
            call.state().counters.sum(|lane| &lane.changes),
        )
        .add("rdb_bgsave_in_progress", 0)
        .add(
            "rdb_last_save_time",
            shared.unix_millis(shared.started) / 1000,
        )
        .add("rdb_last_bgsave_status", "ok")
        .add("rdb_last_bgsave_time_sec", -1)
        .add("rdb_current_bgsave_time_sec", -1)
        .zeros(&[
            "rdb_saves",
            "rdb_last_cow_size",
            "rdb_last_load_keys_expired",
            "rdb_last_load_keys_loaded",
        ])
        .add("aof_enabled", u8::from(append_only))
        .zeros(&["aof_rewrite_in_progress", "aof_rewrite_scheduled"])
        .add("aof_last_rewrite_time_sec", -1)
        .add("aof_current_rewrite_time_sec", -1)
        .add("aof_last_bgrewrite_status", "ok")
        .zeros(&["aof_rewrites", "aof_rewrites_consecutive_failures"])
        .add("aof_last_write_status", "ok")
        .zeros(&[
            "aof_last_cow_size",
            "module_fork_in_progress",
            "module_fork_last_cow_size",
        ])
        .0
}

pub(super) fn stats(call: &Call<'_, '_>) -> String {
    let counters = &call.state().counters;
    let errors: u64 = counters.errors().values().sum();
    let connections = call.context.shared.gatekeeper.statistics(Protocol::Redis);
    let lines = Lines::section("Stats")
        .add("total_connections_received", connections.opened)
        .add(
            "total_commands_processed",
            counters.sum(|lane| &lane.commands),
        )
        .add("instantaneous_ops_per_sec", counters.per_second())
        .add("total_net_input_bytes", counters.sum(|lane| &lane.bytes_in))
        .add(
            "total_net_output_bytes",
            counters.sum(|lane| &lane.bytes_out),
        )
        .zeros(&["total_net_repl_input_bytes", "total_net_repl_output_bytes"])
        .add("instantaneous_input_kbps", "0.00")
        .add("instantaneous_output_kbps", "0.00")
        .add("instantaneous_input_repl_kbps", "0.00")
        .add("instantaneous_output_repl_kbps", "0.00")
        .add("rejected_connections", connections.refused)
        .zeros(&["sync_full", "sync_partial_ok", "sync_partial_err"])
        .add("expired_keys", counters.sum(|lane| &lane.expired))
        .add("expired_stale_perc", "0.00")
        .zeros(&[
            "expired_time_cap_reached_count",
            "expire_cycle_cpu_milliseconds",
        ])
        .add("evicted_keys", counters.sum(|lane| &lane.evicted))
        .zeros(&[
            "evicted_clients",
            "total_eviction_exceeded_time",
            "current_eviction_exceeded_time",
        ])
        .add("keyspace_hits", counters.sum(|lane| &lane.hits))
        .add("keyspace_misses", counters.sum(|lane| &lane.misses))
        .zeros(&[
            "pubsub_channels",
            "pubsub_patterns",
            "pubsubshard_channels",
            "latest_fork_usec",
            "total_forks",
            "migrate_cached_sockets",
            "slave_expires_tracked_keys",
            "active_defrag_hits",
            "active_defrag_misses",
            "active_defrag_key_hits",
            "active_defrag_key_misses",
            "total_active_defrag_time",
            "current_active_defrag_time",
            "tracking_total_keys",
            "tracking_total_items",
            "tracking_total_prefixes",
            "unexpected_error_replies",
        ])
        .add("total_error_replies", errors)
        .zeros(&[
            "dump_payload_sanitizations",
            "total_reads_processed",
            "total_writes_processed",
            "io_threaded_reads_processed",
            "io_threaded_writes_processed",
        ])
        .disconnections(call)
        .zeros(&["reply_buffer_shrinks", "reply_buffer_expands"]);
    denied(call, lines).0
}

/// What users were denied, which versions from 7.2 on tell.
fn denied(call: &Call<'_, '_>, lines: Lines) -> Lines {
    if call.state().version < RedisVersion::V7_2 {
        return lines;
    }
    let names = ["auth", "cmd", "key", "channel"];
    let counts = call.state().users.denied();
    names
        .iter()
        .zip(counts)
        .fold(lines, |lines, (name, count)| {
            lines.add(&format!("acl_access_denied_{name}"), count)
        })
}

pub(super) fn replication(call: &Call<'_, '_>) -> String {
    Lines::section("Replication")
        .add("role", "master")
        .add("connected_slaves", 0)
        .add("master_failover_state", "no-failover")
        .add(
            "master_replid",
            identity(call.context.shared.config.seed, 2),
        )
        .add("master_replid2", "0".repeat(40))
        .add("master_repl_offset", 0)
        .add("second_repl_offset", -1)
        .add("repl_backlog_active", 0)
        .add(
            "repl_backlog_size",
            call.state().settings.value("repl-backlog-size"),
        )
        .zeros(&["repl_backlog_first_byte_offset", "repl_backlog_histlen"])
        .0
}

pub(super) fn cpu(_call: &Call<'_, '_>) -> String {
    [
        "used_cpu_sys",
        "used_cpu_user",
        "used_cpu_sys_children",
        "used_cpu_user_children",
        "used_cpu_sys_main_thread",
        "used_cpu_user_main_thread",
    ]
    .iter()
    .fold(Lines::section("CPU"), |lines, name| {
        lines.add(name, "0.000000")
    })
    .0
}

pub(super) fn commandstats(call: &Call<'_, '_>) -> String {
    let mut lines = Lines::section("Commandstats");
    for command in table::all() {
        let [calls, rejected, failed] = call.state().counters.calls(command.ordinal);
        if calls + rejected + failed > 0 {
            lines = lines.add(
                &format!("cmdstat_{}", command.name),
                format_args!(
                    "calls={calls},usec=0,usec_per_call=0.00,rejected_calls={rejected},\
                     failed_calls={failed}"
                ),
            );
        }
    }
    lines.0
}

pub(super) fn errorstats(call: &Call<'_, '_>) -> String {
    let mut lines = Lines::section("Errorstats");
    for (code, count) in call.state().counters.errors() {
        let code = String::from_utf8_lossy(&code).into_owned();
        lines = lines.add(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
    lines.0
}

pub(super) fn keyspace(call: &Call<'_, '_>) -> String {
    let mut lines = Lines::section("Keyspace");
    for number in 0..call.state().databases.count() {
        let Some(view) = View::new(call.context, number) else {
            continue;
        };
        let keys = view.database().len();
        if keys > 0 {
            lines = lines.add(
                &format!("db{number}"),
                format_args!(
                    "keys={keys},expires={},avg_ttl={}",
                    view.database().expiring(),
                    average_ttl(view),
                ),
            );
        }
    }
    lines.0
}

/// Mean time to live in milliseconds of the first keys that have one.
fn average_ttl(view: View<'_>) -> u64 {
    if view.database().expiring() == 0 {
        return 0;
    }
    let now = view.unix_millis();
    let (mut sum, mut count) = (0_u128, 0_u128);
    view.database().keys.scan(0, TTL_SAMPLE, |key| {
        let expires_at = view
            .database()
            .keys
            .read(key, |entry| entry.and_then(|entry| entry.expires_at));
        if let Some(at) = expires_at {
            sum += u128::from(at.saturating_sub(now));
            count += 1;
        }
    });
    u64::try_from(sum / count.max(1)).unwrap_or(u64::MAX)
}

/// Forty hexadecimal digits that a seed and a purpose stand for.
fn identity(seed: u64, purpose: u64) -> String {
    let mut text = String::new();
    let mut state = seed ^ purpose.wrapping_mul(0xd1b5_4a32_d192_ed03);
    while text.len() < 40 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let _ = write!(text, "{:016x}", mixed ^ (mixed >> 27));
    }
    text.truncate(40);
    text
}

/// Bytes as a server writes them for people.
#[expect(
    clippy::cast_precision_loss,
    reason = "two digits behind the point are printed"
)]
fn human(bytes: u64) -> String {
    let units = [
        (1_u64 << 40, "T"),
        (1 << 30, "G"),
        (1 << 20, "M"),
        (1 << 10, "K"),
    ];
    match units.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{:.2}{unit}", bytes as f64 / *size as f64),
        None => format!("{bytes}B"),
    }
}

/// The first version whose INFO counts such ends (redis pull request 12476).
const FIRST_WITH_DISCONNECTIONS: RedisVersion = RedisVersion {
    major: 7,
    minor: 4,
    patch: 0,
};
/// The machine that this server pretends to run on.
const SYSTEM_BYTES: u64 = 16 << 30;
/// Slots that are looked at for the mean time to live.
const TTL_SAMPLE: usize = 1000;
