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

    /// As [`TokenBucket::reserve`], for any number of tokens: more than the bucket holds have come
    /// when that many were added since it was last empty. Nobody else takes a token before that moment.
    pub fn reserve_in_full(&mut self, now: Stamp, tokens: u64) -> Stamp {
        self.refill_to(now);
        let missing = self.units(tokens).saturating_sub(self.level);
        let wait_ns = missing.div_ceil(u128::from(self.refill.numerator()));
        let gained = wait_ns * u128::from(self.refill.numerator());
        self.level = (self.level + gained).saturating_sub(self.units(tokens));
        self.level = self.level.min(self.units(self.capacity));
        self.as_of = self
            .as_of
            .add_nanos(u64::try_from(wait_ns).unwrap_or(u64::MAX));
        self.as_of.max(now)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(nanos: u64) -> Stamp {
        Stamp::from_nanos(nanos)
    }

    fn bucket(capacity: u64, per_second: u64) -> TokenBucket {
        TokenBucket::new(Stamp::ZERO, capacity, Rate::per_second(per_second).unwrap())
    }

    #[test]
    fn a_token_is_there_at_its_nanosecond_and_not_before() {
        let mut bucket = bucket(1, 3);
        assert!(bucket.take(at(0), 1));
        // A third of a second is not whole: the token is complete with the next nanosecond.
        assert_eq!(bucket.next_available(at(0), 1), at(333_333_334));
        assert!(!bucket.take(at(333_333_333), 1));
        assert!(bucket.take(at(333_333_334), 1));
    }

    #[test]
    fn the_part_of_a_token_is_kept() {
        let mut bucket = bucket(2, 3);
        assert!(bucket.take(at(0), 2));
        // What rounding up gave too much at the first is there for the third: 3 tokens in 1 s.
        for turn in [333_333_334, 666_666_667, 1_000_000_000] {
            assert_eq!(bucket.next_available(at(0), 1), at(turn));
            assert!(!bucket.take(at(turn - 1), 1));
            assert!(bucket.take(at(turn), 1));
        }
    }

    #[test]
    fn an_idle_bucket_holds_its_capacity_and_no_more() {
        let mut bucket = bucket(5, 1_000);
        assert_eq!(bucket.available(Stamp::MAX), 5);
        assert!(!bucket.take(at(u64::MAX / 2), 6));
        assert!(bucket.take(at(u64::MAX / 2), 5));
        assert!(!bucket.take(at(u64::MAX / 2), 1));
    }

    #[test]
    fn a_refused_take_takes_nothing() {
        let mut bucket = bucket(3, 1);
        assert!(!bucket.take(at(0), 4));
        assert_eq!(bucket.available(at(0)), 3);
        assert!(bucket.take(at(0), 3));
    }

    #[test]
    fn more_than_the_capacity_never_comes() {
        let mut bucket = bucket(3, 1);
        assert_eq!(bucket.next_available(at(0), 4), Stamp::MAX);
        assert_eq!(bucket.reserve(at(0), 4), Stamp::MAX);
        assert_eq!(bucket.available(at(0)), 3);
    }

    #[test]
    fn more_than_the_capacity_comes_in_its_time() {
        // 10 are there; of 35 the last 25 come at 1 per millisecond, and the next one behind them.
        let mut bucket = bucket(10, 1_000);
        assert_eq!(bucket.reserve_in_full(at(0), 35), at(25_000_000));
        assert_eq!(bucket.reserve_in_full(at(0), 1), at(26_000_000));
        assert_eq!(bucket.next_available(at(3), 1), at(27_000_000));
        assert!(!bucket.take(at(26_999_999), 1));
        // After a rest it is full again, and no fuller.
        assert_eq!(
            bucket.reserve_in_full(at(9_000_000_000), 10),
            at(9_000_000_000)
        );
        assert_eq!(
            bucket.reserve_in_full(at(9_000_000_000), 1),
            at(9_001_000_000)
        );
    }

    #[test]
    fn nothing_can_always_be_taken() {
        let mut bucket = bucket(0, 1);
        assert!(bucket.take(at(0), 0));
        assert_eq!(bucket.next_available(at(7), 0), at(7));
        assert!(!bucket.take(Stamp::MAX, 1));
    }

    #[test]
    fn time_going_back_gives_no_tokens() {
        let mut bucket = bucket(1, 1_000);
        assert!(bucket.take(at(5_000_000), 1));
        assert!(!bucket.take(at(4_000_000), 1));
        assert!(!bucket.take(at(5_999_999), 1));
        assert!(bucket.take(at(6_000_000), 1));
    }

    /// The accept bucket of the methodology: 1000 connections at once, 200 in the bucket, 400 per
    /// second after that; connection i waits max(0, (i - 200) / 400) seconds.
    #[test]
    fn reservations_queue_up() {
        let refill = Rate::per_period(200, std::time::Duration::from_millis(500)).unwrap();
        let mut bucket = TokenBucket::new(Stamp::ZERO, 200, refill);
        let waits: Vec<Stamp> = (0..1_000).map(|_| bucket.reserve(at(0), 1)).collect();
        assert_eq!(waits[199], at(0));
        assert_eq!(waits[200], at(2_500_000));
        assert_eq!(waits[499], at(750_000_000));
        assert_eq!(waits[999], at(2_000_000_000));
        // Someone who does not queue finds nothing until the queue has had its turns.
        assert!(!bucket.take(at(2_000_000_000), 1));
        assert!(bucket.take(at(2_002_500_000), 1));
    }

    #[test]
    fn the_largest_bucket_does_not_overflow() {
        let refill = Rate::new(u64::MAX, 10_000_000_000).unwrap();
        assert_eq!(refill.numerator(), u64::MAX / 5);
        for refill in [refill, Rate::new(1, 10_000_000_000).unwrap()] {
            let mut bucket = TokenBucket::new(Stamp::ZERO, u64::MAX, refill);
            assert!(bucket.take(at(0), u64::MAX));
            assert_eq!(bucket.available(at(0)), 0);
            assert!(bucket.next_available(at(0), u64::MAX) > at(0));
            assert!(bucket.available(Stamp::MAX) > 0);
            assert_eq!(bucket.capacity(), u64::MAX);
        }
    }

    proptest! {
        /// What a bucket promises, whatever is asked of it: never more than the capacity plus the
        /// refill of the time passed; and `next_available` is the first nanosecond that works.
        #[test]
        fn no_window_lets_more_through_than_it_may(
            capacity in 1_u64..20, num in 1_u64..5_000_000, den in 1_u64..50,
            asks in prop::collection::vec((0_u64..2_000_000, 0_u64..25), 1..60),
        ) {
            let refill = Rate::new(num, den).unwrap();
            let (num, den) = (u128::from(refill.numerator()), u128::from(refill.denominator()));
            let mut bucket = TokenBucket::new(Stamp::ZERO, capacity, refill);
            let mut now = Stamp::ZERO;
            let mut taken: Vec<(Stamp, u64)> = Vec::new();
            for (wait, tokens) in asks {
                now = now.add_nanos(wait);
                let first = bucket.next_available(now, tokens);
                if first > now {
                    prop_assert!(!bucket.clone().take(first.sub_nanos(1), tokens));
                }
                prop_assert_eq!(first < Stamp::MAX, bucket.clone().take(first, tokens));
                if bucket.take(now, tokens) {
                    prop_assert_eq!(first, now);
                    taken.push((now, tokens));
                }
            }
            for (index, (begin, _)) in taken.iter().enumerate() {
                let mut sum = 0;
                for (end, tokens) in &taken[index..] {
                    sum += u128::from(*tokens);
                    let refilled = u128::from(end.saturating_since(*begin)) * num;
                    prop_assert!(
                        sum * den * 1_000_000_000
                            <= u128::from(capacity) * den * 1_000_000_000 + refilled
                    );
                }
            }
        }
    }
}
