use super::*;

/// Writes a log with one interval of a second for each list of values, tagged `GET.service`.
fn log(file: &str, base: u64, intervals: &[&[u64]]) -> Log {
    let entries = (0..).zip(intervals).map(|(second, values)| {
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        for value in *values {
            histogram.record(*value).unwrap();
        }
        Entry {
            begin: Duration::from_secs(second),
            length: Duration::from_secs(1),
            tag: "GET.service".to_owned(),
            histogram,
        }
    });
    Log {
        file: file.to_owned(),
        start: Some(Duration::from_secs(base)),
        entries: entries.collect(),
        notice: None,
    }
}

fn written(merged: &Merged) -> String {
    let mut out = Vec::new();
    merged.write_log(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn quantiles_come_from_the_sum_and_not_from_quantiles() {
    // 990 values of 1 ms on one machine, 1010 of 100 ms on the other: the median of all is 100 ms,
    // the mean of both medians would be 50.5 ms.
    let fast: Vec<u64> = vec![1_000_000; 990];
    let slow: Vec<u64> = vec![100_000_000; 1_010];
    let merged = merge(vec![log("a", 5, &[&fast]), log("b", 5, &[&slow])], 1).unwrap();
    let sum = &merged.tags["GET.service"];
    assert_eq!(sum.len(), 2_000);
    assert!(sum.value_at_quantile(0.5).abs_diff(100_000_000) <= 100_000);
    assert!(merged.to_string().contains("100.0"), "{merged}");
    assert!(merged.notices.is_empty());
}

#[test]
fn intervals_of_the_same_moment_become_one_and_the_log_can_be_read_again() {
    let logs = vec![log("a", 5, &[&[1_000], &[2_000]]), log("b", 5, &[&[3_000]])];
    let merged = merge(logs, 1).unwrap();
    let lengths: Vec<u64> = merged
        .entries
        .iter()
        .map(|entry| entry.histogram.len())
        .collect();
    assert_eq!(lengths, [2, 1]);
    let again = Log::parse("merged", &written(&merged)).unwrap();
    assert_eq!(again.entries.len(), 2);
    for (found, expected) in again.entries.iter().zip(&merged.entries) {
        assert_eq!(
            (found.begin, found.length),
            (expected.begin, expected.length)
        );
        assert_eq!(found.tag, expected.tag);
        assert_eq!(found.histogram, expected.histogram);
    }
}

#[test]
fn merging_is_the_same_in_any_order_and_loses_nothing() {
    let logs = || {
        [
            log("a", 0, &[&[5, 6], &[7]]),
            log("b", 0, &[&[8]]),
            log("c", 0, &[&[9], &[10]]),
        ]
    };
    let [a, b, c] = logs();
    let one = merge(vec![a, b, c], 1).unwrap();
    let [a, b, c] = logs();
    let other = merge(vec![c, b, a], 1).unwrap();
    assert_eq!(one.tags, other.tags);
    let all: Vec<u64> = one.tags["GET.service"]
        .iter_recorded()
        .map(|value| value.value_iterated_to())
        .collect();
    assert_eq!(all, [5, 6, 7, 8, 9, 10]);
}

#[test]
fn what_is_odd_is_said() {
    let mut other = log("b", 9, &[&[1]]);
    other.entries[0].tag = "SET.service".to_owned();
    let merged = merge(vec![log("a", 5, &[&[1]]), other], 1).unwrap();
    assert_eq!(
        merged.notices,
        [
            "the runs began up to 4.000 s apart (--start-at lets them begin together)",
            "a has nothing of SET.service",
            "b has nothing of GET.service",
        ]
    );
    let whole = written(&merge(vec![log("a", 5, &[&[1], &[2]])], 1).unwrap());
    let cut = &whole[..whole.len() - 5];
    let log = Log::parse("cut.hlog", cut).unwrap();
    assert_eq!(log.entries.len(), 1);
    assert_eq!(
        log.notice.as_deref(),
        Some("cut.hlog: its last line was cut off and is left out")
    );
}

#[test]
fn what_is_no_log_is_refused_with_its_line() {
    for (text, part) in [
        ("", "x: no histogram"),
        ("#[a comment]\n", "x: no histogram"),
        (
            "#[a comment]\nnonsense\n",
            "x, line 2: not a line of an interval log",
        ),
        (
            "0.0,1.0,1.0,????\n",
            "x, line 1: the histogram is not base64",
        ),
        ("0.0,1.0,1.0,AAAA\n", "x, line 1: not a histogram"),
    ] {
        let message = Log::parse("x", text).unwrap_err().to_string();
        assert!(message.starts_with(part), "{text}: {message}");
    }
}

#[test]
fn calendar_times_count_from_the_first_line() {
    let merged = merge(vec![log("a", 0, &[&[1], &[2]])], 1).unwrap();
    let text = written(&merged)
        .replace("#[BaseTime: 0.000 (seconds since epoch)]\n", "")
        .replace("Tag=GET.service,0.000", "Tag=GET.service,1700000000.000")
        .replace(
            "Tag=GET.service,1.000,1.000",
            "Tag=GET.service,1700000001.000,1.000",
        );
    let log = Log::parse("x", &text).unwrap();
    assert_eq!(log.start, Some(Duration::from_secs(1_700_000_000)));
    assert_eq!(log.entries[1].begin, Duration::from_secs(1));
}
