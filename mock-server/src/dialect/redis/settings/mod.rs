//! The parameters of CONFIG: a table of what exists (`rows`), how values are read and checked
//! (`parameter`), and the values themselves. What the hot path needs is kept beside them in
//! `Live`.

pub mod parameter;
mod rows;
mod special;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::parameter::Parameter;
use self::rows::PARAMETERS;
use super::fault::Fault;
use super::glob;
use crate::config::ServerConfig;

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
}

impl Live {
    /// Bytes above which commands that need more are refused; 0 is no limit.
    #[must_use]
    #[inline]
    pub fn memory_max(&self) -> u64 {
        self.memory_max.load(Ordering::Relaxed)
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
        let own = [("databases", databases.as_str())];
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
            }),
            values: Mutex::new(values),
        };
        settings.publish(&settings.lock());
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
        *values = changed;
        self.publish(&values);
        Ok(())
    }

    fn publish(&self, values: &[String]) {
        let value = |name: &str| {
            find(name.as_bytes())
                .and_then(|(place, _)| values.get(place))
                .cloned()
                .unwrap_or_default()
        };
        let number = |name, none| value(name).parse().unwrap_or(none);
        for (place, now) in [
            (&self.live.max_bulk, number("proto-max-bulk-len", u64::MAX)),
            (&self.live.memory_max, number("maxmemory", 0)),
            (&self.live.clients_max, number("maxclients", u64::MAX)),
        ] {
            place.store(now, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        // Values are replaced whole, so a poisoned lock is still sound.
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
