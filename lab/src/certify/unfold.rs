//! Taking out of a distribution what the client's machine put into it.
//!
//! A measured latency is the server's time and what client and machine add to it: `m = s + e`. In a
//! calibration run both are known of every request. Its pairs, sorted by `s` and cut into a few
//! groups, say how `e` is distributed for short, middling and long `s` (a client whose clock runs fast
//! adds more to what takes longer). With that [`Blur`] any law `L` of the server gives the law `F(L)`
//! that would be measured, and the law behind a measured one `C` is found by correction:
//!
//! ```text
//! L_0 = C - median(e),   L_(k+1) = sorted(L_k + C - F(L_k))     as quantile functions
//! ```
//!
//! which is exact after one step where `e` is constant, and after fifteen is within a small part of
//! the width of `e` otherwise. Draws of `e` are evenly spaced by a golden-ratio sequence, so nothing is
//! left to chance.

use super::Samples;
use super::curve::Curve;

/// What is added to times of the server, by their length.
#[derive(Clone, Debug)]
pub struct Blur {
    groups: Vec<Group>,
    median: f64,
}

#[derive(Clone, Debug)]
struct Group {
    /// Times of the server from here on belong to it; those below the first do too.
    from: f64,
    /// What was added, ascending.
    added: Vec<f64>,
}

impl Blur {
    /// What the pairs of these runs show; `None` when there are none.
    #[must_use]
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Samples>) -> Option<Self> {
        let mut pairs: Vec<(f64, f64)> = runs.into_iter().flat_map(Samples::pairs).collect();
        pairs.sort_by(|left, right| left.0.total_cmp(&right.0));
        let groups: Vec<Group> = cuts(pairs.len())
            .windows(2)
            .filter_map(|ends| pairs.get(ends[0]..ends[1]))
            .filter_map(Group::of)
            .collect();
        let mut all: Vec<f64> = pairs.iter().map(|(truth, seen)| seen - truth).collect();
        all.sort_by(f64::total_cmp);
        let median = all.get(all.len() / 2).copied()?;
        Some(Self { groups, median })
    }

    /// What is added at the median, in nanoseconds.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.median
    }

    /// The law that would be measured of a server with the law `law`.
    #[must_use]
    pub fn forward(&self, law: &Curve) -> Curve {
        let mut measured = Vec::with_capacity(Curve::POINTS * DRAWS);
        let mut group = 0;
        for (place, truth) in law.points().iter().enumerate() {
            while self
                .groups
                .get(group + 1)
                .is_some_and(|next| *truth >= next.from)
            {
                group += 1;
            }
            let Some(group) = self.groups.get(group) else {
                continue;
            };
            measured.extend((0..DRAWS).map(|draw| truth + group.draw(place, draw)));
        }
        measured.sort_unstable_by(f64::total_cmp);
        let means = measured.chunks(DRAWS).map(|chunk| {
            let sum: f64 = chunk.iter().sum();
            sum / draws_as_f64()
        });
        Curve::from_points(means.collect())
    }

    /// The law of the server behind a measured one. No time is below zero.
    #[must_use]
    pub fn unfold(&self, measured: &Curve) -> Curve {
        let corrected = |points: &[f64], by: &dyn Fn(usize) -> f64| {
            let moved = points.iter().enumerate();
            let moved = moved.map(|(place, point)| (point + by(place)).max(0.0));
            Curve::from_points(moved.collect())
        };
        let mut law = corrected(measured.points(), &|_| -self.median);
        for _ in 0..STEPS {
            let seen = self.forward(&law);
            law = corrected(law.points(), &|place| {
                measured.points()[place] - seen.points()[place]
            });
        }
        law
    }
}

impl Group {
    fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let from = pairs.first()?.0;
        let mut added: Vec<f64> = pairs.iter().map(|(truth, seen)| seen - truth).collect();
        added.sort_by(f64::total_cmp);
        Some(Self { from, added })
    }

    /// What is added to the time at this place: draw `draw` of [`DRAWS`].
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place among the samples; the cast saturates"
    )]
    fn draw(&self, place: usize, draw: usize) -> f64 {
        let share = ((place + 1) as f64 * GOLDEN + draw as f64 / draws_as_f64()).fract();
        let place = (share * self.added.len() as f64) as usize;
        self.added[place.min(self.added.len() - 1)]
    }
}

/// Where the sorted pairs are cut into groups; a group that would be too small goes with its
/// neighbour.
fn cuts(pairs: usize) -> Vec<usize> {
    let mut cuts = vec![0];
    let twentieths = (1..20).map(|twentieth| twentieth * 50);
    for thousandth in twentieths.chain([970, 990]) {
        let cut = pairs * thousandth / 1000;
        if cut - cuts.last().copied().unwrap_or(0) >= LEAST_GROUP && pairs - cut >= LEAST_GROUP {
            cuts.push(cut);
        }
    }
    cuts.push(pairs);
    cuts
}

#[expect(clippy::cast_precision_loss, reason = "a small constant")]
fn draws_as_f64() -> f64 {
    DRAWS as f64
}

/// Draws of what is added at each point of a law.
const DRAWS: usize = 4;
/// Corrections of a law.
const STEPS: usize = 15;
/// Pairs in a group at least.
const LEAST_GROUP: usize = 100;
/// The fractional part of the golden ratio: its multiples fill the unit interval evenly.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

#[cfg(test)]
mod tests {
    use kvlab_bench_client::record::Latency;

    use super::*;

    /// A run whose client adds `late` and a share `scale` of the time itself.
    fn run(truth: impl Iterator<Item = f64>, late: f64, scale: f64) -> Samples {
        let truth: Vec<f64> = truth.collect();
        let seen = truth.iter().map(|s| s * (1.0 + scale) + late).collect();
        samples(truth, seen)
    }

    fn samples(truth: Vec<f64>, seen: Vec<f64>) -> Samples {
        let mut recorded = Latency::default();
        seen.iter()
            .for_each(|ns| recorded.record(ns.round() as u64));
        Samples::new(truth, seen, &recorded).unwrap()
    }

    fn exponential(mean: f64) -> impl Iterator<Item = f64> {
        (0..4000).map(move |i| -mean * (1.0 - (f64::from(i) + 0.5) / 4000.0).ln())
    }

    #[test]
    fn a_constant_delay_is_taken_out_exactly() {
        let blur = Blur::of([&run(exponential(1e6), 120e3, 0.0)]).unwrap();
        assert!((blur.median() - 120e3).abs() < 1.0);
        let measured: Vec<f64> = exponential(3e6).map(|s| s + 120e3).collect();
        let law = blur.unfold(&Curve::of_samples(measured).unwrap());
        let exact = Curve::of_samples(exponential(3e6).collect()).unwrap();
        for (found, exact) in law.points().iter().zip(exact.points()) {
            assert!((found - exact).abs() < 1.0, "{found} for {exact}");
        }
    }

    #[test]
    fn a_clock_that_runs_fast_is_taken_out_too() {
        let samples = run(exponential(1e6), 50e3, 0.1);
        let blur = Blur::of([&samples]).unwrap();
        let law = blur.unfold(&Curve::of_samples(samples.seen().to_vec()).unwrap());
        let exact = Curve::of_samples(exponential(1e6).collect()).unwrap();
        for share in [0.5, 0.9, 0.99] {
            let (found, exact) = (law.at(share), exact.at(share));
            // What is added differs within a group, which is a few percent wide.
            assert!(
                (found - exact).abs() < 0.03 * exact,
                "{found} for {exact} at {share}"
            );
        }
    }

    /// One in fifty is late by up to 2 ms: a tail that is the machine's and not the server's.
    #[test]
    fn the_machines_tail_is_not_taken_for_the_servers() {
        let tail = |i: u32| {
            if i % 50 == 0 {
                f64::from(i % 2000) * 1e3
            } else {
                100e3
            }
        };
        let seen: Vec<f64> = (0..4000).map(|i| 1e6 + tail(i)).collect();
        let samples = samples(vec![1e6; 4000], seen.clone());
        let law = Blur::of([&samples])
            .unwrap()
            .unfold(&Curve::of_samples(seen).unwrap());
        assert!((law.at(0.5) - 1e6).abs() < 5e3, "{}", law.at(0.5));
        // 0.99 of what was measured is 2 ms.
        assert!((law.at(0.99) - 1e6).abs() < 150e3, "{}", law.at(0.99));
    }

    #[test]
    fn small_groups_go_with_their_neighbours() {
        let twentieths: Vec<usize> = (0..20).map(|twentieth| twentieth * 500).collect();
        assert_eq!(cuts(10_000)[..20], twentieths);
        assert_eq!(cuts(10_000)[20..], [9_700, 9_900, 10_000]);
        assert_eq!(
            cuts(1_000),
            [0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000]
        );
        assert_eq!(cuts(199), [0, 199]);
        assert!(Blur::of([]).is_none());
    }
}
