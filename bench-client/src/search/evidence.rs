//! What the trials at one rate prove about one objective.
//!
//! Of `N` requests in `k` stretches `X` took too long: the share `p = X / N`. Its standard error comes
//! from the stretches, which are few but nearly independent, and not from the requests, which are many
//! and are not: with `d_i = x_i - p n_i`
//!
//! ```text
//! se = sqrt(k / (k - 1) * sum d_i^2 * (1 + r) / (1 - r)) / N,   r = sum d_i d_(i+1) / sum d_i^2 >= 0
//! ```
//!
//! and never less than that of `N` independent requests. The objective is met when even
//! `p + t se` lies below the share that is allowed, broken when even `p - t se` lies above it, with
//! Student's t for 99 % and `k - 1` degrees of freedom.

use super::{Objective, Stretch};

/// What the trials at a rate prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Proof {
    /// The objective is kept.
    Met,
    /// Too close to call.
    Unclear,
    /// The objective is broken.
    Broken,
}

impl Proof {
    /// What all objectives together come to: one that is broken is enough.
    #[must_use]
    pub fn of(objectives: &[Objective], stretches: &[Stretch]) -> Self {
        let place = objectives.iter().enumerate();
        place
            .map(|(place, objective)| {
                Share::of(stretches, place).map_or(Self::Unclear, |share| share.proof(objective))
            })
            .max()
            .unwrap_or(Self::Unclear)
    }
}

/// The share of requests beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Share {
    requests: f64,
    beyond: f64,
    share: f64,
    /// Half the width of its 99 % interval, by the stretches.
    reach: f64,
    t: f64,
}

impl Share {
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a search are far below 2^52"
    )]
    fn of(stretches: &[Stretch], objective: usize) -> Option<Self> {
        let beyond = |stretch: &Stretch| stretch.beyond.get(objective).copied().unwrap_or(0) as f64;
        let requests: f64 = stretches.iter().map(|one| one.requests as f64).sum();
        if stretches.len() < 2 || requests == 0.0 {
            return None;
        }
        let sum: f64 = stretches.iter().map(beyond).sum();
        let share = sum / requests;
        let differences: Vec<f64> = stretches
            .iter()
            .map(|stretch| beyond(stretch) - share * stretch.requests as f64)
            .collect();
        let squares: f64 = differences.iter().map(|d| d * d).sum();
        let products: f64 = differences.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let r = if squares > 0.0 {
            (products / squares).clamp(0.0, MOST_CORRELATION)
        } else {
            0.0
        };
        let k = differences.len() as f64;
        let variance = k / (k - 1.0) * squares * (1.0 + r) / (1.0 - r);
        let t = student_t_99(differences.len() - 1);
        Some(Self {
            requests,
            beyond: sum,
            share,
            reach: t * variance.sqrt() / requests,
            t,
        })
    }

    fn proof(&self, objective: &Objective) -> Proof {
        let allowed = objective.share_beyond();
        let independent = |p: f64| self.t * (p * (1.0 - p) / self.requests).sqrt();
        let supported = self.requests * allowed >= EXPECTED_BEYOND;
        if supported && self.share + self.reach.max(independent(allowed)) < allowed {
            Proof::Met
        } else if self.beyond >= LEAST_BEYOND
            && self.share - self.reach.max(independent(self.share)) > allowed
        {
            Proof::Broken
        } else {
            Proof::Unclear
        }
    }
}

/// Two-sided 99 % point of Student's t (any table of it; rounded up between rows).
fn student_t_99(freedom: usize) -> f64 {
    let row = T_99.iter().rev().find(|(least, _)| *least <= freedom);
    row.map_or(f64::INFINITY, |(_, t)| *t)
}

const T_99: [(usize, f64); 14] = [
    (1, 63.657),
    (2, 9.925),
    (3, 5.841),
    (4, 4.604),
    (5, 4.032),
    (6, 3.707),
    (7, 3.499),
    (8, 3.355),
    (10, 3.169),
    (12, 3.055),
    (15, 2.947),
    (20, 2.845),
    (30, 2.750),
    (60, 2.660),
];
/// Requests that are expected beyond the quantile before it is called met.
const EXPECTED_BEYOND: f64 = 100.0;
/// Requests beyond the limit before the objective is called broken.
const LEAST_BEYOND: f64 = 20.0;
/// Bound of the correlation of neighbouring stretches that is reckoned with.
const MOST_CORRELATION: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    fn stretches(beyond: &[u64]) -> Vec<Stretch> {
        let stretch = |beyond: &u64| Stretch {
            requests: 1_000,
            beyond: vec![*beyond],
            outstanding: 0,
        };
        beyond.iter().map(stretch).collect()
    }

    fn proof(beyond: &[u64]) -> Proof {
        Proof::of(&["p99<1ms".parse().unwrap()], &stretches(beyond))
    }

    /// Twenty stretches of 1000 requests, of which 200 may be beyond. Student's t with 19 degrees of
    /// freedom is at most 2.947, the standard error of 20 000 independent requests
    /// sqrt(0.01 * 0.99 / 20000) = 0.0703 %: met below 0.793 % = 158 requests.
    #[test]
    fn independent_requests_decide_beyond_three_standard_errors() {
        let mut even = [7; 20];
        even[0] += 17;
        assert_eq!(even.iter().sum::<u64>(), 157);
        assert_eq!(proof(&[7; 20]), Proof::Met);
        assert_eq!(proof(&[8; 20]), Proof::Unclear);
        assert_eq!(proof(&[10; 20]), Proof::Unclear);
        // sqrt(0.013 * 0.987 / 20000) = 0.080 %: 1.3 % - 0.236 % is above 1 %.
        assert_eq!(proof(&[13; 20]), Proof::Broken);
        assert_eq!(proof(&[12; 20]), Proof::Unclear);
    }

    #[test]
    fn stretches_that_differ_say_less() {
        // 140 of 20 000 as in the case that is met, but all in two stretches.
        let mut uneven = [0; 20];
        (uneven[3], uneven[11]) = (70, 70);
        assert_eq!(proof(&uneven), Proof::Unclear);
    }

    #[test]
    fn too_few_requests_prove_nothing() {
        assert_eq!(proof(&[0; 9]), Proof::Unclear);
        assert_eq!(proof(&[0; 10]), Proof::Met);
        assert_eq!(proof(&[]), Proof::Unclear);
        assert_eq!(proof(&[1_000]), Proof::Unclear);
    }

    #[test]
    fn one_broken_objective_is_enough() {
        let objectives = ["p50<1ms", "p99<1ms"].map(|text| text.parse().unwrap());
        let mut stretches = stretches(&[0; 20]);
        for stretch in &mut stretches {
            stretch.beyond = vec![100, 100];
        }
        assert_eq!(Proof::of(&objectives, &stretches), Proof::Broken);
        for stretch in &mut stretches {
            stretch.beyond = vec![100, 10];
        }
        assert_eq!(Proof::of(&objectives, &stretches), Proof::Unclear);
        for stretch in &mut stretches {
            stretch.beyond = vec![100, 1];
        }
        assert_eq!(Proof::of(&objectives, &stretches), Proof::Met);
    }
}
