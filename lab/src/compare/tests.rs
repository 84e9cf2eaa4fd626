use serde_json::json;

use super::*;

/// A closed loop's result whose service times are all `ns` and whose rate is its inverse.
fn run(ns: u64, started: u64) -> Stored {
    let document = json!({
        "schema": "kvlab-bench",
        "schema_version": 1,
        "settings": {"connections": 10, "seed": started, "target": "redis://127.0.0.1:1/0"},
        "result": {
            "load_model": "closed",
            "interrupted": false,
            "started_unix_ns": started,
            "rate_per_second": 1e9 / float(ns),
            "total": {
                "outcomes": {"errors": 0, "timeouts": 0, "connection_lost": 0, "not_sent": 0},
                "service": {
                    "mean_ns": float(ns), "p50_ns": ns, "p90_ns": ns, "p99_ns": ns, "p999_ns": null,
                },
                "response": null,
            },
            "notices": [],
        },
    });
    let mut runs = stored::parse("a test", &document.to_string()).unwrap();
    runs.remove(0)
}

/// Interleaved runs: the first group starts at even, the second at odd moments.
fn groups(a: &[u64], b: &[u64]) -> (Group, Group) {
    let group = |name: &str, values: &[u64], first: u64| Group {
        name: name.to_owned(),
        runs: (0..)
            .zip(values)
            .map(|(place, ns)| run(*ns, first + 2 * place))
            .collect(),
    };
    (group("A", a, 0), group("B", b, 1))
}

fn outcomes(a: &[u64], b: &[u64]) -> Vec<(String, Outcome)> {
    let (a, b) = groups(a, b);
    let comparison = compare(&a, &b).unwrap();
    let figures = comparison.figures.into_iter();
    figures
        .map(|figure| (figure.figure, figure.outcome))
        .collect()
}

const SLOW: [u64; 8] = [1_100, 1_101, 1_102, 1_103, 1_104, 1_105, 1_106, 1_107];
const FAST: [u64; 8] = [1_000, 1_001, 1_002, 1_003, 1_004, 1_005, 1_006, 1_007];

#[test]
fn groups_that_lie_apart_differ() {
    let found = outcomes(&FAST, &SLOW);
    let expected = [
        ("service mean", Outcome::Higher),
        ("service p50", Outcome::Higher),
        ("service p90", Outcome::Higher),
        ("service p99", Outcome::Higher),
        ("service p99.9", Outcome::NotAvailable),
        ("rate", Outcome::Lower),
    ];
    let expected: Vec<_> = expected
        .map(|(name, outcome)| (name.to_owned(), outcome))
        .into();
    assert_eq!(found, expected);
    // The other way round everything turns.
    assert_eq!(outcomes(&SLOW, &FAST)[0].1, Outcome::Lower);
}

#[test]
fn mixed_groups_do_not_differ() {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for (place, ns) in FAST.iter().chain(&SLOW).enumerate() {
        if place % 2 == 0 {
            a.push(*ns)
        } else {
            b.push(*ns)
        }
    }
    assert!(
        outcomes(&a, &b)
            .iter()
            .all(|(_, outcome)| matches!(outcome, Outcome::NoDifference | Outcome::NotAvailable))
    );
}

#[test]
fn too_few_runs_have_no_verdict() {
    let (a, b) = groups(&FAST[..7], &SLOW);
    let comparison = compare(&a, &b).unwrap();
    assert_eq!(comparison.figures[0].outcome, Outcome::TooFewRuns);
    assert_eq!(
        comparison.notices,
        ["A has 7 of the 8 runs that a verdict needs"]
    );
}

#[test]
fn the_correction_is_holms() {
    let (a, b) = groups(&FAST, &SLOW);
    let mut figures = compare(&a, &b).unwrap().figures;
    let p_values = [0.01, 0.04, 0.03, 0.005];
    for (figure, p) in figures.iter_mut().zip(p_values) {
        figure.p = Some(p);
    }
    figures.truncate(4);
    correct(&mut figures);
    let corrected: Vec<f64> = figures
        .iter()
        .map(|figure| figure.p_corrected.unwrap())
        .collect();
    // The example of Holm's method: 0.005 x 4, 0.01 x 3, 0.03 x 2, then not below the one before.
    for (found, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
        assert!((found - expected).abs() < 1e-12, "{corrected:?}");
    }
}

#[test]
fn groups_of_unlike_things_are_refused() {
    let (mut a, b) = groups(&FAST, &SLOW);
    a.runs[3].settings["connections"] = json!(20);
    let message = compare(&a, &b).unwrap_err().to_string();
    assert!(message.contains("(connections)"), "{message}");

    let (a, mut b) = groups(&FAST, &SLOW);
    for run in &mut b.runs {
        run.numbers.load_model = "open".to_owned();
    }
    let message = compare(&a, &b).unwrap_err().to_string();
    assert!(
        message.contains("A is a closed loop and B an open loop"),
        "{message}"
    );
}

#[test]
fn what_the_reader_must_know_is_said() {
    let (a, mut b) = groups(&FAST, &SLOW);
    for run in &mut b.runs {
        run.settings["connections"] = json!(20);
        run.numbers.started_unix_ns += 1_000;
    }
    b.runs[0].numbers.total.outcomes.timeouts = 3;
    let notices = compare(&a, &b).unwrap().notices.join("; ");
    for part in [
        "B: 3 requests failed",
        "the groups differ in their settings: connections",
        "the runs were not interleaved",
    ] {
        assert!(notices.contains(part), "{notices}");
    }
}

#[test]
fn stored_results_come_as_one_as_an_array_or_in_a_row() {
    let one = json!({
        "schema": "kvlab-bench", "schema_version": 1, "settings": {},
        "result": {
            "load_model": "closed", "interrupted": false, "started_unix_ns": 1,
            "rate_per_second": 1.0,
            "total": {
                "outcomes": {"errors": 0, "timeouts": 0, "connection_lost": 0, "not_sent": 0},
                "service": {"mean_ns": 1.0, "p50_ns": 1, "p90_ns": 1, "p99_ns": 1, "p999_ns": 1},
                "response": null,
            },
        },
    });
    let text = one.to_string();
    assert_eq!(stored::parse("x", &text).unwrap().len(), 1);
    assert_eq!(
        stored::parse("x", &format!("[{text},{text}]"))
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        stored::parse("x", &format!("{text}\n{text}\n{text}"))
            .unwrap()
            .len(),
        3
    );
    for (wrong, part) in [
        ("", "x: no result"),
        ("{}", "x: no result of kvlab bench: missing field `schema`"),
        (
            &text.replace("kvlab-bench", "other"),
            "expected kvlab-bench version 1, found other version 1",
        ),
        (&text.replace("false", "true"), "interrupted"),
        ("{", "x: EOF"),
    ] {
        let message = stored::parse("x", wrong).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
}
