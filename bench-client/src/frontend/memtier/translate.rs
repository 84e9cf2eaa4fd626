//! From a [`Plan`] to the [`Settings`] of the engine, for one of its runs.
//!
//! What the engine cannot do yet is refused by name ([`Lack`]) rather than done in another way: a
//! run that is not what was asked for must not look like it.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use kvlab_timing::Rate;

use super::Name;
use super::options::{Protocol, ReadPreference};
use super::pattern::Pattern;
use super::plan::{Keys, Length, Plan, Size, Traffic, Values};
use super::recorder::RowPlan;
use super::resolve::float;
use crate::settings::{
    self, Address, Arrivals, Backoff, Clients, ConnectSettings, Content, KeyPattern, KeySettings,
    Load, MissRule, MixOrder, Pipeline, PipelineMode, RecordSettings, RedisTarget, Renew,
    RespVersion, RetryOn, ScanSettings, Settings, SizeDistribution, Stop, Target, ValueSettings,
};

/// The settings of a run, and what its classes are.
#[derive(Clone, Debug)]
pub struct Translation {
    /// For the engine; the seed is that of the first run.
    pub settings: Settings,
    /// The rows of the tables.
    pub rows: RowPlan,
}

/// Something asked for that is not there yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {what} is not supported yet")]
pub struct Lack {
    /// The option.
    pub option: &'static str,
    /// What is missing.
    pub what: String,
}

impl Lack {
    pub(super) fn new(name: Name, what: impl Into<String>) -> Self {
        Self {
            option: name.spelled(),
            what: what.into(),
        }
    }
}

impl Plan {
    /// The settings for a server at this address.
    ///
    /// # Errors
    /// The first thing asked for that the engine cannot do.
    pub fn translate(&self, address: impl Into<Address>) -> Result<Translation, Lack> {
        self.lacks()?;
        let classes = self.classes()?;
        let address = address.into();
        let mut target = RedisTarget::new(NOWHERE, 0, 0);
        target.address = address;
        if let Some(login) = &self.login {
            target.user.clone_from(&login.user);
            target.password = Some(login.password.clone().into());
        }
        target.database = self.database;
        target.cluster = self.cluster.is_some();
        target.version = match self.protocol {
            Protocol::Redis => RespVersion::Two,
            Protocol::Resp2 => RespVersion::TwoByHello,
            Protocol::Resp3 => RespVersion::Three,
        };
        if let Traffic::Scan { arguments, most } = &self.traffic {
            target.scan = Some(ScanSettings {
                arguments: arguments.iter().skip(2).cloned().collect(),
                most_cursors: *most,
            });
        }
        target.count_keys = matches!(&self.traffic, Traffic::SetGet(both) if both.keys_per_get > 1);
        if self.retry.is_some() || self.failed_keys.is_some() {
            let only_on = self.retry.as_ref().map(|retry| retry.only_on.clone());
            target.retry_on = Some(RetryOn {
                prefixes: only_on.unwrap_or_default(),
            });
        }
        if !self.output.miss_tracking_off {
            target.misses = MissRule::ByCommand;
        }
        if let Some(import) = &self.import {
            target.records = Some(RecordSettings {
                records: import.records.clone(),
                own_keys: !import.generate_keys,
                own_expiry: !import.no_expiry && self.values.expiry.is_none(),
                compare: false,
            });
        }
        let rows = classes.rows();
        (target.operations, target.rotation) = classes.into_operations();
        let mut settings = Settings::new(Target::Redis(target));
        settings.threads = NonZeroU32::new(self.threads).unwrap_or(NonZeroU32::MIN);
        settings.connections = u32::try_from(self.connections())
            .ok()
            .and_then(NonZeroU32::new)
            .ok_or_else(|| Lack::new(Name::Clients, "more than 4294967295 connections"))?;
        settings.clients = if self.distinct_clients {
            Clients::Separate
        } else {
            Clients::Alike
        };
        settings.staircase = self.stairs();
        settings.pipeline = Pipeline {
            depth: NonZeroU32::new(self.pipeline).unwrap_or(NonZeroU32::MIN),
            mode: PipelineMode::Window,
        };
        settings.load = self.load()?;
        settings.rate_of_each_node = self.cluster.is_some();
        settings.stop = Stop {
            duration: match self.length {
                Length::Seconds(seconds) => Some(Duration::from_secs(u64::from(seconds))),
                Length::Requests(_) => None,
            },
            requests: self.requests(),
        };
        settings.warmup = self.warmup;
        settings.keys = self.key_settings();
        settings.values = value_settings(&self.values);
        if let Some(import) = &self.import {
            settings.values.size = SizeDistribution::Records(import.records.clone());
        }
        settings.mix = MixOrder::Cycle;
        settings.seed = self.seed;
        settings.timeout = self.request_timeout();
        settings.connect_timeout = self.reconnect.timeout;
        settings.connects = self.connects();
        settings.backoff = self.backoff();
        settings.retry = self.retry.as_ref().map(|retry| settings::Retry {
            most: retry.most,
            wait: retry.wait,
            factor: retry.factor,
            most_waiting: retry.most_queued,
        });
        Ok(Translation { settings, rows })
    }

    /// What is asked for beside the load itself and is not there.
    fn lacks(&self) -> Result<(), Lack> {
        let cluster = self.cluster.as_ref();
        let from_replicas = cluster.is_some_and(|cluster| cluster.reads != ReadPreference::Primary);
        let transaction = cluster.is_some_and(|cluster| cluster.transaction);
        for (missing, name, what) in [
            (
                !self.read_servers.is_empty(),
                Name::ReadServer,
                "reading from replicas",
            ),
            (from_replicas, Name::ReadPreference, "reading from replicas"),
            (
                transaction,
                Name::Transaction,
                "keeping a round of commands on one shard",
            ),
        ] {
            if missing {
                return Err(Lack::new(name, what));
            }
        }
        Ok(())
    }

    fn stairs(&self) -> Option<settings::Staircase> {
        let stairs = self.staircase?;
        Some(settings::Staircase {
            start: NonZeroU32::new(stairs.start)?,
            step: NonZeroU32::new(stairs.step)?,
            length: Duration::from_secs(u64::from(stairs.seconds)),
        })
    }

    fn load(&self) -> Result<Load, Lack> {
        let Some(each) = self.rate else {
            return Ok(Load::Closed);
        };
        let all = u64::from(each).saturating_mul(self.connections());
        let rate = Rate::per_second(all)
            .map_err(|error| Lack::new(Name::RateLimiting, error.to_string()))?;
        Ok(Load::Open {
            rate,
            arrivals: Arrivals::Uniform,
        })
    }

    fn key_settings(&self) -> KeySettings {
        let keys = self.sent_keys();
        let pattern = self.patterns().next().unwrap_or(Pattern::Random);
        KeySettings {
            count: NonZeroU64::new(keys.count()).unwrap_or(NonZeroU64::MIN),
            prefix: keys.prefix,
            width: 0,
            first: keys.least,
            pattern: self.key_pattern(pattern),
        }
    }

    fn patterns(&self) -> Box<dyn Iterator<Item = Pattern> + '_> {
        match &self.traffic {
            Traffic::SetGet(both) => {
                let used = [
                    (both.ratio.first, both.patterns.set),
                    (both.ratio.second, both.patterns.get),
                ];
                let used = used.into_iter().filter(|(times, _)| *times > 0);
                Box::new(used.map(|(_, pattern)| pattern))
            }
            Traffic::Commands(steps) => Box::new(steps.iter().map(|step| step.pattern)),
            Traffic::Scan { .. } => Box::new(std::iter::empty()),
        }
    }

    pub(super) fn key_pattern(&self, pattern: Pattern) -> KeyPattern {
        match pattern {
            Pattern::Random => KeyPattern::Uniform,
            Pattern::Sequential => KeyPattern::Sequential,
            Pattern::Parallel => KeyPattern::Parallel,
            Pattern::Gaussian => gaussian(&self.sent_keys()),
            Pattern::Zipf => KeyPattern::ZipfByNumber {
                exponent: self.keys.zipf_exponent,
            },
        }
    }

    /// How long a reply may take. The original waits without end. Here a test with a length ends
    /// with it, and a request that is not answered within half a minute counts as timed out.
    fn request_timeout(&self) -> Duration {
        match self.length {
            Length::Requests(_) => LONGEST_TIMEOUT,
            Length::Seconds(seconds) => {
                Duration::from_secs(u64::from(seconds)).clamp(SHORTEST_TIMEOUT, LONGEST_TIMEOUT)
            }
        }
    }

    /// How connections are made and renewed. A random wait between `least` and `most` before each
    /// new connection of a thread, as the original has it, is here an even pace of the same mean
    /// for all threads together, from which each connection departs by as much as the waits differ.
    fn connects(&self) -> ConnectSettings {
        let (least, most) = self.reconnect.jitter_us;
        let waits = u64::from(least) + u64::from(most);
        let paced = (waits > 0)
            .then(|| Rate::new(2_000_000 * u64::from(self.threads), waits).ok())
            .flatten();
        let mut connects = ConnectSettings {
            rate: self.reconnect.rate.or(paced),
            jitter: Duration::from_micros(u64::from(most - least)),
            renew: self
                .reconnect
                .interval
                .and_then(|requests| NonZeroU64::new(u64::from(requests)))
                .map_or(Renew::Never, Renew::Requests),
            ..ConnectSettings::default()
        };
        let connections = u32::try_from(self.connections()).unwrap_or(u32::MAX);
        let ramp = connects.ramp(connections);
        connects.setup_timeout = Some(ramp.saturating_add(self.reconnect.timeout));
        connects
    }

    /// Waits between attempts to reconnect. With `--reconnect-on-error` they are those of the
    /// original; without, the engine's own: a short outage costs requests, not the run.
    fn backoff(&self) -> Backoff {
        if !self.reconnect.on_error {
            return Backoff::default();
        }
        Backoff {
            first: FIRST_WAIT,
            factor: match self.reconnect.backoff_factor {
                0.0 => 1.0,
                factor => factor,
            },
            most: if self.reconnect.backoff_factor > 1.0 {
                LONGEST_WAIT
            } else {
                FIRST_WAIT
            },
            attempts: match self.reconnect.most_attempts {
                0 => u32::MAX,
                most => most,
            },
        }
    }
}

/// The bell of the original: its middle is the middle of the range and its deviation a sixth of the
/// distance of its ends, unless told otherwise. The engine counts in fractions of the number of
/// keys.
fn gaussian(keys: &Keys) -> KeyPattern {
    let count = float(keys.count());
    if keys.count() == 1 {
        return KeyPattern::Uniform;
    }
    let mean = keys.median.map_or(0.5, |median| {
        ((median - float(keys.least)) / count).clamp(0.0, 1.0)
    });
    let deviation = match keys.stddev {
        Some(deviation) => deviation / count,
        None => (count - 1.0) / 6.0 / count,
    };
    KeyPattern::Gaussian {
        mean,
        // A wider bell is flat over the keys to a thousandth.
        deviation: deviation.min(WIDEST_BELL),
    }
}

fn value_settings(values: &Values) -> ValueSettings {
    let size = match &values.size {
        Size::Fixed(size) => SizeDistribution::Fixed(*size),
        Size::Random(range) => SizeDistribution::Uniform {
            least: range.least,
            most: range.most,
        },
        Size::List(list) => SizeDistribution::Rotation(list.clone()),
        Size::ByKey(range) => SizeDistribution::ByKey {
            least: range.least,
            most: range.most,
        },
    };
    ValueSettings {
        size,
        content: if values.random {
            Content::Random
        } else {
            Content::Fill(b'x')
        },
    }
}

/// Stands for the address until it is known.
const NOWHERE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(5);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(30);
/// First wait of the original before it connects again.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Bound of its waits, as its newer versions have one.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
const WIDEST_BELL: f64 = 10.0;

#[cfg(test)]
#[path = "translate_tests.rs"]
mod tests;
