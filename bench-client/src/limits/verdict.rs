//! The bucket of a server that turns connections away: from who was served and who was not.
//!
//! With a full bucket of capacity B and refill r at the first attempt, time 0,
//!
//! ```text
//! the n-th that is served, at time x, found a token:       B + r * x >= n
//! one turned away at time x after n were served found none: B + r * x <  n + 1
//! ```
//!
//! For each B these leave an interval of r. Those served before the first refusal bound B from
//! above, and later attempts narrow r down. What comes out is tried on all attempts: a bucket like
//! that has to decide as the server did.

use super::admission::{LEAST_BURST, Line, NOISE};
use super::round::{roundest, roundest_count};
use super::{Attempt, FoundBucket, LimitForm, Verdict};

/// The bucket that explains who was turned away.
pub(super) fn find(attempts: &[Attempt]) -> Option<FoundBucket> {
    let decided = Decided::of(attempts)?;
    decided.by_bounds().or_else(|| decided.by_line())
}

/// Attempts with seconds since the first, and whether each was served.
struct Decided {
    attempts: Vec<(f64, bool)>,
    form: LimitForm,
    /// Served before the first that was not.
    before: u64,
    away: u64,
}

impl Decided {
    /// By the bounds that each attempt gives, as above.
    fn by_bounds(&self) -> Option<FoundBucket> {
        let (burst, low, high) = SLACKS_SECONDS
            .into_iter()
            .find_map(|slack| self.candidates(slack))?;
        if low <= 0.0 || high > low * MOST_SPREAD {
            return None;
        }
        let per_second = roundest(low, high);
        let agreeing = self.agreeing(burst, per_second)?;
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts of a run are far below 2^53"
        )]
        let measured_burst = burst as f64;
        Some(FoundBucket {
            burst,
            per_second,
            measured_burst,
            measured_per_second: f64::midpoint(low, high),
            form: self.form,
            evidence: agreeing,
        })
    }

    /// Where the moments are too noisy for bounds and so many come that each token is taken at once:
    /// those served lie on a line, as with a server that delays.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a run are far below 2^53"
    )]
    fn by_line(&self) -> Option<FoundBucket> {
        let served: Vec<(f64, f64)> = self
            .attempts
            .iter()
            .filter(|(_, served)| *served)
            .zip(1_u64..)
            .map(|((seconds, _), number)| (*seconds, number as f64))
            .collect();
        // Not the burst itself, nor the end, where hardly anybody is left to take a token.
        let burst = usize::try_from(self.before).ok()?;
        let rest = served.len().checked_sub(burst)?;
        let points = served.get(burst + rest / 5..burst + rest * 7 / 10)?;
        if points.len() < LEAST_ON_LINE {
            return None;
        }
        let line = Line::through(points)?;
        if line.height < LEAST_BURST || line.slope <= 0.0 {
            return None;
        }
        let around = |value: f64| (value * (1.0 - NOISE), value * (1.0 + NOISE));
        let (low, high) = around(line.height);
        let burst = roundest_count(low, high, line.height);
        let (low, high) = around(line.slope);
        let per_second = roundest(low, high);
        self.is_followed(burst, per_second).then_some(FoundBucket {
            burst,
            per_second,
            measured_burst: line.height,
            measured_per_second: line.slope,
            form: self.form,
            evidence: self.away,
        })
    }

    /// Whether a bucket like that would have served nearly as many at every moment.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a run are far below 2^53"
    )]
    fn is_followed(&self, burst: u64, per_second: f64) -> bool {
        let capacity = burst as f64;
        let (mut tokens, mut last) = (capacity, 0.0);
        let (mut served, mut would) = (0_u64, 0_u64);
        self.attempts.iter().all(|(seconds, is_served)| {
            tokens = (tokens + (seconds - last) * per_second).min(capacity);
            last = *seconds;
            if tokens >= 1.0 {
                tokens -= 1.0;
                would += 1;
            }
            served += u64::from(*is_served);
            served.abs_diff(would) as f64 <= (served as f64 * MOST_APART).max(3.0)
        })
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "times of a run are far below 2^53 ns"
    )]
    fn of(attempts: &[Attempt]) -> Option<Self> {
        let first = attempts.first()?.at;
        let mut counts = std::collections::BTreeMap::<LimitForm, u64>::new();
        let mut decided = Vec::new();
        for attempt in attempts.iter().take(MOST_ATTEMPTS) {
            let served = match attempt.verdict {
                Verdict::Served { .. } => true,
                Verdict::Away { form } => {
                    *counts.entry(form).or_default() += 1;
                    false
                }
                Verdict::Unknown => continue,
            };
            decided.push((attempt.at.saturating_since(first) as f64 / 1e9, served));
        }
        let (form, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        let before = decided.iter().take_while(|(_, served)| *served).count();
        let away = decided.iter().filter(|(_, served)| !served).count();
        (away >= LEAST_AWAY && before > 0).then_some(Self {
            attempts: decided,
            form,
            before: before as u64,
            away: away as u64,
        })
    }

    /// A burst and the bounds of its refill, if all attempts may be off by `slack` seconds.
    fn candidates(&self, slack: f64) -> Option<(u64, f64, f64)> {
        let least = self.before.saturating_sub(MOST_CANDIDATES).max(1);
        let possible: Vec<_> = (least..=self.before)
            .filter_map(|burst| {
                let (low, high) = self.refill(burst, slack);
                (low < high).then_some((burst, low, high))
            })
            .collect();
        let (smallest, largest) = (possible.first()?.0, possible.last()?.0);
        // Several bursts may be possible where the connections came one after another.
        if (largest - smallest) * 20 > largest {
            return None;
        }
        possible.get(possible.len() / 2).copied()
    }

    /// Bounds of the refill, given the burst.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a run are far below 2^53"
    )]
    fn refill(&self, burst: u64, slack: f64) -> (f64, f64) {
        let (mut low, mut high) = (0_f64, f64::INFINITY);
        let mut served = 0_u64;
        for (seconds, is_served) in &self.attempts {
            if *is_served {
                served += 1;
                let lacking = served.saturating_sub(burst) as f64;
                if lacking > 0.0 {
                    low = low.max(lacking / (seconds + slack));
                }
            } else {
                let spare = (served + 1) as f64 - burst as f64;
                if spare <= 0.0 {
                    return (1.0, 0.0);
                }
                let since = seconds - slack;
                if since > 0.0 {
                    high = high.min(spare / since);
                }
            }
        }
        (low, high)
    }

    /// Those turned away whom this bucket would have turned away, if it decides nearly always as the
    /// server did.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a run are far below 2^53"
    )]
    fn agreeing(&self, burst: u64, per_second: f64) -> Option<u64> {
        let capacity = burst as f64;
        let (mut tokens, mut last) = (capacity, 0.0);
        let (mut away, mut wrong) = (0_u64, 0_u64);
        for (seconds, served) in &self.attempts {
            tokens = (tokens + (seconds - last) * per_second).min(capacity);
            last = *seconds;
            // A bound of the refill makes the last token come just at its moment.
            let would = tokens >= 1.0 - ROUNDING;
            wrong += u64::from(would != *served);
            away += u64::from(!would && !served);
            if *served {
                tokens = (tokens - 1.0).max(0.0);
            }
        }
        (wrong as f64 <= MOST_WRONG * self.attempts.len() as f64).then_some(away)
    }
}

/// Connections turned away that it takes.
const LEAST_AWAY: usize = 10;
/// Attempts looked at.
const MOST_ATTEMPTS: usize = 20_000;
/// Bursts tried.
const MOST_CANDIDATES: u64 = 200;
/// How far apart the bounds of the refill may be.
const MOST_SPREAD: f64 = 1.1;
/// Share of attempts about which the bucket and the server may differ.
const MOST_WRONG: f64 = 0.02;
/// Connections served after the burst that a line takes.
const LEAST_ON_LINE: usize = 20;
/// Share by which the numbers served may differ from those that a bucket would have served.
const MOST_APART: f64 = 0.05;
/// How far the client's moments may be from the server's, tried in turn: not at all as in virtual
/// time, then more and more.
const SLACKS_SECONDS: [f64; 4] = [0.0, 0.001, 0.005, 0.020];
/// Error of the arithmetic, in tokens.
const ROUNDING: f64 = 1e-6;
