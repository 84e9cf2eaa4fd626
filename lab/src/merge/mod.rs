//! Adding the histogram logs of several clients.
//!
//! Histograms add without loss; percentiles do not: the mean of two p99 is no p99 of anything. So the
//! logs' histograms are added, tag by tag, and every figure is computed from the sums.

mod log;
mod report;

pub use log::{Entry, Log, LogError};

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

/// Several logs, added.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The files that were added.
    pub files: Vec<String>,
    /// All histograms of each tag together.
    pub tags: BTreeMap<String, Histogram<u64>>,
    /// Histograms of equal tag, begin and length added; sorted by begin.
    pub entries: Vec<Entry>,
    /// What a value of 1 means, in nanoseconds.
    pub unit_ns: u64,
    /// What a reader must know.
    pub notices: Vec<String>,
}

/// Adds the logs; `unit_ns` is what a value of 1 means in all of them.
///
/// # Errors
/// When histograms cannot be added.
pub fn merge(logs: Vec<Log>, unit_ns: u64) -> Result<Merged, LogError> {
    let mut notices: Vec<String> = Vec::new();
    notices.extend(logs.iter().filter_map(|log| log.notice.clone()));
    notices.extend(apart(&logs));
    notices.extend(lacking(&logs));
    let files = logs.iter().map(|log| log.file.clone()).collect();
    let mut tags: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
    let mut entries: BTreeMap<(Duration, Duration, String), Histogram<u64>> = BTreeMap::new();
    for log in logs {
        for entry in log.entries {
            let wrong = |error: String| LogError::add(&log.file, &entry.tag, &error);
            add(&mut tags, entry.tag.clone(), &entry.histogram).map_err(wrong)?;
            let place = (entry.begin, entry.length, entry.tag.clone());
            add(&mut entries, place, &entry.histogram).map_err(wrong)?;
        }
    }
    let entries = entries.into_iter();
    Ok(Merged {
        files,
        tags,
        entries: entries
            .map(|((begin, length, tag), histogram)| Entry {
                begin,
                length,
                tag,
                histogram,
            })
            .collect(),
        unit_ns,
        notices,
    })
}

/// Adds to the sum of a place. Sums grow with what is added, so nothing is cut off.
fn add<K: Ord>(
    sums: &mut BTreeMap<K, Histogram<u64>>,
    place: K,
    histogram: &Histogram<u64>,
) -> Result<(), String> {
    match sums.entry(place) {
        std::collections::btree_map::Entry::Vacant(empty) => {
            let digits = histogram.sigfig();
            let mut sum = Histogram::new(digits).map_err(|error| error.to_string())?;
            sum.auto(true);
            sum.add(histogram).map_err(|error| error.to_string())?;
            empty.insert(sum);
            Ok(())
        }
        std::collections::btree_map::Entry::Occupied(mut sum) => {
            let sum = sum.get_mut();
            if sum.sigfig() != histogram.sigfig() {
                return Err(format!(
                    "{} digits where others have {}",
                    histogram.sigfig(),
                    sum.sigfig()
                ));
            }
            sum.add(histogram).map_err(|error| error.to_string())
        }
    }
}

/// Says how far the starts of the logs lie apart, when that is more than clocks differ.
fn apart(logs: &[Log]) -> Option<String> {
    let starts: Vec<Duration> = logs.iter().filter_map(|log| log.start).collect();
    let (first, last) = (starts.iter().min()?, starts.iter().max()?);
    let apart = *last - *first;
    (apart > TOGETHER).then(|| {
        format!(
            "the runs began up to {:.3} s apart (--start-at lets them begin together)",
            apart.as_secs_f64()
        )
    })
}

/// Says which logs lack tags that others have.
fn lacking(logs: &[Log]) -> Vec<String> {
    let all: std::collections::BTreeSet<&str> = logs
        .iter()
        .flat_map(|log| log.entries.iter().map(|entry| entry.tag.as_str()))
        .collect();
    logs.iter()
        .filter_map(|log| {
            let lacks: Vec<&str> = all
                .iter()
                .filter(|tag| !log.entries.iter().any(|entry| entry.tag == **tag))
                .copied()
                .collect();
            (!lacks.is_empty()).then(|| format!("{} has nothing of {}", log.file, lacks.join(", ")))
        })
        .collect()
}

/// Starts this close together are one moment, as far as clocks of several machines tell.
const TOGETHER: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests;
