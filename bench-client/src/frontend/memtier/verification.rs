//! `--data-verify`: after the test one client reads again what was written, and compares.
//!
//! What was written follows from the seed: the sequence of every client is drawn once more, without
//! a server. Where a time ended the test it is not known how far each client came; but one of them
//! wrote at least as many records as there were for each on average, and all write them in the same
//! order.

use std::collections::BTreeSet;
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};

use super::model::Verification;
use super::pattern::Pattern;
use super::plan::{Length, Plan, Traffic};
use super::traffic::get_words;
use crate::engine::shares;
use crate::record::{ErrorKind, Outcomes, Summary};
use crate::settings::{
    KeyPattern, KeySettings, Load, MissRule, RecordSettings, RedisOperation, Renew, Settings,
    SizeDistribution, Stop, Target,
};
use crate::values::ValueBlock;
use crate::workload::Workload;

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) counts: Verification,
    /// Of the failed ones: keys that are not there.
    missing: u64,
    /// Keys that hold something else.
    different: u64,
}

impl Verdict {
    /// The verdict on so many keys.
    pub(super) fn of(keys: u64, summary: &Summary) -> Self {
        let Outcomes { hits, misses, .. } = summary.tally.outcomes();
        let errors = summary.tally.classes.iter().map(|class| &class.errors);
        let different = errors.filter_map(|errors| errors.get(&ErrorKind::new(b"DIFFERENT")));
        Self {
            counts: Verification {
                verified: hits,
                failed: keys.saturating_sub(hits),
            },
            missing: misses,
            different: different.sum(),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verification { verified, failed } = self.counts;
        write!(
            f,
            "--data-verify: {failed} of {} keys failed: {} are not there, {} hold something else",
            verified.saturating_add(failed),
            self.missing,
            self.different
        )?;
        let others = failed.saturating_sub(self.missing + self.different);
        if others > 0 {
            write!(f, ", {others} could not be read")?;
        }
        Ok(())
    }
}

impl Plan {
    /// The run that reads again what the last run wrote with these settings, and how many keys that
    /// are; `None` if there is nothing to read. `sets` are the SETs that it did; without one there
    /// was no run.
    pub(super) fn verification(
        &self,
        last: &Settings,
        sets: Option<u64>,
    ) -> Option<(Settings, u64)> {
        let Traffic::SetGet(both) = &self.traffic else {
            return None;
        };
        let Target::Redis(target) = &last.target else {
            return None;
        };
        let written = target.records.as_ref()?;
        if both.ratio.first == 0 {
            return None;
        }
        let (records, first) = (&written.records, last.keys.first);
        let numbers = self.written(last, sets);
        let prefix = last.keys.prefix.as_bytes();
        let keys = numbers.into_iter().map(|number| {
            let place = records.of_number(number, first);
            let key = if written.own_keys {
                records.key(place).to_vec()
            } else {
                [prefix, number.to_string().as_bytes()].concat()
            };
            (key, place)
        });
        let expected = records.renamed(keys)?;
        let count = expected.count() as u64;
        let mut settings = last.clone();
        settings.threads = NonZeroU32::MIN;
        settings.connections = NonZeroU32::MIN;
        settings.staircase = None;
        settings.load = Load::Closed;
        settings.stop = Stop {
            duration: None,
            requests: Some(count),
        };
        settings.warmup = std::time::Duration::ZERO;
        settings.record_rows = false;
        // Another value is not one that comes right by asking again.
        settings.retry = None;
        settings.failures = None;
        settings.connects.rate = None;
        settings.connects.renew = Renew::Never;
        settings.keys = KeySettings {
            prefix: String::new(),
            width: 0,
            first: 1,
            count: NonZeroU64::new(count)?,
            pattern: KeyPattern::Sequential,
        };
        settings.values.size = SizeDistribution::Records(expected.clone());
        if let Target::Redis(target) = &mut settings.target {
            target.rotation = None;
            target.retry_on = None;
            target.misses = MissRule::Nil;
            target.count_keys = false;
            target.operations = vec![RedisOperation {
                name: "GET".to_owned(),
                weight: 1,
                arguments: get_words(self.values.offset),
                pattern: None,
                numbers: Vec::new(),
            }];
            target.records = Some(RecordSettings {
                records: expected,
                own_keys: true,
                own_expiry: false,
                compare: true,
            });
        }
        Some((settings, count))
    }

    /// The numbers of the keys that were written, each once.
    fn written(&self, last: &Settings, sets: Option<u64>) -> Vec<u64> {
        let keys = &last.keys;
        let all = keys.count.get().min(MAX_VERIFIED);
        let count = match (self.length, self.set_pattern()) {
            (Length::Seconds(_), _) => match sets {
                Some(sets) => sets.div_ceil(self.connections().max(1)),
                None => all,
            },
            (Length::Requests(each), KeyPattern::Sequential) => {
                let share = shares(last).first().map(|share| share.alone(0));
                let block = ValueBlock::new(&last.values, last.seed);
                let mut sets = 0;
                if let Some(share) = share {
                    let mut workload = Workload::new(last, share, 0, &block);
                    for _ in 0..each {
                        sets += u64::from(workload.next_plan(0).request == SET);
                        if sets >= all {
                            break;
                        }
                    }
                }
                sets
            }
            (Length::Requests(each), _) => return drawn(last, each),
        };
        (keys.first..).take(fit(count.min(all))).collect()
    }
}

/// The keys that all clients draw for their SETs in so many requests each.
fn drawn(settings: &Settings, each: u64) -> Vec<u64> {
    let block = ValueBlock::new(&settings.values, settings.seed);
    let mut keys = BTreeSet::new();
    for share in shares(settings) {
        let mut workload = Workload::new(settings, share, 0, &block);
        for lane in 0..share.connections {
            for _ in 0..each {
                let plan = workload.next_plan(lane as usize);
                if plan.request == SET {
                    keys.insert(plan.key);
                }
                if keys.len() >= fit(MAX_VERIFIED) {
                    return keys.into_iter().collect();
                }
            }
        }
    }
    keys.into_iter().collect()
}

impl Plan {
    /// The order in which keys are written.
    pub(super) fn set_pattern(&self) -> KeyPattern {
        let own_keys = self
            .import
            .as_ref()
            .is_some_and(|import| !import.generate_keys);
        match &self.traffic {
            Traffic::SetGet(both) if !own_keys => self.key_pattern(both.patterns.set),
            _ => self.key_pattern(Pattern::Sequential),
        }
    }
}

fn fit(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// The place of the SET among the requests, if there is one.
const SET: u32 = 0;
/// Keys that are read again at most; the rest is not looked at.
const MAX_VERIFIED: u64 = 10_000_000;
