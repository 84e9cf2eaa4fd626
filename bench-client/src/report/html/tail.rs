//! Where a percentile curve is drawn: shares of samples that lie beyond, from all of them to one.
//!
//! The axis is logarithmic in `1 - q`, so that each further nine has the same width. The shares are
//! twenty to a decade, written as "one in so many" in thousandths: 1, 1.1, 1.2 … 9, 10, 11 …, with
//! p50, p75, p90, p95, p99 … among them. Ranks are integer arithmetic.

/// One sample in this many lies beyond, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u64);

/// The shares of a decade, in thousandths.
const DECADE: [u64; 20] = [
    1_000, 1_100, 1_200, 1_300, 1_500, 1_750, 2_000, 2_200, 2_500, 2_800, 3_200, 3_600, 4_000,
    4_500, 5_000, 5_600, 6_300, 7_100, 8_000, 9_000,
];

impl Share {
    /// The shares that `samples` can tell apart, ascending; the largest sample is none of them.
    #[must_use]
    pub fn up_to(samples: u64) -> Vec<Self> {
        let most = samples.saturating_mul(1_000);
        let mut shares = Vec::new();
        let mut power = 1_u64;
        loop {
            for share in DECADE {
                let share = share.saturating_mul(power);
                if share >= most {
                    return shares;
                }
                shares.push(Self(share));
            }
            power = power.saturating_mul(10);
        }
    }

    /// The rank, from 1, of the sample that this share of `samples` lies beyond: `ceil(q n)`.
    /// `None` where less than one sample would.
    #[must_use]
    pub fn rank(self, samples: u64) -> Option<u64> {
        let beyond = u128::from(samples) * 1_000 / u128::from(self.0);
        let beyond = u64::try_from(beyond).ok().filter(|beyond| *beyond > 0)?;
        Some((samples - beyond).max(1))
    }

    /// The quantile, 0 to 1.
    #[must_use]
    pub fn q(self) -> f64 {
        1.0 - 1.0 / self.one_in()
    }

    /// One sample in this many lies beyond.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a place on a drawing")]
    pub fn one_in(self) -> f64 {
        self.0 as f64 / 1_000.0
    }

    /// Whether it is one of the percentiles that people name: p50, p75, p90, p95, p99, p99.5 …
    #[must_use]
    pub fn is_usual(self) -> bool {
        let usual = |label: &str| matches!(label, "min" | "p50" | "p75" | "p90" | "p95" | "p99.5");
        let label = self.label();
        let nines = label
            .strip_prefix("p99")
            .map(|rest| rest.trim_start_matches('.'));
        usual(&label) || nines.is_some_and(|rest| rest.chars().all(|digit| digit == '9'))
    }

    /// `p50`, `p99.9`, `min`.
    #[must_use]
    pub fn label(self) -> String {
        if self.0 == 1_000 {
            return "min".to_owned();
        }
        // One digit more than there are nines.
        let digits = usize::try_from((self.0 / 1_000).checked_ilog10().unwrap_or(0)).unwrap_or(0);
        let text = format!("{:.*}", digits + 1, self.q() * 100.0);
        let short = text.trim_end_matches('0').trim_end_matches('.');
        format!("p{short}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_end_before_the_largest_sample() {
        assert_eq!(Share::up_to(0), []);
        assert_eq!(Share::up_to(1), []);
        assert_eq!(Share::up_to(2).last(), Some(&Share(1_750)));
        assert_eq!(Share::up_to(10_000).len(), 80);
        assert_eq!(Share::up_to(10_001).last(), Some(&Share(10_000_000)));
    }

    #[test]
    fn rank_is_that_of_the_quantile() {
        for (share, samples, rank) in [
            (1_000, 1_000, Some(1)),
            (2_000, 1_000, Some(500)),
            (2_000, 3, Some(2)),
            (10_000, 20_000, Some(18_000)),
            (1_000_000, 20_000, Some(19_980)),
            (20_000_000, 20_000, Some(19_999)),
            (20_001_000, 20_000, None),
        ] {
            assert_eq!(Share(share).rank(samples), rank, "{share} of {samples}");
        }
    }

    #[test]
    fn usual_percentiles_are_those_that_people_name() {
        let usual: Vec<String> = Share::up_to(20_000)
            .into_iter()
            .filter(|share| share.is_usual())
            .map(Share::label)
            .collect();
        assert_eq!(
            usual,
            [
                "min", "p50", "p75", "p90", "p95", "p99", "p99.5", "p99.9", "p99.99"
            ]
        );
    }

    #[test]
    fn shares_are_named_as_percentiles() {
        let names = [
            1_000, 2_000, 4_000, 3_600, 10_000, 20_000, 100_000, 1_000_000, 36_000_000,
        ];
        let names = names.map(|share| Share(share).label());
        assert_eq!(
            names,
            [
                "min",
                "p50",
                "p75",
                "p72.2",
                "p90",
                "p95",
                "p99",
                "p99.9",
                "p99.99722"
            ]
        );
    }
}
