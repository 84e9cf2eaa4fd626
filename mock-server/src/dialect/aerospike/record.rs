//! A record and its clock: generations, void-times, expiry.
//!
//! A record is found by namespace and digest alone; set and user key are attributes. A void-time is
//! a second since 2010-01-01T00:00:00Z after which the record counts as missing; 0 is never. An
//! expired record stays in the store until it is purged, and until then the answer "not found"
//! still shows its generation and void-time.

use std::sync::Arc;

use kvlab_protocol::aerospike::limits::{
    TTL_KEEP, TTL_MAX_S, TTL_NAMESPACE_DEFAULT, TTL_NEVER, VOID_TIME_EPOCH_UNIX_S,
};
use kvlab_protocol::aerospike::result_code::ResultCode;

use super::bins::Bins;
use super::set::Set;

/// A stored record.
#[derive(Debug)]
pub struct Record {
    /// Its generation and void-time.
    pub meta: Meta,
    /// When it was last written, in nanoseconds since 1970.
    pub updated_ns: u64,
    /// Its set; `None` outside any set.
    pub set: Option<Arc<Set>>,
    /// Its user key with the type byte in front, if one was ever sent.
    pub key: Option<Box<[u8]>>,
    /// Its bins, at least one.
    pub bins: Bins,
}

/// What every answer about a record carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Meta {
    /// Counts writes from 1; 0 stands for no record.
    pub generation: u16,
    /// When it expires, in seconds since 2010; 0 for never.
    pub void_time: u32,
}

/// The moment a message is executed at.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Nanoseconds since 1970.
    pub unix_ns: u64,
    /// Seconds since 2010, as void-times count.
    pub seconds: u32,
}

impl Moment {
    /// The moment `unix_ns` nanoseconds after 1970.
    #[must_use]
    pub fn new(unix_ns: u64) -> Self {
        let seconds = (unix_ns / 1_000_000_000).saturating_sub(VOID_TIME_EPOCH_UNIX_S);
        Self {
            unix_ns,
            seconds: u32::try_from(seconds).unwrap_or(u32::MAX),
        }
    }
}

impl Meta {
    /// Whether the record has expired by `now`: its last second is over.
    #[must_use]
    pub fn is_expired(self, now: Moment) -> bool {
        self.void_time != 0 && self.void_time < now.seconds
    }

    /// The generation after one more write; 65535 is followed by 1.
    #[must_use]
    pub fn next_generation(self) -> u16 {
        self.generation.checked_add(1).unwrap_or(1)
    }
}

impl Record {
    /// Whether `set` is the name of the record's set; empty means none.
    #[must_use]
    pub fn is_in(&self, set: &[u8]) -> bool {
        match &self.set {
            Some(own) => own.name() == set,
            None => set.is_empty(),
        }
    }
}

/// How a namespace treats ttls.
#[derive(Debug, Clone, Copy)]
pub struct TtlRules {
    /// Seconds a record lives when its writer does not say; 0 for ever.
    pub default_ttl: u32,
    /// Seconds between purges of expired records; 0 purges nothing and forbids ttls.
    pub nsup_period: u32,
}

impl TtlRules {
    /// The void-time after a write with this ttl, given the current one of a record that exists.
    ///
    /// # Errors
    /// [`ResultCode::Parameter`] for a ttl above ten years, [`ResultCode::Forbidden`] for any ttl
    /// where nothing would ever be purged.
    pub fn void_time(self, ttl: u32, current: Option<u32>, now: Moment) -> Result<u32, ResultCode> {
        match ttl {
            TTL_NAMESPACE_DEFAULT => Ok(self.default_void_time(now)),
            TTL_NEVER => Ok(0),
            TTL_KEEP => Ok(current.unwrap_or_else(|| self.default_void_time(now))),
            1..=TTL_MAX_S if self.nsup_period == 0 => Err(ResultCode::Forbidden),
            1..=TTL_MAX_S => Ok(now.seconds.saturating_add(ttl)),
            _ => Err(ResultCode::Parameter),
        }
    }

    fn default_void_time(self, now: Moment) -> u32 {
        match self.default_ttl {
            0 => 0,
            ttl => now.seconds.saturating_add(ttl),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment {
        unix_ns: 0,
        seconds: 1000,
    };

    #[test]
    fn void_times_count_from_2010() {
        let moment = Moment::new((VOID_TIME_EPOCH_UNIX_S + 7) * 1_000_000_000 + 999_999_999);
        assert_eq!(moment.seconds, 7);
        assert_eq!(Moment::new(0).seconds, 0);
    }

    #[test]
    fn ttl_rules_of_a_default_namespace_with_purging() {
        let rules = TtlRules {
            default_ttl: 0,
            nsup_period: 5,
        };
        assert_eq!(rules.void_time(0, Some(1500), NOW), Ok(0));
        assert_eq!(rules.void_time(20, None, NOW), Ok(1020));
        assert_eq!(rules.void_time(u32::MAX, Some(1500), NOW), Ok(0));
        assert_eq!(rules.void_time(u32::MAX - 1, Some(1500), NOW), Ok(1500));
        assert_eq!(rules.void_time(u32::MAX - 1, None, NOW), Ok(0));
        assert_eq!(rules.void_time(315_360_000, None, NOW), Ok(315_361_000));
        assert_eq!(
            rules.void_time(315_360_001, None, NOW),
            Err(ResultCode::Parameter)
        );
    }

    #[test]
    fn ttls_are_forbidden_where_nothing_is_purged() {
        let rules = TtlRules {
            default_ttl: 0,
            nsup_period: 0,
        };
        assert_eq!(rules.void_time(20, None, NOW), Err(ResultCode::Forbidden));
        assert_eq!(
            rules.void_time(315_360_001, None, NOW),
            Err(ResultCode::Parameter)
        );
        assert_eq!(rules.void_time(0, None, NOW), Ok(0));
    }

    #[test]
    fn a_record_lives_through_its_last_second() {
        let meta = |void_time| Meta {
            generation: 1,
            void_time,
        };
        assert!(!meta(1000).is_expired(NOW) && meta(999).is_expired(NOW));
        assert!(!meta(0).is_expired(NOW));
    }

    #[test]
    fn generations_wrap_to_one() {
        let meta = Meta {
            generation: u16::MAX,
            void_time: 0,
        };
        assert_eq!(meta.next_generation(), 1);
        assert_eq!(Meta::default().next_generation(), 1);
    }
}
