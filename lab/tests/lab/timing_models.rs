//! Every timing model of the server under virtual time: exact to the nanosecond, in the rows and in the
//! simulated timetable, on both protocols.

use kvlab::runner::Evidence;
use kvlab_mock_server::exchange::Class;
use kvlab_mock_server::stamp::FaultKind;

use super::support::{assert_passes, finding, run, scenario};

/// Runs a scenario on both protocols, demands that everything holds, and hands the evidence on.
fn exact(server: &str, client: &str) -> [Evidence; 2] {
    run_both(server, client, true)
}

/// The same for a server of which the simulated timetable cannot know everything.
fn exact_without_timetable(server: &str, client: &str) -> [Evidence; 2] {
    run_both(server, client, false)
}

fn run_both(server: &str, client: &str, has_timetable: bool) -> [Evidence; 2] {
    ["redis", "aerospike/test/s"].map(|target| {
        let client: Vec<&str> = client
            .lines()
            .filter(|line| target == "redis" || !line.starts_with("pipeline"))
            .collect();
        let client = client.join("\n");
        let text = format!("[server]\n{server}\n[[client]]\ntarget = '{target}'\n{client}\n");
        let (evidence, judgement) = run(&scenario(&text), 0);
        assert_passes(&judgement, &text);
        finding(&judgement, "exact");
        if has_timetable && evidence.settings.load.is_open() {
            finding(&judgement, "timetable");
        }
        evidence
    })
}

/// Numbers of the connections of which a row has this fault.
fn connections_with(evidence: &Evidence, fault: FaultKind) -> Vec<u64> {
    let rows = evidence.joined.pairs.iter().map(|pair| &pair.server);
    let mut numbers: Vec<u64> = rows
        .filter(|row| row.fault == fault)
        .map(|row| row.connection)
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

const CLIENTS: [&str; 4] = [
    "connections = 4\nthreads = 2\nduration = '400ms'",
    "connections = 5\npipeline = 8\nthreads = 2\nrate = 3000\nduration = '400ms'",
    "connections = 3\npipeline = 4\nrate = 4000\narrivals = 'poisson'\nduration = '400ms'",
    "connections = 3\npipeline = 4\npipeline-mode = 'batch'\nrate = 2000\nduration = '400ms'",
];

#[test]
fn single_freezes_and_several_together_are_exact() {
    for client in CLIENTS {
        for freeze in [
            "freeze = 'at=100ms,for=70ms'",
            // The end of each lies in the next.
            "freeze = ['at=100ms,for=30ms', 'at=125ms,for=30ms', 'every=50ms,for=7ms,first=1ms']",
        ] {
            let server = format!("latency = 'uniform(500us,2ms)'\n{freeze}");
            for evidence in exact(&server, client) {
                assert!(!connections_with(&evidence, FaultKind::Frozen).is_empty());
            }
        }
    }
}

#[test]
fn a_freeze_of_one_connection_holds_that_one_alone() {
    for client in CLIENTS {
        let server = "latency = 'uniform(500us,2ms)'\nworkers = 2\n\
                      freeze = ['every=60ms,for=20ms,connection=2', 'at=90ms,for=50ms,connection=2']";
        for evidence in exact(server, client) {
            assert_eq!(connections_with(&evidence, FaultKind::Frozen), [2]);
            let numbers = connections_with(&evidence, FaultKind::None);
            assert!(numbers.len() >= 3, "{numbers:?}");
        }
    }
}

#[test]
fn what_a_cut_takes_is_lost_and_nothing_else() {
    for cut in [
        "cut = 'every=90ms,how=reset'",
        "cut = ['at=33ms,connection=1', 'at=100ms']",
        // Some wait for the end of a freeze when it comes.
        "cut = 'at=120ms'\nfreeze = 'at=100ms,for=50ms'",
    ] {
        for client in CLIENTS {
            let server = format!("latency = 'uniform(500us,8ms)'\n{cut}");
            let client = format!("{client}\nexpect.failed = 1000");
            for evidence in exact_without_timetable(&server, &client) {
                let lost = evidence.summary.tally.outcomes().lost;
                let rows = evidence.joined.pairs.iter().map(|pair| &pair.server);
                let cut = rows.filter(|row| row.fault == FaultKind::Cut);
                let cut = u64::try_from(cut.count()).unwrap();
                assert!(cut > 0 && lost >= cut, "{cut} cut, {lost} lost");
                // What was on its way when the connection ended, and no more.
                let on_their_way = u64::try_from(evidence.joined.excused.len()).unwrap();
                assert_eq!(lost, cut + on_their_way);
            }
        }
    }
}

#[test]
fn a_queue_is_one_line_for_all_connections_threads_and_workers() {
    for queue in [
        "queue = 'servers=1,service=uniform(200us,700us)'",
        "queue = 'servers=2,service=exponential(mean=600us)'\nlatency = 'uniform(0,1ms)'",
        // All that a freeze holds comes to the queue at its end.
        "queue = 'servers=2,service=uniform(100us,900us)'\nfreeze = 'every=100ms,for=30ms'",
        "queue = 'servers=1,service=uniform(200us,700us)'\nfreeze = 'every=90ms,for=30ms,connection=1'",
        "queue = 'servers=1,service=uniform(100us,700us),limit=1'",
        "queue = 'servers=1,service=uniform(100us,700us),limit=0'",
    ] {
        for client in CLIENTS {
            let server = format!("workers = 2\n{queue}");
            let client = format!("{client}\nexpect.failed = 100000");
            for evidence in exact(&server, &client) {
                let rows = evidence.joined.pairs.iter().map(|pair| &pair.server);
                let nobody_waits = queue.contains("limit=0");
                assert_eq!(
                    rows.clone().all(|row| row.wait_ns == 0),
                    nobody_waits,
                    "{queue}"
                );
                let refused = evidence.summary.tally.outcomes().errors;
                if nobody_waits || !queue.contains("limit") {
                    assert_eq!(refused > 0, nobody_waits, "{refused} refused by {queue}");
                }
            }
        }
    }
}

/// Waits of an open loop of Poisson arrivals, in seconds, and the share of refused requests.
fn waits(queue: &str, rate: u32, requests: u32) -> [(Vec<f64>, f64); 2] {
    let server = format!("queue = '{queue}'");
    let client = format!(
        "connections = 64\npipeline = 64\nrate = {rate}\narrivals = 'poisson'\n\
         requests = {requests}\nexpect.failed = 1000000"
    );
    exact(&server, &client).map(|evidence| {
        let load = evidence
            .joined
            .pairs
            .iter()
            .filter(|pair| pair.is_measured());
        let (refused, served): (Vec<_>, Vec<_>) =
            load.partition(|pair| pair.server.fault == FaultKind::Refused);
        let share = refused.len() as f64 / f64::from(requests);
        let wait = |pair: &&kvlab::truth::Pair| pair.server.wait_ns as f64 / 1e9;
        (served.iter().map(wait).collect(), share)
    })
}

/// Chance that a request has to wait, of `offered` erlangs on so many servers: Erlang's formula C.
fn erlang_c(servers: u32, offered: f64) -> f64 {
    let loss = erlang_b(servers, offered);
    let busy = offered / f64::from(servers);
    loss / (1.0 - busy * (1.0 - loss))
}

/// Chance that a request is lost where none may wait: Erlang's formula B, by its recursion.
fn erlang_b(servers: u32, offered: f64) -> f64 {
    (1..=servers).fold(1.0, |loss, server| {
        offered * loss / (f64::from(server) + offered * loss)
    })
}

#[test]
fn the_mean_wait_is_that_of_queueing_theory() {
    for (servers, rate) in [(1, 500), (3, 2000)] {
        let requests = 60_000;
        // A service of 1 ms: so many erlangs.
        let offered = f64::from(rate) / 1e3;
        let busy = offered / f64::from(servers);
        let spare = f64::from(servers) * 1e3 - f64::from(rate);
        let expected = erlang_c(servers, offered) / spare;
        // The variance of the mean of n waits that depend on each other (Daley 1968, for one server
        // as fast as all together, where waiting is more usual).
        let b = busy;
        let variance = b * (2.0 + 5.0 * b - 4.0 * b.powi(2) + b.powi(3)) / (1.0 - b).powi(4);
        let deviation = (variance / f64::from(requests)).sqrt() / (f64::from(servers) * 1e3);
        let queue = format!("servers={servers},service=exponential(mean=1ms)");
        for (waits, _) in waits(&queue, rate, requests) {
            let mean = waits.iter().sum::<f64>() / waits.len() as f64;
            assert!(
                (mean - expected).abs() < 4.0 * deviation,
                "{servers} servers: mean wait {mean}, theory {expected} +- {deviation}"
            );
            let waiting = waits.iter().filter(|wait| **wait > 0.0).count() as f64;
            let share = waiting / waits.len() as f64;
            let chance = erlang_c(servers, offered);
            assert!(
                (share - chance).abs() < 0.03,
                "{share} wait, theory {chance}"
            );
        }
    }
}

#[test]
fn the_share_of_refused_requests_is_that_of_queueing_theory() {
    let requests = 20_000;
    let expected = erlang_b(2, 1.5);
    assert!((expected - 1.125 / 3.625).abs() < 1e-12);
    for (waits, refused) in waits(
        "servers=2,service=exponential(mean=1ms),limit=0",
        1500,
        requests,
    ) {
        assert!(waits.iter().all(|wait| *wait == 0.0));
        let deviation = (expected * (1.0 - expected) / f64::from(requests)).sqrt();
        // Refusals come in groups; twice the deviation of independent ones is ample.
        assert!(
            (refused - expected).abs() < 8.0 * deviation,
            "{refused} refused"
        );
    }
}

#[test]
fn delays_that_change_over_time_are_exact() {
    for shape in [
        "shape = 'step(at=130ms,factor=2.5)'",
        "shape = 'ramp(at=50ms,over=200ms,factor=0.333333)'",
        "shape = 'ramp(at=50ms,over=250ms,add=3ms)'",
        "shape = ['spike(at=20ms,for=7ms,every=40ms,add=4ms)', 'step(at=200ms,factor=2)']",
        "shape = 'ramp(at=0,over=1s,factor=5)'\nfreeze = 'every=90ms,for=30ms'\n\
         queue = 'servers=4,service=exponential(mean=500us)'",
    ] {
        for client in CLIENTS {
            let server = format!("latency = 'uniform(500us,2ms)'\n{shape}");
            for evidence in exact(&server, client) {
                let rows = evidence.joined.pairs.iter().map(|pair| &pair.server);
                let changed = rows.clone().filter(|row| row.wanted_ns != row.drawn_ns);
                assert!(changed.count() > 0, "{shape}");
            }
        }
    }
}

/// A file of the server's tests.
fn data(name: &str) -> String {
    format!(
        "{}/../mock-server/tests/data/{name}",
        env!("CARGO_MANIFEST_DIR")
    )
}

#[test]
fn measured_laws_are_drawn_as_they_are() {
    let [log, csv] = ["two-intervals.hlog", "quantiles.csv"].map(data);
    for law in [
        "empirical(0%:800us,50%:1ms,99%:4ms,100%:20ms)".to_owned(),
        format!("empirical(file={log},unit=us)"),
        format!("empirical(file={csv})"),
    ] {
        let client = "connections = 9\npipeline = 16\nrate = 5000\nduration = '4s'";
        for evidence in exact(&format!("latency = '{law}'"), client) {
            assert_eq!(evidence.summary.due, 20_000);
        }
    }
}

#[test]
fn recorded_delays_come_in_their_order_to_all_connections() {
    let list = data("delays.txt");
    for client in CLIENTS {
        let server = format!("workers = 2\nlatency = 'replay(file={list})'");
        for evidence in exact(&server, client) {
            let mut rows: Vec<_> = evidence
                .joined
                .pairs
                .iter()
                .map(|pair| &pair.server)
                .collect();
            rows.retain(|row| row.class != Class::Admin);
            let first = rows.iter().min_by_key(|row| row.start).unwrap();
            assert!([1_000_000, 2_500_000, 900_000, 0].contains(&first.drawn_ns));
        }
    }
}
