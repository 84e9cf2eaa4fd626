//! Few decimal digits that read back to the same double, found as servers from 7.2 on find them.
//!
//! This is the algorithm Grisu2 of Florian Loitsch ("Printing Floating-Point Numbers Quickly and Accurately
//! with Integers", 2010): scale the double and the bounds of its rounding interval by a power of ten kept to 64
//! bits, then take digits until the rest falls inside the interval. Of about one double in a thousand it
//! finds one digit too many, or not the closest of the shortest; so do real servers, which is why the
//! exact digits of the standard library would not do.

use super::text::NumberText;

/// The digits of a positive finite double and the power of ten of the last one.
pub(super) fn shortest_digits(value: f64) -> (NumberText, i32) {
    let Bounds { value, low, high } = Bounds::of(value);
    let (power, power_of_ten) = power_for(high.exponent);
    let value = value.times(power);
    // The bounds are inexact after scaling; one unit inwards they are surely inside the interval.
    let high = high.times(power).fraction - 1;
    let low = low.times(power).fraction + 1;
    let (digits, dropped) = digits(&Scaled {
        high,
        width: high - low,
        distance: high - value.fraction,
        point: value.exponent.unsigned_abs(),
    });
    (digits, dropped - power_of_ten)
}

/// `fraction * 2^exponent`.
#[derive(Clone, Copy)]
struct Binary {
    fraction: u64,
    exponent: i32,
}

impl Binary {
    /// The same number with the highest bit of the fraction set.
    fn normalized(self) -> Self {
        let shift = self.fraction.leading_zeros();
        Self {
            fraction: self.fraction << shift,
            exponent: self.exponent - shift.cast_signed(),
        }
    }

    /// The product to 64 bits, half up.
    fn times(self, other: Self) -> Self {
        let product = u128::from(self.fraction) * u128::from(other.fraction) + (1 << 63);
        Self {
            // The high half always fits.
            fraction: u64::try_from(product >> 64).unwrap_or(u64::MAX),
            exponent: self.exponent + other.exponent + 64,
        }
    }
}

/// A double and the midpoints to its neighbours, all with the exponent of `high`.
struct Bounds {
    value: Binary,
    low: Binary,
    high: Binary,
}

impl Bounds {
    fn of(value: f64) -> Self {
        let stored = value.to_bits() & (HIDDEN_BIT - 1);
        let field = i32::try_from(value.to_bits() >> 52 & 0x7ff).unwrap_or(0);
        let (fraction, exponent) = if field == 0 {
            (stored, -1074)
        } else {
            (stored | HIDDEN_BIT, field - 1075)
        };
        let high = Binary {
            fraction: 2 * fraction + 1,
            exponent: exponent - 1,
        }
        .normalized();
        // Below a power of two the neighbour is only half as far away.
        let low = if stored == 0 && field != 0 {
            Binary {
                fraction: 4 * fraction - 1,
                exponent: exponent - 2,
            }
        } else {
            Binary {
                fraction: 2 * fraction - 1,
                exponent: exponent - 1,
            }
        };
        let shift = (low.exponent - high.exponent).unsigned_abs();
        Self {
            value: Binary { fraction, exponent }.normalized(),
            low: Binary {
                fraction: low.fraction << shift,
                exponent: high.exponent,
            },
            high,
        }
    }
}

const HIDDEN_BIT: u64 = 1 << 52;

/// The interval in which digits may end, as fixed-point numbers with `point` bits behind the point.
struct Scaled {
    high: u64,
    width: u64,
    /// From the value up to `high`.
    distance: u64,
    point: u32,
}

/// Digits of `high` from the left until what is left is inside the interval, and the power of ten of the last.
fn digits(scaled: &Scaled) -> (NumberText, i32) {
    let one = 1u64 << scaled.point;
    let mut text = NumberText::new();
    let mut whole = scaled.high >> scaled.point;
    let mut part = scaled.high & (one - 1);
    for power in (0..10).rev() {
        let unit = 10u64.pow(power);
        push_digit(whole / unit, &mut text);
        whole %= unit;
        let rest = (whole << scaled.point) + part;
        if rest <= scaled.width {
            let unit = unit << scaled.point;
            approach(&mut text, scaled.width, rest, unit, scaled.distance);
            return (text, power.cast_signed());
        }
    }
    let (mut width, mut scale, mut power) = (scaled.width, 1u64, 0);
    loop {
        part *= 10;
        width *= 10;
        scale *= 10;
        power -= 1;
        push_digit(part >> scaled.point, &mut text);
        part &= one - 1;
        if part < width {
            let distance = scaled.distance.wrapping_mul(scale);
            approach(&mut text, width, part, one, distance);
            return (text, power);
        }
    }
}

/// Appends a digit, except zeros at the front.
fn push_digit(digit: u64, text: &mut NumberText) {
    if digit != 0 || !text.is_empty() {
        text.push(&[b'0' + u8::try_from(digit).unwrap_or(0)]);
    }
}

/// Lowers the last digit as long as that leads closer to the value and stays inside the interval.
fn approach(text: &mut NumberText, width: u64, mut rest: u64, unit: u64, distance: u64) {
    while rest < distance
        && width - rest >= unit
        && (rest + unit < distance || distance - rest > rest + unit - distance)
    {
        text.lower_last();
        rest += unit;
    }
}

/// A power of ten that brings a number with this exponent to between 2^4 and 2^32, and its exponent of ten.
#[allow(clippy::cast_possible_truncation)] // at most a few hundred, cut to an integer on purpose
fn power_for(exponent: i32) -> (Binary, i32) {
    // Where servers begin to look; where two powers would do, the way there decides.
    let guess = (f64::from(-(exponent + 87)) * std::f64::consts::LOG10_2) as i32;
    let mut index = usize::try_from((guess - FIRST_POWER) / POWER_STEP).unwrap_or(0);
    loop {
        let (fraction, power_exponent) = POWERS.get(index).copied().unwrap_or((1 << 63, -63));
        let scaled = exponent + power_exponent + 64;
        if scaled < -60 && index + 1 < POWERS.len() {
            index += 1;
        } else if scaled > -32 && index > 0 {
            index -= 1;
        } else {
            let ten = FIRST_POWER + POWER_STEP * i32::try_from(index).unwrap_or(0);
            return (
                Binary {
                    fraction,
                    exponent: power_exponent,
                },
                ten,
            );
        }
    }
}

const FIRST_POWER: i32 = -348;
const POWER_STEP: i32 = 8;

/// Every eighth power of ten from 10^-348 to 10^340, to 64 bits, as (fraction, exponent of two).
#[rustfmt::skip]
const POWERS: [(u64, i32); 87] = [
    (0xfa8f_d5a0_081c_0288, -1220),
    (0xbaae_e17f_a23e_bf76, -1193),
    (0x8b16_fb20_3055_ac76, -1166),
    (0xcf42_894a_5dce_35ea, -1140),
    (0x9a6b_b0aa_5565_3b2d, -1113),
    (0xe61a_cf03_3d1a_45df, -1087),
    (0xab70_fe17_c79a_c6ca, -1060),
    (0xff77_b1fc_bebc_dc4f, -1034),
    (0xbe56_91ef_416b_d60c, -1007),
    (0x8dd0_1fad_907f_fc3c, -980),
    (0xd351_5c28_3155_9a83, -954),
    (0x9d71_ac8f_ada6_c9b5, -927),
    (0xea9c_2277_23ee_8bcb, -901),
    (0xaecc_4991_4078_536d, -874),
    (0x823c_1279_5db6_ce57, -847),
    (0xc210_9436_4dfb_5637, -821),
    (0x9096_ea6f_3848_984f, -794),
    (0xd774_85cb_2582_3ac7, -768),
    (0xa086_cfcd_97bf_97f4, -741),
    (0xef34_0a98_172a_ace5, -715),
    (0xb238_67fb_2a35_b28e, -688),
    (0x84c8_d4df_d2c6_3f3b, -661),
    (0xc5dd_4427_1ad3_cdba, -635),
    (0x936b_9fce_bb25_c996, -608),
    (0xdbac_6c24_7d62_a584, -582),
    (0xa3ab_6658_0d5f_daf6, -555),
    (0xf3e2_f893_dec3_f126, -529),
    (0xb5b5_ada8_aaff_80b8, -502),
    (0x8762_5f05_6c7c_4a8b, -475),
    (0xc9bc_ff60_34c1_3053, -449),
    (0x964e_858c_91ba_2655, -422),
    (0xdff9_7724_7029_7ebd, -396),
    (0xa6df_bd9f_b8e5_b88f, -369),
    (0xf8a9_5fcf_8874_7d94, -343),
    (0xb944_7093_8fa8_9bcf, -316),
    (0x8a08_f0f8_bf0f_156b, -289),
    (0xcdb0_2555_6531_31b6, -263),
    (0x993f_e2c6_d07b_7fac, -236),
    (0xe45c_10c4_2a2b_3b06, -210),
    (0xaa24_2499_6973_92d3, -183),
    (0xfd87_b5f2_8300_ca0e, -157),
    (0xbce5_0864_9211_1aeb, -130),
    (0x8cbc_cc09_6f50_88cc, -103),
    (0xd1b7_1758_e219_652c, -77),
    (0x9c40_0000_0000_0000, -50),
    (0xe8d4_a510_0000_0000, -24),
    (0xad78_ebc5_ac62_0000, 3),
    (0x813f_3978_f894_0984, 30),
    (0xc097_ce7b_c907_15b3, 56),
    (0x8f7e_32ce_7bea_5c70, 83),
    (0xd5d2_38a4_abe9_8068, 109),
    (0x9f4f_2726_179a_2245, 136),
    (0xed63_a231_d4c4_fb27, 162),
    (0xb0de_6538_8cc8_ada8, 189),
    (0x83c7_088e_1aab_65db, 216),
    (0xc45d_1df9_4271_1d9a, 242),
    (0x924d_692c_a61b_e758, 269),
    (0xda01_ee64_1a70_8dea, 295),
    (0xa26d_a399_9aef_774a, 322),
    (0xf209_787b_b47d_6b85, 348),
    (0xb454_e4a1_79dd_1877, 375),
    (0x865b_8692_5b9b_c5c2, 402),
    (0xc835_53c5_c896_5d3d, 428),
    (0x952a_b45c_fa97_a0b3, 455),
    (0xde46_9fbd_99a0_5fe3, 481),
    (0xa59b_c234_db39_8c25, 508),
    (0xf6c6_9a72_a398_9f5c, 534),
    (0xb7dc_bf53_54e9_bece, 561),
    (0x88fc_f317_f222_41e2, 588),
    (0xcc20_ce9b_d35c_78a5, 614),
    (0x9816_5af3_7b21_53df, 641),
    (0xe2a0_b5dc_971f_303a, 667),
    (0xa8d9_d153_5ce3_b396, 694),
    (0xfb9b_7cd9_a4a7_443c, 720),
    (0xbb76_4c4c_a7a4_4410, 747),
    (0x8bab_8eef_b640_9c1a, 774),
    (0xd01f_ef10_a657_842c, 800),
    (0x9b10_a4e5_e991_3129, 827),
    (0xe710_9bfb_a19c_0c9d, 853),
    (0xac28_20d9_623b_f429, 880),
    (0x8044_4b5e_7aa7_cf85, 907),
    (0xbf21_e440_03ac_dd2d, 933),
    (0x8e67_9c2f_5e44_ff8f, 960),
    (0xd433_179d_9c8c_b841, 986),
    (0x9e19_db92_b4e3_1ba9, 1013),
    (0xeb96_bf6e_badf_77d9, 1039),
    (0xaf87_023b_9bf0_ee6b, 1066),
];

#[cfg(test)]
mod tests {
    use super::super::big::Big;
    use super::*;

    #[test]
    fn powers_are_the_nearest_to_64_bits() {
        for (index, &(fraction, exponent)) in (0i32..).zip(&POWERS) {
            let ten = FIRST_POWER + POWER_STEP * index;
            assert_eq!(fraction >> 63, 1);
            // Compare twice the power with the fraction plus and minus one half, in whole numbers.
            let mut power = Big::new(2);
            let (mut below, mut above) = (double_plus(fraction, -1), double_plus(fraction, 1));
            if ten >= 0 {
                power.multiply_power_of_ten(ten.unsigned_abs());
            } else {
                below.multiply_power_of_ten(ten.unsigned_abs());
                above.multiply_power_of_ten(ten.unsigned_abs());
            }
            let shift = exponent.unsigned_abs() as usize;
            if exponent >= 0 {
                below.shift_left(shift);
                above.shift_left(shift);
            } else {
                power.shift_left(shift);
            }
            assert!(power.clone().subtract_if_not_larger(&below), "10^{ten}");
            assert!(above.subtract_if_not_larger(&power), "10^{ten}");
        }
    }

    /// `2 * fraction + step` as a whole number of any size.
    fn double_plus(fraction: u64, step: i32) -> Big {
        let mut number = Big::new(fraction - u64::from(step < 0));
        number.multiply_add(2, 1);
        number
    }
}
