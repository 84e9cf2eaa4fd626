//! The line per interval that people watch while the run goes on.
//!
//! ```text
//!   12.0 s   60.0 %     1000.0/s  p50 1.034 ms  p99 ~1.312 ms  errors 0
//! ```
//!
//! On a terminal each line overwrites the last one; elsewhere each is a line of its own.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use super::number::{ms_or_na, rate};
use super::quantile::{P50, P99};
use super::{Report, Support};
use crate::record::{Interval, Phase, Summary};

/// Writes a line per interval.
pub struct Live<'a> {
    out: &'a mut dyn Write,
    overwrite: bool,
    /// Characters of the line that stands on the terminal.
    shown: usize,
    failed: u64,
}

impl<'a> Live<'a> {
    /// Writes to `out`; `overwrite` says that it is a terminal.
    pub fn new(out: &'a mut dyn Write, overwrite: bool) -> Self {
        Self {
            out,
            overwrite,
            shown: 0,
            failed: 0,
        }
    }

    fn line(&mut self, interval: &Interval) -> String {
        let outcomes = interval.tally.outcomes();
        let length = Duration::from_nanos(interval.end.saturating_since(interval.begin));
        let latency = interval.tally.latency();
        let rate = rate(outcomes.answered(), length);
        let part = match interval.phase {
            Phase::Warmup => "warm-up         ".to_owned(),
            Phase::Measured | Phase::Drain => {
                self.failed += outcomes.failed();
                format!(
                    "{:6.1} s {:6.1} %",
                    interval.elapsed.as_secs_f64(),
                    interval.progress * 100.0
                )
            }
        };
        let mut line = format!(
            "{part} {rate:>12.1}/s  p50 {}  p99 {}  errors {}",
            with_unit(P50.of(&latency)),
            with_unit(P99.of(&latency)),
            self.failed
        );
        // With up to one request per connection the schedule is merely caught in the act.
        if interval.backlog > interval.connections {
            line.push_str(&format!("  waiting {}", interval.backlog));
        }
        if interval.connecting > 0 {
            line.push_str(&format!(
                "  {} up, {} connecting",
                interval.connections, interval.connecting
            ));
        }
        if interval.is_saturated() {
            line.push_str("  client saturated");
        }
        line
    }
}

fn with_unit(support: Support) -> String {
    match support {
        Support::None => "n/a".to_owned(),
        other => format!("{} ms", ms_or_na(other)),
    }
}

impl Report for Live<'_> {
    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        let line = self.line(interval);
        let length = interval.end.saturating_since(interval.begin);
        if length < SHORTEST_NS {
            return Ok(());
        }
        if self.overwrite {
            let blanks = self.shown.saturating_sub(line.len());
            self.shown = line.len();
            write!(self.out, "\r{line}{:blanks$}", "")?;
        } else {
            writeln!(self.out, "{line}")?;
        }
        self.out.flush()
    }

    fn finish(&mut self, _summary: &Summary) -> io::Result<()> {
        if self.shown > 0 {
            self.shown = 0;
            writeln!(self.out)?;
        }
        self.out.flush()
    }
}

impl fmt::Debug for Live<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Live");
        shown.field("overwrite", &self.overwrite);
        shown.finish_non_exhaustive()
    }
}

/// Intervals below a tenth of a second, as at the end of a run, say nothing about a rate.
const SHORTEST_NS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn lines_stand_below_each_other_in_a_file() {
        let mut out = Vec::new();
        let mut live = Live::new(&mut out, false);
        for interval in sample::intervals() {
            live.interval(&interval).unwrap();
        }
        live.finish(&sample::open_loop()).unwrap();
        // 100 answered in a quarter of a second, 200 in half a second; 100 and 199 samples have 50
        // and 99 beyond the median, and fewer than 2 beyond p99.
        let expected = concat!(
            "warm-up                 400.0/s  p50 ~0.524 ms  p99 n/a  errors 0\n",
            "   0.5 s   50.0 %        400.0/s  p50 ~2.097 ms  p99 n/a  errors 3  waiting 12  9 up, 1 connecting\n",
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn lines_overwrite_each_other_on_a_terminal() {
        let mut out = Vec::new();
        let mut live = Live::new(&mut out, true);
        let [_, second] = sample::intervals();
        let mut short = second.clone();
        short.end = short.begin.add_nanos(99_999_999);
        live.interval(&short).unwrap();
        live.interval(&second).unwrap();
        live.finish(&sample::open_loop()).unwrap();
        let text = String::from_utf8(out).unwrap();
        // The short interval has no line, but its failures count.
        assert_eq!(text.matches('\r').count(), 1);
        assert_eq!(text.matches('\n').count(), 1);
        assert!(
            text.ends_with("errors 6  waiting 12  9 up, 1 connecting\n"),
            "{text}"
        );
    }
}
