//! Recorded outputs of the original, and the model built from their own numbers.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use kvlab_bench_client::frontend::memtier::config::{AddressFamily, Config, Staircase};
use kvlab_bench_client::frontend::memtier::model::{
    ActiveClients, Bound, Heading, Layout, Results, Row, RowKind, Run, Verification,
};
use kvlab_bench_client::record::Latency;
use serde_json::Value;

/// Cases whose JSON is whole and whose tables hold numbers or zeros that go together.
pub(crate) const PLAIN: [&str; 27] = [
    "01", "04", "05", "06", "07", "08", "09", "10", "11", "12", "14", "15", "17", "18", "19", "22",
    "23", "25", "26", "27", "28", "29", "31", "32", "33", "34", "03",
];
/// Cases without JSON, compared by their shape alone.
pub(crate) const TEXT_ONLY: [&str; 2] = ["20", "30"];

const COMPRESSED: &str = "\"Compressed Histogram\": \"";

/// One recorded case.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) json: Option<String>,
}

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/memtier")
}

impl Case {
    /// The case with this number.
    pub(crate) fn load(number: &str) -> Self {
        let path = std::fs::read_dir(folder())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                name.starts_with(number) && name.ends_with(".cmd")
            })
            .unwrap_or_else(|| panic!("no case {number}"));
        let read = |extension: &str| std::fs::read_to_string(path.with_extension(extension));
        Self {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            command: words(&read("cmd").unwrap()),
            stdout: read("stdout").unwrap(),
            stderr: read("stderr").unwrap(),
            json: read("json").ok(),
        }
    }

    pub(crate) fn has(&self, option: &str) -> bool {
        self.command.iter().any(|word| word == option)
    }

    fn argument(&self, option: &str) -> Option<&str> {
        let place = self.command.iter().position(|word| word == option)?;
        self.command.get(place + 1).map(String::as_str)
    }

    pub(crate) fn layout(&self) -> Layout {
        let mut layout = Layout {
            histogram: !self.has("--hide-histogram"),
            all_runs: self.has("--print-all-runs"),
            cluster: self.has("--cluster-mode"),
            commands: self.has("--command"),
            ..Layout::default()
        };
        if let Some(list) = self.argument("--print-percentiles") {
            layout.percentiles = list.split(',').map(|p| p.parse().unwrap()).collect();
        }
        layout
    }

    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(self.json.as_ref().unwrap()).unwrap()
    }

    /// The tables of stdout.
    pub(crate) fn tables(&self) -> Vec<Table> {
        let lines: Vec<&str> = self.stdout.lines().collect();
        let rules = lines.iter().enumerate();
        rules
            .filter(|(_, line)| line.starts_with("====="))
            .map(|(place, _)| Table::read(&lines[place - 1..]))
            .collect()
    }

    /// The model of the case: the tables named, in their order, as runs 1, 2, …
    pub(crate) fn results(&self, titles: &[&str]) -> Results {
        let mut results = self.frame();
        let json = self.json.as_deref().unwrap_or_default();
        let mut histograms = json
            .match_indices(COMPRESSED)
            .map(|(place, found)| json[place + found.len()..].split('"').next().unwrap());
        let value = self.value();
        for table in self.tables() {
            let mut run = Run::new(u32::try_from(results.runs.len()).unwrap() + 1);
            let stats = &value[&table.title];
            let ops = table.rows.last().unwrap().number(0);
            let count = stats["Totals"]["Count"].as_f64().unwrap();
            if ops > 0.0 {
                run.duration = Duration::from_secs_f64(count / ops);
            }
            run.started_unix_ns = stats["Runtime"]["Start time"].as_u64().unwrap_or(0) * 1_000_000;
            for row in &table.rows {
                let latency = latency(histograms.next().unwrap());
                if row.label != "Totals" {
                    run.rows.push(row.model(self, run.duration, latency));
                }
            }
            if let Some(seconds) = stats["Active Clients"].as_object() {
                run.active_clients = (0..seconds.len())
                    .map(|second| &stats["Active Clients"][second.to_string()])
                    .map(|clients| ActiveClients {
                        per_thread: clients["Clients per thread"].as_u64().unwrap(),
                        total: clients["Total clients"].as_u64().unwrap(),
                    })
                    .collect();
            }
            if titles.contains(&table.title.as_str()) {
                results.runs.push(run);
            }
        }
        let verified = &value["client verifications results"];
        results.verification = verified.is_object().then(|| Verification {
            verified: verified["keys verified successfuly"].as_u64().unwrap(),
            failed: verified["keys failed"].as_u64().unwrap(),
        });
        results
    }

    /// The histograms of all rows of all tables, in their order: values in microseconds, and how
    /// often they were seen. Empty without JSON.
    pub(crate) fn histograms(&self) -> Vec<Vec<(f64, f64)>> {
        let json = self.json.as_deref().unwrap_or_default();
        json.match_indices(COMPRESSED)
            .map(|(place, found)| {
                let histogram = histogram(json[place + found.len()..].split('"').next().unwrap());
                let values = histogram.iter_recorded().map(|value| {
                    let us = histogram.highest_equivalent(value.value_iterated_to());
                    let count = value.count_since_last_iteration();
                    let float = |value: u64| f64::from(u32::try_from(value).unwrap());
                    (float(us), float(count))
                });
                values.collect()
            })
            .collect()
    }

    /// Heading, layout and configuration, without runs.
    pub(crate) fn frame(&self) -> Results {
        let mut numbers = self
            .stdout
            .lines()
            .filter(|line| line.len() > 10 && line.as_bytes()[..2][0].is_ascii_digit())
            .map(|line| {
                line.split_whitespace()
                    .next()
                    .unwrap()
                    .parse::<u64>()
                    .unwrap()
            });
        let (threads, connections) = (numbers.next().unwrap(), numbers.next().unwrap());
        let bound = numbers.next().unwrap();
        let seconds = self.stdout.lines().any(|line| line.ends_with(" Seconds"));
        Results {
            config: match &self.json {
                Some(_) => config(&self.value()["configuration"]),
                None => Config::default(),
            },
            heading: Heading {
                threads: u32::try_from(threads).unwrap(),
                connections_per_thread: u32::try_from(connections).unwrap(),
                bound: if seconds {
                    Bound::Seconds(bound)
                } else {
                    Bound::Requests(bound)
                },
            },
            layout: self.layout(),
            runs: Vec::new(),
            verification: None,
        }
    }
}

/// A table as it was printed.
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) rows: Vec<TableRow>,
}

pub(crate) struct TableRow {
    pub(crate) label: String,
    pub(crate) cells: Vec<String>,
    titles: Vec<String>,
}

impl Table {
    /// From the title on.
    pub(crate) fn read(lines: &[&str]) -> Self {
        let header = lines[2];
        let label_width = header.find("Ops/sec").unwrap() + "Ops/sec".len() - 12;
        let titles: Vec<String> = header[label_width..]
            .replace(" Latency", "_Latency")
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        let rows = lines[4..]
            .iter()
            .take_while(|line| !line.is_empty())
            .map(|line| TableRow {
                label: line[..label_width].trim_end().to_owned(),
                cells: line[label_width..]
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect(),
                titles: titles.clone(),
            })
            .collect();
        Self {
            title: lines[0].to_owned(),
            rows,
        }
    }
}

impl TableRow {
    /// The number of a cell; 0 where there is none.
    pub(crate) fn number(&self, place: usize) -> f64 {
        self.cells[place].parse().unwrap_or(0.0)
    }

    pub(crate) fn named(&self, title: &str) -> f64 {
        let place = self.titles.iter().position(|known| known == title);
        place.map_or(0.0, |place| self.number(place))
    }

    /// The row of the model with the same numbers.
    fn model(&self, case: &Case, duration: Duration, latency: Latency) -> Row {
        let kind = match self.label.as_str() {
            label if case.has("--command") => {
                let name = label.strip_suffix('s').unwrap();
                // The cursor is the one name that is not all capitals.
                let name = name.to_uppercase().replace("<CURSOR>", "<cursor>");
                RowKind::Command(name)
            }
            "Sets" => RowKind::Set,
            "Gets" => RowKind::Get,
            "Waits" => RowKind::Wait,
            label => panic!("{label}"),
        };
        let count = |rate: f64| whole(rate * duration.as_secs_f64());
        let mut row = Row::new(kind);
        let ops = count(self.number(0));
        row.outcomes.misses = count(self.named("Misses/sec"));
        row.outcomes.hits = ops - row.outcomes.misses;
        row.moved = count(self.named("MOVED/sec"));
        row.asked = count(self.named("ASK/sec"));
        row.bytes_out = count(self.named("KB/sec") * 1_024.0);
        // The original restarted case 33 in the middle and kept two latencies of before.
        let kept = if case.name.starts_with("33") { 2 } else { 0 };
        let missing = latency.count() - ops;
        assert!(missing <= kept, "{}: {} {missing}", case.name, self.label);
        row.service = latency;
        row
    }
}

/// A histogram of the original (microseconds, two digits) as latencies at the ends of its buckets,
/// which is where it reads its percentiles.
pub(crate) fn latency(compressed: &str) -> Latency {
    let histogram = histogram(compressed);
    let mut latency = Latency::default();
    for value in histogram.iter_recorded() {
        let ns = histogram.highest_equivalent(value.value_iterated_to()) * 1_000;
        for _ in 0..value.count_since_last_iteration() {
            latency.record(ns);
        }
    }
    latency
}

pub(crate) fn histogram(compressed: &str) -> Histogram<u64> {
    let bytes = STANDARD.decode(compressed).unwrap();
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .unwrap()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of recorded cases are small and positive"
)]
pub(crate) fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// The words of a command line; quotes are taken off, nothing else is interpreted.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.trim().chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The configuration that prints this object.
pub(crate) fn config(json: &Value) -> Config {
    let text = |key: &str| json[key].as_str().unwrap().to_owned();
    let maybe = |key: &str| json[key].as_str().map(str::to_owned);
    let number = |key: &str| json[key].as_u64().unwrap();
    let small = |key: &str| u32::try_from(number(key)).unwrap();
    let switch = |key: &str| json[key] == "true";
    let pair = |key: &str| {
        let text = json[key].as_str().unwrap();
        let (first, second) = text.split_once([':', '-']).unwrap();
        (first.parse().unwrap(), second.parse().unwrap())
    };
    let address_family = match json["address family"].as_str().unwrap() {
        "Unspecified" => AddressFamily::Unspecified,
        family => panic!("{family}"),
    };
    Config {
        server: text("server"),
        port: u16::try_from(number("port")).unwrap(),
        uri: text("uri"),
        unix_socket: maybe("unix socket"),
        address_family,
        protocol: text("protocol"),
        out_file: maybe("out_file"),
        tls: switch("tls"),
        cert: maybe("cert"),
        key: maybe("key"),
        cacert: maybe("cacert"),
        tls_skip_verify: switch("tls_skip_verify"),
        sni: maybe("sni"),
        client_stats: maybe("client_stats"),
        run_count: small("run_count"),
        debug: small("debug"),
        requests: number("requests"),
        rate_limit: number("rate_limit"),
        clients: small("clients"),
        threads: small("threads"),
        test_time: number("test_time"),
        ratio: pair("ratio"),
        pipeline: small("pipeline"),
        data_size: number("data_size"),
        data_offset: number("data_offset"),
        random_data: switch("random_data"),
        data_size_range: pair("data_size_range"),
        data_size_list: text("data_size_list"),
        data_size_pattern: text("data_size_pattern"),
        expiry_range: pair("expiry_range"),
        data_import: maybe("data_import"),
        data_verify: switch("data_verify"),
        verify_only: switch("verify_only"),
        generate_keys: switch("generate_keys"),
        key_prefix: maybe("key_prefix"),
        key_minimum: number("key_minimum"),
        key_maximum: number("key_maximum"),
        key_pattern: text("key_pattern"),
        key_stddev: json["key_stddev"].as_f64().unwrap(),
        key_median: json["key_median"].as_f64().unwrap(),
        key_zipf_exp: json["key_zipf_exp"].as_f64().unwrap(),
        reconnect_interval: number("reconnect_interval"),
        connection_timeout: number("connection_timeout"),
        thread_conn_start_min_jitter_micros: number("thread_conn_start_min_jitter_micros"),
        thread_conn_start_max_jitter_micros: number("thread_conn_start_max_jitter_micros"),
        multi_key_get: number("multi_key_get"),
        authenticate: text("authenticate"),
        select_db: number("select-db"),
        no_expiry: switch("no-expiry"),
        wait_ratio: pair("wait-ratio"),
        num_slaves: pair("num-slaves"),
        wait_timeout: pair("wait-timeout"),
        json_out_file: None,
        print_all_runs: switch("print-all-runs"),
        staircase: json.get("clients_start").map(|_| Staircase {
            start: small("clients_start"),
            step: small("clients_step"),
            duration: number("step_duration"),
        }),
        seed: 0,
    }
}
