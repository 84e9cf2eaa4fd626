//! Requests that follow each other as a list of steps says, and the numbers in them.
//!
//! ```text
//! operations: SET   GET   WAIT            what is counted apart
//! requests:   SET   MGET  MGET  WAIT      what can be sent, each of one operation
//! steps:      SET x 1, MGET(4) x 2, MGET(2) x 1, and over again
//! between:    WAIT at the start, and whenever there were so many more SETs
//! ```
//!
//! A replay is a step too: its requests are the last ones of the list, taken in their order by all
//! threads together, or drawn.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{KeyPattern, SettingsError};

/// What is sent where it is not one request for each operation, by weight.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rotation {
    /// What can be sent; shared, because a capture may have many lines.
    pub requests: Arc<[RotationRequest]>,
    /// The steps, in their order, and over again.
    pub steps: Vec<RotationStep>,
    /// Place of the first request of the replay; all behind it belong to it.
    pub replay_from: usize,
    /// What is sent between the steps.
    pub between: Option<Between>,
    /// How far a replay in order is.
    pub cursor: ReplayCursor,
}

/// A request of a rotation.
#[derive(Clone, Debug, PartialEq)]
pub struct RotationRequest {
    /// Place of the operation that it is counted under.
    pub operation: usize,
    /// Command and arguments, with the placeholders still in them.
    pub arguments: Vec<Vec<u8>>,
    /// Key pattern of its own.
    pub pattern: Option<KeyPattern>,
    /// Its keys go on where those of the request before it end, instead of in an order of their
    /// own.
    pub goes_on: bool,
    /// Laws of its numbers, one for each argument `__number__`.
    pub numbers: Vec<NumberLaw>,
}

/// A step of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RotationStep {
    /// What is sent.
    pub what: StepKind,
    /// How often in a row.
    pub times: u32,
}

/// What a step sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// The request of this place.
    Request(usize),
    /// The next request of the replay, counted over all threads.
    ReplayNext,
    /// One of the requests of the replay, all alike likely.
    ReplayAny,
}

/// A request that comes between the others: at the start of each client, and whenever the counted
/// requests so far, divided by those of its own so far, are more than `quotient` (both are whole
/// numbers, and so is the result).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// Place of the request.
    pub request: usize,
    /// Place of the request that is counted; without one it is sent once.
    pub counted: Option<usize>,
    /// See above.
    pub quotient: u64,
}

/// The law of a number in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberLaw {
    /// Each number of the range, both ends included, with the same probability.
    Uniform {
        /// Smallest.
        least: u32,
        /// Largest.
        most: u32,
    },
    /// A bell around the middle of the range, rounded down, with a sixth of its width as standard
    /// deviation; what lies outside is drawn again.
    Bell {
        /// Smallest.
        least: u32,
        /// Largest.
        most: u32,
    },
}

impl NumberLaw {
    /// Smallest and largest number.
    #[must_use]
    pub fn range(self) -> (u32, u32) {
        let (Self::Uniform { least, most } | Self::Bell { least, most }) = self;
        (least, most)
    }
}

/// How far a replay in order is: a counter for all threads of a run, and another for its warm-up.
/// A copy of it begins at 0.
#[derive(Debug, Default)]
pub struct ReplayCursor(Arc<[AtomicU64; 2]>);

impl ReplayCursor {
    /// Begins anew.
    pub(crate) fn rewind(&self) {
        for counter in self.0.iter() {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// The same counter, for a thread.
    pub(crate) fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// The next place of `count`, in the measured part (0) or the warm-up (1).
    pub(crate) fn next(&self, part: usize, count: NonZeroU64) -> u64 {
        let turn = self.0.get(part).map_or(0, |counter| {
            // Only the number counts; no other memory is handed over with it.
            counter.fetch_add(1, Ordering::Relaxed)
        });
        turn % count
    }
}

/// Copies of settings are for other runs.
impl Clone for ReplayCursor {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Settings are equal whatever runs with them have done.
impl PartialEq for ReplayCursor {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Rotation {
    pub(super) fn check(&self, operations: usize) -> Result<(), SettingsError> {
        let places = self.requests.len();
        let replays = self.requests.get(self.replay_from..).unwrap_or_default();
        if self.steps.iter().all(|step| step.times == 0) {
            return Err(SettingsError::Rotation("no step is done even once"));
        }
        for step in &self.steps {
            match step.what {
                StepKind::Request(place) if place >= places => {
                    return Err(SettingsError::Rotation("a step without its request"));
                }
                StepKind::ReplayNext | StepKind::ReplayAny if replays.is_empty() => {
                    return Err(SettingsError::Rotation("a replay of nothing"));
                }
                _ => {}
            }
        }
        if let Some(between) = &self.between
            && (between.request >= places || between.counted.is_some_and(|place| place >= places))
        {
            return Err(SettingsError::Rotation(
                "a request between others is missing",
            ));
        }
        for request in self.requests.iter() {
            if request.operation >= operations {
                return Err(SettingsError::Rotation("a request without its operation"));
            }
            if let Some(pattern) = &request.pattern {
                pattern.check()?;
            }
            check_numbers(&request.numbers)?;
        }
        Ok(())
    }
}

pub(super) fn check_numbers(numbers: &[NumberLaw]) -> Result<(), SettingsError> {
    if numbers.len() > MAX_NUMBERS {
        return Err(SettingsError::Rotation(
            "more than two numbers in a request",
        ));
    }
    let reversed = |law: &NumberLaw| {
        let (least, most) = law.range();
        least > most
    };
    if numbers.iter().any(reversed) {
        return Err(SettingsError::Rotation(
            "the smallest number is above the largest",
        ));
    }
    Ok(())
}

/// Numbers of one request at most.
pub(crate) const MAX_NUMBERS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_shared_on_purpose_only() {
        let (one, count) = (ReplayCursor::default(), NonZeroU64::new(3).unwrap());
        let (other, copy) = (one.share(), one.clone());
        let turns: Vec<u64> = (0..4).map(|_| one.next(0, count)).collect();
        assert_eq!(turns, [0, 1, 2, 0]);
        assert_eq!(
            [
                other.next(0, count),
                copy.next(0, count),
                other.next(1, count)
            ],
            [1, 0, 0]
        );
        one.rewind();
        assert_eq!(other.next(0, count), 0);
    }

    #[test]
    fn what_a_rotation_points_at_is_there() {
        let request = RotationRequest {
            operation: 0,
            arguments: vec![b"PING".to_vec()],
            pattern: None,
            goes_on: false,
            numbers: Vec::new(),
        };
        let step = |what, times| RotationStep { what, times };
        let whole = Rotation {
            requests: [request.clone()].into(),
            steps: vec![step(StepKind::Request(0), 1)],
            replay_from: 1,
            ..Rotation::default()
        };
        assert_eq!(whole.check(1), Ok(()));
        assert!(whole.check(0).is_err());
        for steps in [
            vec![],
            vec![step(StepKind::Request(0), 0)],
            vec![step(StepKind::Request(1), 1)],
            vec![step(StepKind::ReplayNext, 1)],
        ] {
            let broken = Rotation {
                steps,
                ..whole.clone()
            };
            assert!(broken.check(1).is_err(), "{broken:?}");
        }
        let numbers = vec![NumberLaw::Uniform { least: 2, most: 1 }];
        let broken = Rotation {
            requests: [RotationRequest { numbers, ..request }].into(),
            ..whole
        };
        assert!(broken.check(1).is_err());
    }
}
