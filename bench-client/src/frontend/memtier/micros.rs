//! Latencies in microseconds, as memtier's histograms and their readers have them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use crate::record::{LATENCY_MAX_NS, Latency};

/// The histogram of the latencies in microseconds, to the nearest; three digits, up to an hour.
#[must_use]
pub fn histogram(latency: &Latency) -> Histogram<u64> {
    let mut micros = Histogram::new_with_bounds(1, LATENCY_MAX_NS / 1_000, 3)
        .unwrap_or_else(|error| unreachable!("constant bounds: {error:?}"));
    let source = latency.histogram();
    for value in source.iter_recorded() {
        // The middle of the bucket is on average right, its end is not.
        let ns = source.median_equivalent(value.value_iterated_to());
        let rounded = (ns.clamp(latency.min_ns(), latency.max_ns().max(1)) + 500) / 1_000;
        let us = rounded.min(LATENCY_MAX_NS / 1_000);
        micros.saturating_record_n(us, value.count_since_last_iteration());
    }
    micros
}

/// The histogram (V2, deflated, base64), as log readers take it.
#[must_use]
pub fn compressed(latency: &Latency) -> String {
    let mut bytes = Vec::new();
    match V2DeflateSerializer::new().serialize(&histogram(latency), &mut bytes) {
        Ok(_) => STANDARD.encode(&bytes),
        // Writing to memory does not fail; an empty text is a histogram of nothing.
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;

    use super::*;

    #[test]
    fn microseconds_are_the_nearest() {
        let mut latency = Latency::default();
        for ns in [1_499, 1_500, 2_000_000_000, 3_600_000_000_000] {
            latency.record(ns);
        }
        let micros = histogram(&latency);
        assert_eq!(micros.len(), 4);
        assert_eq!((micros.count_at(1), micros.count_at(2)), (1, 1));
        let near = |found: u64, exact: u64| found.abs_diff(exact) * 1_000 <= exact;
        assert!(near(micros.value_at_quantile(0.75), 2_000_000));
        assert!(near(micros.max(), 3_600_000_000), "an hour is not cut");
    }

    #[test]
    fn a_log_reader_finds_the_same_counts() {
        let mut latency = Latency::default();
        for ns in [55_000, 55_000, 2_431_000] {
            latency.record(ns);
        }
        let bytes = STANDARD.decode(compressed(&latency)).unwrap();
        let read: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .unwrap();
        assert_eq!(read.len(), 3);
        assert_eq!((read.count_at(55), read.count_at(2_431)), (2, 1));
    }
}
