//! Whole numbers of any size: just what exact decimal conversion of extended-precision numbers needs.

use std::cmp::Ordering;

/// A whole number, least significant limb first, without zero limbs at the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Big {
    limbs: Vec<u64>,
}

impl Big {
    pub(super) fn new(value: u64) -> Self {
        let mut big = Self { limbs: vec![value] };
        big.trim();
        big
    }

    pub(super) fn is_zero(&self) -> bool {
        self.limbs.is_empty()
    }

    /// Bits up to and with the highest one that is set.
    pub(super) fn bit_len(&self) -> usize {
        match self.limbs.last() {
            Some(top) => self.limbs.len() * 64 - bits(top.leading_zeros()),
            None => 0,
        }
    }

    /// `self * factor + summand`.
    pub(super) fn multiply_add(&mut self, factor: u64, summand: u64) {
        let mut carry = u128::from(summand);
        for limb in &mut self.limbs {
            let product = u128::from(*limb) * u128::from(factor) + carry;
            *limb = low(product);
            carry = product >> 64;
        }
        self.limbs.push(low(carry));
        self.trim();
    }

    /// `self * 10^power`.
    pub(super) fn multiply_power_of_ten(&mut self, power: u32) {
        for _ in 0..power / TEN_STEP {
            self.multiply_add(10u64.pow(TEN_STEP), 0);
        }
        self.multiply_add(10u64.pow(power % TEN_STEP), 0);
    }

    /// `self * 2^count`.
    pub(super) fn shift_left(&mut self, count: usize) {
        if self.is_zero() {
            return;
        }
        self.multiply_add(1 << (count % 64), 0);
        self.limbs.splice(0..0, std::iter::repeat_n(0, count / 64));
    }

    /// Divides by `divisor`, which must not be zero, and gives the remainder.
    pub(super) fn divide(&mut self, divisor: u64) -> u64 {
        let mut rest: u64 = 0;
        for limb in self.limbs.iter_mut().rev() {
            let part = u128::from(rest) << 64 | u128::from(*limb);
            *limb = low(part / u128::from(divisor));
            rest = low(part % u128::from(divisor));
        }
        self.trim();
        rest
    }

    /// Subtracts `other` if it is not larger; says whether it did.
    pub(super) fn subtract_if_not_larger(&mut self, other: &Self) -> bool {
        if self.compare(other) == Ordering::Less {
            return false;
        }
        let mut borrow = false;
        let others = other.limbs.iter().copied().chain(std::iter::repeat(0));
        for (limb, other) in self.limbs.iter_mut().zip(others) {
            let (part, first) = limb.overflowing_sub(other);
            let (part, second) = part.overflowing_sub(u64::from(borrow));
            *limb = part;
            borrow = first || second;
        }
        self.trim();
        true
    }

    /// The highest 128 bits, how many bits lie below them, and whether one of those is set.
    pub(super) fn top_bits(&self) -> (u128, usize, bool) {
        let (top, below) = self
            .limbs
            .split_at_checked(self.limbs.len().saturating_sub(3))
            .map_or((&[][..], &[][..]), |(below, top)| (top, below));
        // Three limbs hold between 129 and 192 bits: shift the surplus out, keeping note of it.
        let mut value: u128 = 0;
        let mut lost = below.iter().any(|limb| *limb != 0);
        let mut dropped = below.len() * 64;
        match *top {
            [least, middle, most] => {
                let surplus = 64 - most.leading_zeros();
                value = u128::from(most) << 64 | u128::from(middle);
                value = value << most.leading_zeros() | u128::from(least.unbounded_shr(surplus));
                lost |= least.unbounded_shl(most.leading_zeros()) != 0;
                dropped += bits(surplus);
            }
            _ => {
                for limb in top.iter().rev() {
                    value = value << 64 | u128::from(*limb);
                }
            }
        }
        (value, dropped, lost)
    }

    fn compare(&self, other: &Self) -> Ordering {
        let lengths = self.limbs.len().cmp(&other.limbs.len());
        lengths.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()))
    }

    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }
}

/// The largest power of ten below 2^64.
pub(super) const TEN_STEP: u32 = 19;

/// The low 64 bits.
#[allow(clippy::cast_possible_truncation)] // dropping the high half is the purpose
fn low(value: u128) -> u64 {
    value as u64
}

/// A count of bits, at most 64, as an index.
fn bits(count: u32) -> usize {
    usize::try_from(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn big(value: u128) -> Big {
        let mut big = Big::new(low(value >> 64));
        big.shift_left(64);
        big.multiply_add(1, low(value));
        big
    }

    #[test]
    fn top_bits_keep_the_highest_and_note_the_rest() {
        assert_eq!(big(u128::MAX).top_bits(), (u128::MAX, 0, false));
        assert_eq!(big(5).top_bits(), (5, 0, false));
        let mut wide = big(1 << 127);
        wide.shift_left(3);
        assert_eq!(wide.top_bits(), (1 << 127, 3, false));
        wide.multiply_add(1, 1);
        assert_eq!(wide.top_bits(), (1 << 127, 3, true));
        wide.shift_left(1000);
        assert_eq!(wide.top_bits(), (1 << 127, 1003, true));
        let mut exact = big(u128::MAX);
        exact.shift_left(64);
        assert_eq!(exact.top_bits(), (u128::MAX, 64, false));
    }

    #[test]
    fn powers_of_ten_divide_back() {
        let mut value = Big::new(7);
        value.multiply_power_of_ten(100);
        for _ in 0..100 {
            assert_eq!(value.divide(10), 0);
        }
        assert_eq!(value, Big::new(7));
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_128_bit_arithmetic(a: u128, b: u128, factor: u64, shift in 0usize..64) {
            let (large, small) = (a.max(b), a.min(b));
            let mut difference = big(large);
            assert!(difference.subtract_if_not_larger(&big(small)));
            assert_eq!(difference, big(large - small));
            if large != small {
                assert!(!big(small).subtract_if_not_larger(&big(large)));
            }
            let mut shifted = big(a >> 64);
            shifted.shift_left(shift);
            assert_eq!(shifted, big((a >> 64) << shift));
            let mut product = Big::new(low(a));
            product.multiply_add(factor, 0);
            assert_eq!(product, big(u128::from(low(a)) * u128::from(factor)));
            if factor != 0 {
                let mut quotient = big(a);
                assert_eq!(u128::from(quotient.divide(factor)), a % u128::from(factor));
                assert_eq!(quotient, big(a / u128::from(factor)));
            }
        }
    }
}
