//! How delays were to change over time, recomputed from the rule.
//!
//! ```text
//! share of the full effect at t after the server's start, step: 0 before A, 1 from A on
//!   spike: 1 for t in [A + n E, A + n E + L), 0 otherwise
//!   ramp: 0 before A, (t - A) / O up to A + O, then 1
//! delay x (1 + (F - 1) x share), or delay + T x share, rounded down, at most an hour
//! ```

use kvlab_mock_server::latency::{Change, Course, Shape};
use kvlab_mock_server::stamp::LONGEST_NS;
use kvlab_timing::Stamp;

/// The shapes of a server, which work one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shapes {
    started: u64,
    all: Vec<Shape>,
}

impl Shapes {
    /// The shapes of a server that started at `started`.
    #[must_use]
    pub fn new(started: Stamp, shapes: &[Shape]) -> Self {
        Self {
            started: started.as_nanos(),
            all: shapes.to_vec(),
        }
    }

    /// What was wanted for a request that started at `start` and for which `drawn_ns` was drawn.
    #[must_use]
    pub fn wanted(&self, drawn_ns: u64, start: u64) -> u64 {
        let since = start.saturating_sub(self.started);
        let mut delay = i128::from(drawn_ns);
        for Shape { course, change } in &self.all {
            // The share as a fraction of whole numbers.
            let (part, whole) = match *course {
                Course::Step { at_ns } => (u64::from(since >= at_ns), 1),
                Course::Ramp { at_ns, over_ns } => {
                    (since.saturating_sub(at_ns).min(over_ns), over_ns)
                }
                Course::Spike { when, length_ns } => {
                    let into = since.checked_sub(when.first_ns);
                    let into = match when.every_ns {
                        Some(every) => into.map(|into| into % every),
                        None => into,
                    };
                    (u64::from(into.is_some_and(|into| into < length_ns)), 1)
                }
            };
            let (part, whole) = (i128::from(part), i128::from(whole));
            delay += match *change {
                Change::Factor { millionths } => {
                    let more = i128::from(millionths) - 1_000_000;
                    (delay * more * part).div_euclid(1_000_000 * whole)
                }
                Change::Add { ns } => (i128::from(ns) * part).div_euclid(whole),
            };
            delay = delay.clamp(0, i128::from(LONGEST_NS));
        }
        u64::try_from(delay).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(texts: &[&str], drawn_ns: u64, since: u64) -> u64 {
        let shapes: Vec<Shape> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Shapes::new(Stamp::from_nanos(500), &shapes).wanted(drawn_ns, 500 + since)
    }

    #[test]
    fn delays_change_by_the_share_of_the_effect() {
        for (text, since, expected) in [
            ("step(at=100ns,factor=3)", 99, 1_000),
            ("step(at=100ns,factor=3)", 100, 3_000),
            ("ramp(at=100ns,over=8ns,factor=0.5)", 101, 937),
            ("ramp(at=100ns,over=8ns,factor=0.5)", 200, 500),
            ("ramp(at=100ns,over=8ns,add=20ns)", 103, 1_007),
            ("spike(at=100ns,for=10ns,add=20ns)", 109, 1_020),
            ("spike(at=100ns,for=10ns,add=20ns)", 110, 1_000),
            ("spike(at=100ns,for=10ns,every=50ns,factor=0)", 205, 0),
        ] {
            assert_eq!(wanted(&[text], 1_000, since), expected, "{text} at {since}");
        }
    }

    #[test]
    fn shapes_work_one_after_the_other_up_to_an_hour() {
        let both = ["step(at=0,add=10ns)", "step(at=0,factor=2)"];
        assert_eq!(wanted(&both, 5, 0), 30);
        assert_eq!(
            wanted(&["step(at=0,factor=1000)"], LONGEST_NS, 0),
            LONGEST_NS
        );
    }
}
