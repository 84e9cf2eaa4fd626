//! A token bucket in exact integers, on whatever clock the caller has.
//!
//! The level is kept in units of `1 / (den * 10^9)` tokens, where the refill is `num / den` tokens
//! per second: one nanosecond then adds exactly `num` units, and nothing is ever rounded.

use crate::clock::{NANOS_PER_SECOND, Stamp};
use crate::rate::Rate;

/// Lets `capacity` through at once and `refill` per second after that.
///
/// Time may stand still between calls; a moment before the latest one seen counts as that one.
///
/// ```
/// use kvlab_timing::{Rate, Stamp, TokenBucket};
///
/// let start = Stamp::ZERO;
/// let mut bucket = TokenBucket::new(start, 2, Rate::per_second(1_000)?);
/// assert!(bucket.take(start, 2));
/// assert!(!bucket.take(start, 1));
/// assert_eq!(bucket.next_available(start, 1).as_nanos(), 1_000_000);
/// # Ok::<(), kvlab_timing::RateError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    capacity: u64,
    refill: Rate,
    /// Units in the bucket at `as_of`.
    level: u128,
    as_of: Stamp,
}

impl TokenBucket {
    /// A bucket that is full at `now`.
    pub fn new(now: Stamp, capacity: u64, refill: Rate) -> TokenBucket {
        let mut bucket = TokenBucket {
            capacity,
            refill,
            level: 0,
            as_of: now,
        };
        bucket.level = bucket.units(capacity);
        bucket
    }

    /// Takes `tokens` if that many are there at `now`; takes nothing otherwise.
    pub fn take(&mut self, now: Stamp, tokens: u64) -> bool {
        self.refill_to(now);
        let wanted = self.units(tokens);
        if self.level < wanted {
            return false;
        }
        self.level -= wanted;
        true
    }

    /// The first moment, `now` or later, at which [`TokenBucket::take`] of `tokens` succeeds if
    /// nothing else is taken; [`Stamp::MAX`] if the bucket can never hold that many.
    pub fn next_available(&self, now: Stamp, tokens: u64) -> Stamp {
        if tokens > self.capacity {
            return Stamp::MAX;
        }
        let now = now.max(self.as_of);
        let missing = self.units(tokens).saturating_sub(self.level_at(now));
        let wait_ns = missing.div_ceil(u128::from(self.refill.numerator()));
        now.add_nanos(u64::try_from(wait_ns).unwrap_or(u64::MAX))
    }

    /// Takes `tokens` at the first moment they will be there and returns it: the caller's turn in a
    /// queue. Later calls queue up behind it. [`Stamp::MAX`], and nothing taken, if the bucket can
    /// never hold that many.
    pub fn reserve(&mut self, now: Stamp, tokens: u64) -> Stamp {
        let turn = self.next_available(now, tokens);
        if turn < Stamp::MAX {
            let taken = self.take(turn, tokens);
            debug_assert!(taken, "next_available is when take succeeds");
        }
        turn
    }

    /// Whole tokens in the bucket at `now`.
    pub fn available(&self, now: Stamp) -> u64 {
        let tokens = self.level_at(now.max(self.as_of)) / self.units(1);
        // Never above the capacity, which is 64 bits wide.
        u64::try_from(tokens).unwrap_or(self.capacity)
    }

    /// The most tokens the bucket holds.
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Tokens added per second.
    pub const fn refill(&self) -> Rate {
        self.refill
    }

    fn refill_to(&mut self, now: Stamp) {
        if now > self.as_of {
            self.level = self.level_at(now);
            self.as_of = now;
        }
    }

    fn level_at(&self, now: Stamp) -> u128 {
        let elapsed_ns = u128::from(now.saturating_since(self.as_of));
        let gained = elapsed_ns * u128::from(self.refill.numerator());
        self.level
            .saturating_add(gained)
            .min(self.units(self.capacity))
    }

    /// At most 2^64 * 10^19, below 2^128: a rate's denominator is at most 10^10.
    fn units(&self, tokens: u64) -> u128 {
        u128::from(tokens) * u128::from(self.refill.denominator()) * u128::from(NANOS_PER_SECOND)
    }
}
