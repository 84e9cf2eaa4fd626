//! One rate of a search, with all its trials.

use kvlab_timing::Rate;

use super::{Flaw, Objective, Proof, Stretch, Trial};

/// A rate that was tried.
#[derive(Clone, Debug)]
pub struct Point {
    rate: Rate,
    stretches: Vec<Stretch>,
    quantiles_ns: Vec<Vec<u64>>,
    valid: u32,
    piled_up: u32,
    flaws: Vec<Flaw>,
    proof: Proof,
}

/// What is known of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// All objectives are met.
    Met,
    /// Too close to call, so far.
    Unclear,
    /// An objective is broken.
    Broken,
    /// Every trial was spoilt by the client itself.
    Blocked,
}

impl Standing {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Unclear => "unclear",
            Self::Broken => "broken",
            Self::Blocked => "client too slow",
        }
    }
}

impl Point {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            rate,
            stretches: Vec::new(),
            quantiles_ns: Vec::new(),
            valid: 0,
            piled_up: 0,
            flaws: Vec::new(),
            proof: Proof::Unclear,
        }
    }

    /// The rate.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The rate as a number.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.rate.as_f64()
    }

    /// Trials that count.
    #[must_use]
    pub fn trials(&self) -> u32 {
        self.valid
    }

    /// Why trials did not count.
    #[must_use]
    pub fn flaws(&self) -> &[Flaw] {
        &self.flaws
    }

    /// Trials in which requests piled up.
    #[must_use]
    pub fn piled_up(&self) -> u32 {
        self.piled_up
    }

    /// For each trial that counts the quantiles of the objectives, in nanoseconds.
    #[must_use]
    pub fn quantiles_ns(&self) -> &[Vec<u64>] {
        &self.quantiles_ns
    }

    /// Requests of the trials that count, and for each objective how many of them were beyond.
    #[must_use]
    pub fn totals(&self) -> (u64, Vec<u64>) {
        let requests = self.stretches.iter().map(|stretch| stretch.requests).sum();
        let objectives = self.stretches.first().map_or(0, |one| one.beyond.len());
        let beyond = |place: usize| -> u64 {
            let counts = self
                .stretches
                .iter()
                .filter_map(|one| one.beyond.get(place));
            counts.sum()
        };
        (requests, (0..objectives).map(beyond).collect())
    }

    /// What is known of it.
    #[must_use]
    pub fn standing(&self) -> Standing {
        if self.valid == 0 && self.flaws.len() >= MOST_FLAWS {
            return Standing::Blocked;
        }
        // Requests that pile up break every objective sooner or later.
        if self.piled_up * 2 > self.valid {
            return Standing::Broken;
        }
        match self.proof {
            Proof::Met => Standing::Met,
            Proof::Unclear => Standing::Unclear,
            Proof::Broken => Standing::Broken,
        }
    }

    pub(super) fn may_try_again(&self) -> bool {
        self.valid < MOST_TRIALS && self.flaws.len() < MOST_FLAWS
    }

    /// Whether another trial may well make it clear. At the very edge none would.
    pub(super) fn may_become_clear(&self) -> bool {
        let unclear = self.standing() == Standing::Unclear;
        unclear && self.valid < TRIALS_UNCLEAR && self.flaws.len() < MOST_FLAWS
    }

    pub(super) fn add(&mut self, trial: Trial, objectives: &[Objective]) {
        let piles_up = trial.piles_up();
        // A client that is late makes latencies longer, never shorter: what is met in spite of it
        // is met.
        let met = !piles_up && Proof::of(objectives, &trial.stretches) == Proof::Met;
        if let Some(flaw) = trial.flaw(objectives).filter(|_| !met) {
            self.flaws.push(flaw);
            return;
        }
        self.valid += 1;
        self.piled_up += u32::from(piles_up);
        self.quantiles_ns.push(trial.quantiles_ns);
        self.stretches.extend(trial.stretches);
        self.proof = Proof::of(objectives, &self.stretches);
    }
}

/// Trials that count at one rate at most.
const MOST_TRIALS: u32 = 4;
/// Trials at a rate that stays too close to call.
const TRIALS_UNCLEAR: u32 = 2;
/// Spoilt trials at one rate at most.
const MOST_FLAWS: usize = 3;
