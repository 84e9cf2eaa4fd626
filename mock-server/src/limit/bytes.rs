//! Sizes in bytes, as people write them: `32MiB`, `10MB`, `512`.

use std::fmt;
use std::str::FromStr;

use super::LimitError;

/// A number of bytes. The text form is a whole number with `B`, `KB`, `MB`, `GB` (powers of 1,000),
/// `KiB`, `MiB`, `GiB` (powers of 1,024) or no unit, in any case of letters.
///
/// ```
/// use kvlab_mock_server::limit::ByteSize;
///
/// let size: ByteSize = "32MiB".parse()?;
/// assert_eq!(size.0, 32 * 1024 * 1024);
/// assert_eq!(size.to_string(), "32MiB");
/// # Ok::<(), kvlab_mock_server::limit::LimitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// Units with their sizes, the larger ones first.
const UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

impl FromStr for ByteSize {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let error = || {
            LimitError::new(
                "a size",
                text,
                "a whole number and B, KB, MB, GB, KiB, MiB or GiB, as in 32MiB",
            )
        };
        let trimmed = text.trim();
        let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = trimmed.split_at(digits);
        let unit = unit.trim();
        let factor = if unit.is_empty() {
            1
        } else {
            let known = UNITS
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(unit));
            known.ok_or_else(error)?.1
        };
        let number: u64 = number.parse().map_err(|_| error())?;
        number.checked_mul(factor).map(Self).ok_or_else(error)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, size): &&(&str, u64)| self.0 > 0 && self.0.is_multiple_of(*size);
        let (unit, size) = UNITS.iter().find(fits).unwrap_or(&("B", 1));
        write!(f, "{}{unit}", self.0 / size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_print_as_they_are_read() {
        for (text, bytes, printed) in [
            ("0", 0, "0B"),
            ("512", 512, "512B"),
            ("10MB", 10_000_000, "10MB"),
            ("32mib", 33_554_432, "32MiB"),
            (" 1 GB ", 1_000_000_000, "1GB"),
            ("2048KiB", 2_097_152, "2MiB"),
            ("32KB", 32_000, "32KB"),
            ("1001B", 1_001, "1001B"),
        ] {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!(size, ByteSize(bytes), "{text}");
            assert_eq!(size.to_string(), printed);
            assert_eq!(printed.parse(), Ok(size));
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "MB", "1.5MB", "-1", "1TB", "18446744073709551615KB"] {
            let error = text.parse::<ByteSize>().unwrap_err().to_string();
            assert!(error.contains("as in 32MiB"), "{error}");
        }
    }
}
