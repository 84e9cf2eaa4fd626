//! Every timing model of the server under virtual time: exact to the nanosecond, in the rows and in the
//! simulated timetable, on both protocols.

use kvlab::runner::Evidence;
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
