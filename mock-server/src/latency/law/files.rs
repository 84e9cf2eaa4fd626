//! Files that laws come from: quantiles as CSV, histograms as an interval log, delays as lines.
//!
//! ```text
//! quantile,latency_ms          #[Histogram log format version 1.3]            # recorded on Monday
//! 0,0.8                        "StartTimestamp","Interval_Length",...         1.2ms
//! 0.5,1                        Tag=GET.service,0.000,1.000,3.145,HISTFAAA...  900us
//! 1,20                                                                        30ms
//! ```
//!
//! Quantiles are numbers from 0 to 1, or percentages with a `%`; times have a unit, or the name of
//! the second column ends in one. An interval log is that of HdrHistogram, version 1.2 or later with
//! histograms in V2; it does not say what it counts.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use kvlab_timing::duration;

use super::LawError;
use super::counts::Counts;
use super::curve::{Curve, Point};
use super::empirical::{Table, Unit};
use super::replay::Replay;
use crate::stamp::LONGEST_NS;

/// A file of quantiles or histograms; its first line with content tells which.
pub(super) fn read_table(
    path: &Path,
    unit: Option<Unit>,
    tag: Option<&str>,
) -> Result<Table, LawError> {
    let text = read(path)?;
    let heading = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'));
    if heading.is_some_and(|line| line.starts_with("quantile")) {
        if unit.is_some() || tag.is_some() {
            let message = "a file of quantiles has no tags and names its unit itself";
            return Err(wrong(path, None, message));
        }
        return read_quantiles(path, &text).map(Table::Curve);
    }
    read_log(path, &text, unit.unwrap_or(Unit::Nanos), tag).map(Table::Counts)
}

/// A list of delays, in nanoseconds.
pub(super) fn read_delays(path: &Path) -> Result<Vec<u64>, LawError> {
    let text = read(path)?;
    let mut delays = Vec::new();
    for (number, line) in contents(&text) {
        let delay = time(line).map_err(|message| wrong(path, Some(number), message))?;
        if delays.len() == Replay::MAX_DELAYS {
            return Err(wrong(path, Some(number), "more than 10000000 delays"));
        }
        delays.push(delay);
    }
    if delays.is_empty() {
        return Err(wrong(path, None, "there is no delay in it"));
    }
    Ok(delays)
}

fn read(path: &Path) -> Result<String, LawError> {
    fs::read_to_string(path).map_err(|error| wrong(path, None, error.to_string()))
}

fn wrong(path: &Path, line: Option<usize>, message: impl Into<String>) -> LawError {
    LawError::File {
        place: match line {
            Some(line) => format!("{}, line {line}", path.display()),
            None => path.display().to_string(),
        },
        message: message.into(),
    }
}

/// The lines with content, numbered from 1, without comments.
fn contents(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(place, line)| (place + 1, line.split('#').next().unwrap_or_default().trim()))
        .filter(|(_, line)| !line.is_empty())
}

fn time(text: &str) -> Result<u64, String> {
    let time = duration::parse(text).map_err(|error| error.to_string())?;
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    if nanos > LONGEST_NS {
        return Err(format!("{text} is longer than 1h"));
    }
    Ok(nanos)
}

fn read_quantiles(path: &Path, text: &str) -> Result<Curve, LawError> {
    let mut lines = contents(text);
    let (number, heading) = lines.next().unwrap_or((1, ""));
    let column = heading.split(',').map(str::trim).nth(1).unwrap_or_default();
    let unit = match column.strip_prefix("latency") {
        Some("") => "",
        Some(rest) if rest.strip_prefix('_').and_then(Unit::named).is_some() => &rest[1..],
        _ => {
            let message = "expected the heading quantile,latency or, for times without units, \
                           quantile,latency_us and the like";
            return Err(wrong(path, Some(number), message));
        }
    };
    let mut points = Vec::new();
    for (number, line) in lines {
        let point = point(line, unit).map_err(|message| wrong(path, Some(number), message))?;
        points.push(point);
    }
    Curve::new(points).map_err(|error| wrong(path, None, error.to_string()))
}

fn point(line: &str, unit: &str) -> Result<Point, String> {
    let (quantile, latency) = line
        .split_once(',')
        .ok_or("expected a quantile and a latency with a comma between")?;
    let quantile = quantile.trim();
    let (digits, whole) = match quantile.strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (quantile, 1.0),
    };
    let share = digits
        .trim()
        .parse::<f64>()
        .ok()
        .map(|number| number / whole);
    let share = share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("'{quantile}' is no quantile from 0 to 1"))?;
    // Further columns are somebody else's.
    let latency = latency.split(',').next().unwrap_or_default().trim();
    let ns = time(&format!("{latency}{unit}"))? as f64;
    Ok(Point { share, ns })
}

fn read_log(path: &Path, text: &str, unit: Unit, tag: Option<&str>) -> Result<Counts, LawError> {
    let mut counts = Vec::new();
    let mut tags: BTreeSet<Option<String>> = BTreeSet::new();
    let mut deserializer = Deserializer::new();
    for (place, line) in text.lines().enumerate() {
        let fault = |message: &str| wrong(path, Some(place + 1), message);
        if line.trim().is_empty() || line.starts_with("\"StartTimestamp\"") {
            continue;
        }
        for entry in IntervalLogIterator::new(format!("{line}\n").as_bytes()) {
            let entry = entry.map_err(|_| fault("neither quantiles nor a histogram log"))?;
            let LogEntry::Interval(interval) = entry else {
                continue;
            };
            let found = interval.tag().map(|tag| tag.as_str().to_owned());
            let is_wanted = tag.is_none() || found.as_deref() == tag;
            tags.insert(found);
            if !is_wanted {
                continue;
            }
            let bytes = STANDARD
                .decode(interval.encoded_histogram())
                .map_err(|_| fault("the histogram is not base64"))?;
            let histogram: Histogram<u64> = deserializer
                .deserialize(&mut bytes.as_slice())
                .map_err(|_| fault("the histogram cannot be decoded"))?;
            for value in histogram.iter_recorded() {
                let ns = value.value_iterated_to().saturating_mul(unit.nanos());
                counts.push((ns.min(LONGEST_NS), value.count_at_value()));
            }
        }
    }
    if tag.is_none() && tags.len() > 1 {
        let message = format!("it holds several histograms; choose one: {}", list(&tags));
        return Err(wrong(path, None, message));
    }
    let law = Counts::new(counts);
    if law.total() == 0 {
        let message = match tag {
            Some(tag) => format!(
                "nothing was counted for tag={tag}; there is {}",
                list(&tags)
            ),
            None => "nothing was counted in it".to_owned(),
        };
        return Err(wrong(path, None, message));
    }
    Ok(law)
}

fn list(tags: &BTreeSet<Option<String>>) -> String {
    let name = |tag: &Option<String>| match tag {
        Some(tag) => format!("tag={tag}"),
        None => "one without tag".to_owned(),
    };
    match tags.is_empty() {
        true => "none".to_owned(),
        false => tags.iter().map(name).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use crate::latency::{Distribution, Empirical};

    const MS: f64 = 1e6;

    fn data(name: &str) -> String {
        format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    fn law(text: &str) -> Distribution {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn quantiles_come_from_csv_with_either_kind_of_times() {
        let named = law(&format!("empirical(file={})", data("quantiles.csv")));
        let inline = law("empirical(0%:500us,50%:1ms,90%:2ms,99%:10ms,100%:25.5ms)");
        let with_units = law(&format!(
            "empirical(file={})",
            data("quantiles-with-units.csv")
        ));
        for (law, q, ns) in [
            (&named, 0.25, 0.75 * MS),
            (&named, 0.9, 2.0 * MS),
            (&named, 0.995, 17.75 * MS),
            (&with_units, 0.75, 750.5 * MS),
        ] {
            assert!((law.quantile_ns(q) - ns).abs() < 1e-3, "{law} at {q}");
        }
        for q in [0.0, 0.3, 0.5, 0.95, 1.0] {
            assert_eq!(named.quantile_ns(q), inline.quantile_ns(q));
        }
    }

    #[test]
    fn a_histogram_log_is_read_whole_or_by_tag() {
        // 500 us 60 times, 1 ms 35 times, 20 ms 5 times; the bucket of the last ends at 20.015 ms.
        let all = law(&format!(
            "empirical(file={},unit=us)",
            data("two-intervals.hlog")
        ));
        let at = |q| all.quantile_ns(q) / MS;
        assert_eq!([at(0.0), at(0.6), at(0.61)], [0.5, 0.5, 1.0]);
        assert_eq!([at(0.95), at(0.951), at(1.0)], [1.0, 20.015, 20.015]);
        let mean = (60.0 * 0.5 + 35.0 + 5.0 * 20.015) / 100.0;
        assert!((all.mean_ns() / MS - mean).abs() < 1e-9);
        assert_eq!(all.cdf(MS - 1.0), 0.6);
        assert_eq!(all.cdf(MS), 0.95);
        let text = format!("empirical(file={},tag=GET.service)", data("two-tags.hlog"));
        let tagged = law(&text);
        // Nanoseconds, where nothing else is said.
        assert_eq!(
            [tagged.quantile_ns(0.9), tagged.quantile_ns(0.91)],
            [250.0, 900.0]
        );
        assert_eq!(tagged.to_string(), text);
        assert_eq!(law(&text), tagged);
    }

    #[test]
    fn faulty_files_are_refused_with_file_and_line() {
        let folder = std::env::temp_dir().join(format!("kvlab-laws-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let fault = |name: &str, text: &str, law: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            let law = law.replace("FILE", &path.display().to_string());
            let error = law.parse::<Distribution>().unwrap_err().problem.to_string();
            error.replace(&path.display().to_string(), "FILE")
        };
        for (text, law, message) in [
            (
                "quantile,latency\n0,1ms\n0.5,2\n1,3ms\n",
                "empirical(file=FILE)",
                "FILE, line 3: '2' lacks a unit: expected ns, us, ms, s, m or h, as in 2ms",
            ),
            (
                "quantile,latency_us\n0,1\n1.5,2\n",
                "empirical(file=FILE)",
                "FILE, line 3: '1.5' is no quantile from 0 to 1",
            ),
            (
                "quantile,latency_us\n0,5\n1,2\n",
                "empirical(file=FILE)",
                "FILE: 2000 ns after 5000 ns; expected times that do not fall",
            ),
            (
                "quantile,latency_us\n0.5,1\n1,2\n",
                "empirical(file=FILE)",
                "FILE: 50% at an end; expected 0% first and 100% last",
            ),
            (
                "quantile,time\n0,1\n",
                "empirical(file=FILE)",
                "FILE, line 1: expected the heading quantile,latency or, for times without units, \
                 quantile,latency_us and the like",
            ),
            (
                "hello\n",
                "empirical(file=FILE)",
                "FILE, line 1: neither quantiles nor a histogram log",
            ),
            (
                "",
                "empirical(file=FILE)",
                "FILE: nothing was counted in it",
            ),
            (
                "# none\n\n",
                "replay(file=FILE)",
                "FILE: there is no delay in it",
            ),
            (
                "1ms\n2h\n",
                "replay(file=FILE)",
                "FILE, line 2: 2h is longer than 1h",
            ),
        ] {
            assert_eq!(fault("law", text, law), message);
        }
        std::fs::remove_dir_all(&folder).unwrap();
        let missing = Empirical::from_file("no/such/file", None, None).unwrap_err();
        assert!(
            missing.to_string().starts_with("no/such/file: "),
            "{missing}"
        );
        let two = Empirical::from_file(&data("two-tags.hlog"), None, None).unwrap_err();
        let message = "it holds several histograms; choose one: tag=GET.service, tag=SET.service";
        assert!(two.to_string().ends_with(message), "{two}");
        let none = Empirical::from_file(&data("two-tags.hlog"), None, Some("DEL")).unwrap_err();
        let message = "nothing was counted for tag=DEL; there is tag=GET.service, tag=SET.service";
        assert!(none.to_string().ends_with(message), "{none}");
    }
}
