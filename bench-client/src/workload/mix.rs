//! Which request comes next: drawn by weight, in a fixed cycle, or by the steps of a rotation.

use std::num::NonZeroU64;

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::random::{self, Use};
use crate::settings::{Between, MixOrder, ReplayCursor, RequestSpec, Rotation, Settings, StepKind};

/// The order of one client's requests.
#[derive(Clone, Debug)]
pub(super) enum Mix {
    Only(usize),
    Random {
        until: Vec<u64>,
        total: u64,
        rng: Xoshiro256PlusPlus,
    },
    Cycle {
        weights: Vec<u32>,
        place: usize,
        left: u32,
    },
    Steps(Box<Steps>),
}

/// The steps of a rotation.
#[derive(Debug)]
pub(super) struct Steps {
    steps: Vec<(StepKind, u32)>,
    place: usize,
    left: u32,
    replay: Option<Replay>,
    between: Option<Between>,
    /// Requests of [`Between`] so far, and those that it counts.
    own: u64,
    counted: u64,
}

/// The requests of a replay.
#[derive(Debug)]
struct Replay {
    from: usize,
    count: NonZeroU64,
    cursor: ReplayCursor,
    part: usize,
    rng: Xoshiro256PlusPlus,
}

impl Mix {
    pub(super) fn new(
        settings: &Settings,
        specs: &[RequestSpec],
        part: u64,
        rng: &dyn Fn(Use) -> Xoshiro256PlusPlus,
    ) -> Self {
        if let Some(rotation) = settings.target.rotation() {
            return Self::Steps(Box::new(Steps::new(rotation, part, rng(Use::Replay))));
        }
        let weighted: Vec<usize> = (0..specs.len())
            .filter(|place| specs[*place].weight > 0)
            .collect();
        if let [only] = weighted[..] {
            return Self::Only(only);
        }
        match settings.mix {
            MixOrder::Random => {
                let mut total = 0;
                let until = specs
                    .iter()
                    .map(|spec| {
                        total += u64::from(spec.weight);
                        total
                    })
                    .collect();
                let rng = rng(Use::Mix);
                Self::Random { until, total, rng }
            }
            MixOrder::Cycle => {
                let weights: Vec<u32> = specs.iter().map(|spec| spec.weight).collect();
                let left = weights.first().copied().unwrap_or(0);
                Self::Cycle {
                    weights,
                    place: 0,
                    left,
                }
            }
        }
    }

    /// The place of the next request.
    #[inline]
    pub(super) fn next_request(&mut self) -> usize {
        match self {
            Self::Only(place) => *place,
            Self::Random { until, total, rng } => {
                let drawn = random::below(rng, *total);
                until.iter().position(|end| drawn < *end).unwrap_or(0)
            }
            Self::Cycle {
                weights,
                place,
                left,
            } => {
                // Ends, because at least one weight is above 0.
                while *left == 0 {
                    *place = (*place + 1) % weights.len();
                    *left = weights[*place];
                }
                *left -= 1;
                *place
            }
            Self::Steps(steps) => steps.next(),
        }
    }
}

impl Steps {
    fn new(rotation: &Rotation, part: u64, rng: Xoshiro256PlusPlus) -> Self {
        let steps: Vec<(StepKind, u32)> = rotation
            .steps
            .iter()
            .map(|step| (step.what, step.times))
            .collect();
        let replayed = rotation.requests.len().saturating_sub(rotation.replay_from);
        Self {
            left: steps.first().map_or(0, |(_, times)| *times),
            steps,
            place: 0,
            replay: NonZeroU64::new(replayed as u64).map(|count| Replay {
                from: rotation.replay_from,
                count,
                cursor: rotation.cursor.share(),
                part: usize::from(part > 0),
                rng,
            }),
            between: rotation.between,
            own: 0,
            counted: 0,
        }
    }

    fn next(&mut self) -> usize {
        if let Some(between) = &self.between {
            let quotient = self.counted.checked_div(self.own);
            if quotient.is_none_or(|quotient| quotient > between.quotient) {
                self.own += 1;
                return between.request;
            }
        }
        // Ends, because at least one step is done more than 0 times.
        while self.left == 0 {
            self.place = (self.place + 1) % self.steps.len();
            self.left = self.steps[self.place].1;
        }
        self.left -= 1;
        let request = match (self.steps[self.place].0, &mut self.replay) {
            (StepKind::Request(request), _) => request,
            (StepKind::ReplayNext, Some(replay)) => replay.next(),
            (StepKind::ReplayAny, Some(replay)) => replay.any(),
            // Settings are checked: who replays has something to replay.
            (_, None) => 0,
        };
        if let Some(between) = &self.between {
            self.counted += u64::from(between.counted == Some(request));
        }
        request
    }
}

/// A copy goes on in the same replay.
impl Clone for Steps {
    fn clone(&self) -> Self {
        Self {
            steps: self.steps.clone(),
            replay: self.replay.as_ref().map(|replay| Replay {
                cursor: replay.cursor.share(),
                rng: replay.rng.clone(),
                ..*replay
            }),
            ..*self
        }
    }
}

impl Replay {
    fn next(&mut self) -> usize {
        let turn = self.cursor.next(self.part, self.count);
        self.place(turn)
    }

    fn any(&mut self) -> usize {
        let drawn = random::below(&mut self.rng, self.count.get());
        self.place(drawn)
    }

    /// Below the number of requests, which has as many bits as a place.
    fn place(&self, turn: u64) -> usize {
        self.from + usize::try_from(turn).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{RotationRequest, RotationStep};

    fn rotation(requests: usize, steps: &[(StepKind, u32)], replay_from: usize) -> Rotation {
        let request = RotationRequest {
            operation: 0,
            arguments: vec![b"PING".to_vec()],
            pattern: None,
            goes_on: false,
            numbers: Vec::new(),
        };
        Rotation {
            requests: vec![request; requests].into(),
            steps: steps
                .iter()
                .map(|(what, times)| RotationStep {
                    what: *what,
                    times: *times,
                })
                .collect(),
            replay_from,
            ..Rotation::default()
        }
    }

    fn steps(rotation: &Rotation, client: u32) -> Steps {
        Steps::new(rotation, 0, random::stream(1, 0, client, Use::Replay))
    }

    fn take(steps: &mut Steps, count: usize) -> Vec<usize> {
        (0..count).map(|_| steps.next()).collect()
    }

    #[test]
    fn steps_are_repeated_as_often_as_they_say() {
        let one = StepKind::Request;
        let rotation = rotation(3, &[(one(1), 2), (one(0), 0), (one(2), 1)], 3);
        assert_eq!(take(&mut steps(&rotation, 0), 7), [1, 1, 2, 1, 1, 2, 1]);
    }

    #[test]
    fn a_replay_in_order_is_one_for_all_clients() {
        let plain = (StepKind::Request(0), 1);
        let rotation = rotation(5, &[plain, (StepKind::ReplayNext, 2)], 1);
        let (mut one, mut other) = (steps(&rotation, 0), steps(&rotation, 1));
        assert_eq!(take(&mut one, 3), [0, 1, 2]);
        assert_eq!(take(&mut other, 3), [0, 3, 4]);
        assert_eq!(take(&mut one.clone(), 2), [0, 1]);
        assert_eq!(take(&mut one, 3), [0, 2, 3]);
    }

    #[test]
    fn a_replay_at_random_takes_all_alike() {
        let plain = (StepKind::Request(0), 1);
        let rotation = rotation(9, &[plain, (StepKind::ReplayAny, 1)], 1);
        let drawn = take(&mut steps(&rotation, 0), 32_000);
        let mut seen = [0_u32; 9];
        for request in &drawn {
            seen[*request] += 1;
        }
        assert_eq!(seen[0], 16_000);
        // 99.9 % of chi-square with 7 degrees of freedom.
        let square = |n: &u32| (f64::from(*n) - 2000.0).powi(2) / 2000.0;
        let chi: f64 = seen[1..].iter().map(square).sum();
        assert!(chi < 24.4, "{chi}");
        assert_eq!(take(&mut steps(&rotation, 0), 32_000), drawn);
        assert_ne!(take(&mut steps(&rotation, 1), 32_000), drawn);
    }

    /// With ten to one: at the start and after every eleventh.
    #[test]
    fn requests_between_follow_the_whole_quotient() {
        for (quotient, sets, expected) in [
            (10, 34, vec![0, 11, 22, 33]),
            (1, 7, vec![0, 2, 4, 6]),
            (0, 3, vec![0, 1, 2]),
        ] {
            let mut rotation = rotation(2, &[(StepKind::Request(0), 1)], 2);
            rotation.between = Some(Between {
                request: 1,
                counted: Some(0),
                quotient,
            });
            let mut steps = steps(&rotation, 0);
            let (mut before, mut seen) = (0, Vec::new());
            while before < sets {
                match steps.next() {
                    0 => before += 1,
                    _ => seen.push(before),
                }
            }
            assert_eq!(seen, expected, "{quotient}");
            rotation.between = rotation.between.map(|between| Between {
                counted: None,
                ..between
            });
            assert_eq!(take(&mut self::steps(&rotation, 0), 4), [1, 0, 0, 0]);
        }
    }
}
