//! The parameters of CONFIG: a table of what exists (`rows`), how values are read and checked
//! (`parameter`), and the values themselves. What the hot path needs is kept beside them in
//! `Live`.

pub mod parameter;
mod rows;
mod special;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::parameter::Parameter;
use self::rows::PARAMETERS;
use super::fault::Fault;
use super::glob;
use crate::config::ServerConfig;
use crate::limit::{ByteSize, ConnectionLimits, Eviction, OutputLimit};

/// The parameters of a server, with their values.
#[derive(Debug)]
pub struct Settings {
    live: Arc<Live>,
    /// By position in the table.
    values: Mutex<Vec<String>>,
}

/// Parameters that are looked at on every request.
#[derive(Debug)]
pub struct Live {
    max_bulk: AtomicU64,
    memory_max: AtomicU64,
    clients_max: AtomicU64,
    /// The place of the policy in [`Eviction::ALL`].
    eviction: AtomicU8,
    counts_frequency: AtomicBool,
    samples: AtomicU64,
    frequency_factor: AtomicU64,
    frequency_decay: AtomicU64,
    /// Nanoseconds after which silent connections end; 0 for never.
    idle_ns: AtomicU64,
    /// Bytes of unsent replies at which connections end: hard, soft and the nanoseconds of that; 0 for
    /// none.
    output: [AtomicU64; 3],
}

/// What RESP connections are limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfConnections {
    /// How many there may be.
    pub max: u64,
    /// Nanoseconds after which a silent one ends; 0 for never.
    pub idle_ns: u64,
    /// What may be unsent.
    pub output: Option<OutputLimit>,
}

impl OfConnections {
    /// How long one may be silent.
    #[must_use]
    pub fn idle(&self) -> Option<Duration> {
        (self.idle_ns > 0).then(|| Duration::from_nanos(self.idle_ns))
    }
}

impl Live {
    /// What connections are limited to.
    #[must_use]
    pub fn of_connections(&self) -> OfConnections {
        let [hard, soft, for_ns] =
            [0, 1, 2].map(|at: usize| self.output[at].load(Ordering::Relaxed));
        let soft = (soft > 0).then(|| (ByteSize(soft), Duration::from_nanos(for_ns)));
        let hard = (hard > 0).then_some(ByteSize(hard));
        OfConnections {
            max: self.clients_max(),
            idle_ns: self.idle_ns.load(Ordering::Relaxed),
            output: (hard.is_some() || soft.is_some()).then_some(OutputLimit { hard, soft }),
        }
    }

    /// Bytes above which commands that need more are refused; 0 is no limit.
    #[must_use]
    #[inline]
    pub fn memory_max(&self) -> u64 {
        self.memory_max.load(Ordering::Relaxed)
    }

    /// What is evicted when the limit is passed.
    #[must_use]
    pub fn eviction(&self) -> Eviction {
        let place = usize::from(self.eviction.load(Ordering::Relaxed));
        Eviction::ALL.get(place).copied().unwrap_or_default()
    }

    /// Whether eviction goes by how often keys are used.
    #[must_use]
    #[inline]
    pub fn counts_frequency(&self) -> bool {
        self.counts_frequency.load(Ordering::Relaxed)
    }

    /// How many keys of a database are drawn before one is evicted.
    #[must_use]
    pub fn samples(&self) -> usize {
        usize::try_from(self.samples.load(Ordering::Relaxed)).unwrap_or(1)
    }

    /// How slowly the counter of frequency rises.
    #[must_use]
    pub fn frequency_factor(&self) -> u64 {
        self.frequency_factor.load(Ordering::Relaxed)
    }

    /// Minutes without use that take one from the counter of frequency; 0 for never.
    #[must_use]
    pub fn frequency_decay(&self) -> u16 {
        u16::try_from(self.frequency_decay.load(Ordering::Relaxed)).unwrap_or(u16::MAX)
    }

    /// How many clients may be connected.
    #[must_use]
    pub fn clients_max(&self) -> u64 {
        self.clients_max.load(Ordering::Relaxed)
    }

    /// Longest argument of a request, in bytes.
    #[must_use]
    #[inline]
    pub fn max_bulk(&self) -> u64 {
        self.max_bulk.load(Ordering::Relaxed)
    }
}

impl Settings {
    /// The values that a server with `config` starts with. Parameters of `config` that are unknown or
    /// illegal are left at their defaults: [`check`] tells beforehand.
    #[must_use]
    pub fn new(config: &ServerConfig) -> Self {
        let mut values: Vec<String> = PARAMETERS
            .iter()
            .map(|parameter| parameter.default.to_owned())
            .collect();
        let databases = config.redis.databases.to_string();
        let mut own = vec![("databases", databases)];
        own.extend(limits_as_parameters(&config.connections));
        let memory = config.requests.max_memory;
        own.extend(memory.map(|size| ("maxmemory", size.0.to_string())));
        let policy = config.requests.eviction;
        own.extend(policy.map(|policy| ("maxmemory-policy", policy.to_string())));
        let own = own.iter().map(|(name, value)| (*name, value.as_str()));
        let given = config.redis.parameters.iter();
        for (name, value) in given.map(|(name, value)| (&**name, &**value)).chain(own) {
            if let Some((place, parameter)) = find(name.as_bytes())
                && let Some(slot) = values.get_mut(place)
                && let Ok(value) = parameter.read(value.as_bytes(), slot)
            {
                *slot = value;
            }
        }
        let settings = Self {
            live: Arc::new(Live {
                max_bulk: AtomicU64::new(0),
                memory_max: AtomicU64::new(0),
                clients_max: AtomicU64::new(0),
                eviction: AtomicU8::new(0),
                counts_frequency: AtomicBool::new(false),
                samples: AtomicU64::new(0),
                frequency_factor: AtomicU64::new(0),
                frequency_decay: AtomicU64::new(0),
                idle_ns: AtomicU64::new(0),
                output: Default::default(),
            }),
            values: Mutex::new(values),
        };
        settings.publish(&settings.lock());
        if let Some(idle) = config.connections.idle {
            // The parameter knows whole seconds.
            settings.live.idle_ns.store(nanos(idle), Ordering::Relaxed);
        }
        if let Some((_, time)) = config.connections.output.and_then(|limit| limit.soft) {
            settings.live.output[2].store(nanos(time), Ordering::Relaxed);
        }
        settings
    }

    /// The parameters that are looked at on every request.
    #[must_use]
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// The value of a parameter; empty if there is none of this name.
    #[must_use]
    pub fn value(&self, name: &str) -> String {
        find(name.as_bytes())
            .and_then(|(place, _)| self.lock().get(place).cloned())
            .unwrap_or_default()
    }

    /// Names and values of all parameters whose name matches one of the patterns, in order. A
    /// pattern without wildcards stands as it was written in place of the name.
    pub fn matching<'a>(
        &self,
        patterns: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Vec<(Cow<'static, str>, String)> {
        let spelling = |name: &'static str| {
            let pattern = patterns
                .clone()
                .find(|pattern| glob::matches_any_case(pattern, name.as_bytes()))?;
            let literal = pattern.eq_ignore_ascii_case(name.as_bytes());
            Some(match String::from_utf8(pattern.to_vec()) {
                Ok(pattern) if literal => Cow::Owned(pattern),
                _ => Cow::Borrowed(name),
            })
        };
        let values = self.lock();
        let mut found = Vec::new();
        for (parameter, value) in PARAMETERS.iter().zip(&*values) {
            let names = [Some(parameter.name), parameter.alias];
            for name in names.into_iter().flatten().filter_map(spelling) {
                found.push((name, value.clone()));
            }
        }
        found
    }

    /// Sets parameters, all of them or, if one is wrong, none.
    ///
    /// # Errors
    /// The first unknown name; else the first illegal value.
    pub fn set(&self, pairs: &[(&[u8], &[u8])]) -> Result<(), Fault> {
        let mut places = Vec::new();
        for (name, _) in pairs {
            let found = find(name).ok_or_else(|| {
                let before = "ERR Unknown option or number of arguments for CONFIG SET - '";
                Fault::quoting(before, name, "'")
            })?;
            places.push(found);
        }
        for (index, ((name, _), (_, parameter))) in pairs.iter().zip(&places).enumerate() {
            if let Some(reason) = parameter.refusal() {
                return Err(failed(name, reason));
            }
            let earlier = pairs.iter().take(index);
            if earlier
                .into_iter()
                .any(|(other, _)| other.eq_ignore_ascii_case(name))
            {
                return Err(failed(name, "duplicate parameter"));
            }
        }
        let mut values = self.lock();
        let mut changed = values.clone();
        for ((name, value), (place, parameter)) in pairs.iter().zip(&places) {
            if let Some(slot) = changed.get_mut(*place) {
                *slot = parameter
                    .read(value, slot)
                    .map_err(|reason| failed(name, &reason))?;
            }
        }
        let before = std::mem::replace(&mut *values, changed);
        self.publish_changes(&before, &values);
        Ok(())
    }

    fn publish(&self, values: &[String]) {
        self.publish_changes(&[], values);
    }

    /// Tells the hot path of `values` that were others before.
    fn publish_changes(&self, before: &[String], values: &[String]) {
        let value_of = |values: &[String], name: &str| {
            find(name.as_bytes())
                .and_then(|(place, _)| values.get(place))
                .cloned()
                .unwrap_or_default()
        };
        let value = |name| value_of(values, name);
        let number = |name, none| value(name).parse().unwrap_or(none);
        // These were given more finely than the parameter is written; that stays while it stays.
        let differs = |name| value_of(before, name) != value(name);
        if differs("timeout") {
            let idle_s: u64 = number("timeout", 0);
            let idle_ns = idle_s.saturating_mul(NANOS_PER_SECOND);
            self.live.idle_ns.store(idle_ns, Ordering::Relaxed);
        }
        if differs(OUTPUT) {
            let [hard, soft, for_s] = special::normal_output_limit(&value(OUTPUT));
            let limit = [hard, soft, for_s.saturating_mul(NANOS_PER_SECOND)];
            for (place, now) in self.live.output.iter().zip(limit) {
                place.store(now, Ordering::Relaxed);
            }
        }
        for (place, now) in [
            (&self.live.max_bulk, number("proto-max-bulk-len", u64::MAX)),
            (&self.live.memory_max, number("maxmemory", 0)),
            (&self.live.clients_max, number("maxclients", u64::MAX)),
            (&self.live.samples, number("maxmemory-samples", 5)),
            (&self.live.frequency_factor, number("lfu-log-factor", 10)),
            (&self.live.frequency_decay, number("lfu-decay-time", 1)),
        ] {
            place.store(now, Ordering::Relaxed);
        }
        let policy: Eviction = value("maxmemory-policy").parse().unwrap_or_default();
        self.live.eviction.store(policy as u8, Ordering::Relaxed);
        self.live
            .counts_frequency
            .store(policy.is_lfu(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        // Values are replaced whole, so a poisoned lock is still sound.
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The parameters that show the limits of a server, where they are set.
fn limits_as_parameters(limits: &ConnectionLimits) -> Vec<(&'static str, String)> {
    let seconds = |time: Duration| time.as_secs() + u64::from(time.subsec_nanos() > 0);
    let mut parameters = Vec::new();
    if let Some(max) = limits.max {
        parameters.push(("maxclients", max.to_string()));
    }
    if let Some(idle) = limits.idle {
        parameters.push(("timeout", seconds(idle).to_string()));
    }
    if let Some(output) = limits.output {
        let hard = output.hard.map_or(0, |hard| hard.0);
        let (soft, time) = output
            .soft
            .map_or((0, 0), |(soft, time)| (soft.0, seconds(time)));
        parameters.push((OUTPUT, format!("normal {hard} {soft} {time}")));
    }
    parameters
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

const OUTPUT: &str = "client-output-buffer-limit";
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Whether a server may start with `value` for the parameter `name`.
///
/// # Errors
/// What is wrong with it, in the words of a real server.
pub fn check(name: &str, value: &str) -> Result<(), String> {
    let (_, parameter) =
        find(name.as_bytes()).ok_or_else(|| format!("unknown parameter '{name}'"))?;
    parameter.read(value.as_bytes(), parameter.default)?;
    Ok(())
}

fn find(name: &[u8]) -> Option<(usize, &'static Parameter)> {
    PARAMETERS.iter().enumerate().find(|(_, parameter)| {
        parameter.name.as_bytes().eq_ignore_ascii_case(name)
            || parameter
                .alias
                .is_some_and(|alias| alias.as_bytes().eq_ignore_ascii_case(name))
    })
}

fn failed(name: &[u8], reason: &str) -> Fault {
    let before = "ERR CONFIG SET failed (possibly related to argument '";
    Fault::quoting(before, name, &format!("') - {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_legal_and_prints_as_itself() {
        for parameter in PARAMETERS {
            let read = parameter.read(parameter.default.as_bytes(), parameter.default);
            assert_eq!(read.as_deref(), Ok(parameter.default), "{}", parameter.name);
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = PARAMETERS
            .iter()
            .flat_map(|parameter| [Some(parameter.name), parameter.alias])
            .flatten()
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_wrong_value_changes_nothing() {
        let settings = Settings::new(&ServerConfig::default());
        let pairs: [(&[u8], &[u8]); 2] = [(b"timeout", b"7"), (b"maxmemory", b"much")];
        assert!(settings.set(&pairs).is_err());
        assert_eq!(settings.value("timeout"), "0");
        let pairs: [(&[u8], &[u8]); 2] = [(b"timeout", b"7"), (b"maxmemory", b"2gb")];
        assert_eq!(settings.set(&pairs), Ok(()));
        assert_eq!(settings.value("timeout"), "7");
        assert_eq!(settings.value("maxmemory"), "2147483648");
    }
}
