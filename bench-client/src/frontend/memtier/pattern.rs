//! Orders of keys: the letters of `--key-pattern` and `--command-key-pattern`.

use super::{Name, UsageError};

/// An order of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// `R`: each key with the same probability.
    Random,
    /// `S`: one after the other.
    Sequential,
    /// `P`: each client its own part of the keys, one after the other.
    Parallel,
    /// `G`: a bell.
    Gaussian,
    /// `Z`: by Zipf's law.
    Zipf,
}

impl Pattern {
    /// The pattern of a letter.
    #[must_use]
    pub fn of_letter(letter: &str) -> Option<Self> {
        Some(match letter {
            "R" => Self::Random,
            "S" => Self::Sequential,
            "P" => Self::Parallel,
            "G" => Self::Gaussian,
            "Z" => Self::Zipf,
            _ => return None,
        })
    }

    /// Its letter.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Random => 'R',
            Self::Sequential => 'S',
            Self::Parallel => 'P',
            Self::Gaussian => 'G',
            Self::Zipf => 'Z',
        }
    }
}

/// The orders of the keys of SET and GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patterns {
    /// Of SET.
    pub set: Pattern,
    /// Of GET.
    pub get: Pattern,
}

impl Patterns {
    /// Reads `S:R` and the like.
    ///
    /// # Errors
    /// Other letters, or `P` for only one of the two.
    pub fn parse(text: &str) -> Result<Self, UsageError> {
        let wrong = |expected: &str| {
            UsageError::new(
                Name::KeyPattern.spelled(),
                expected,
                format_args!("{text:?}"),
            )
        };
        let patterns = text.split_once(':').and_then(|(set, get)| {
            Some(Self {
                set: Pattern::of_letter(set)?,
                get: Pattern::of_letter(get)?,
            })
        });
        let patterns =
            patterns.ok_or_else(|| wrong("SET:GET, each one of the letters R, S, G, P, Z"))?;
        let parallel = |pattern| pattern == Pattern::Parallel;
        if parallel(patterns.set) != parallel(patterns.get) {
            return Err(wrong("P for both or for none"));
        }
        Ok(patterns)
    }

    /// As it is written.
    #[must_use]
    pub fn as_text(self) -> String {
        format!("{}:{}", self.set.letter(), self.get.letter())
    }
}

impl Default for Patterns {
    fn default() -> Self {
        Self {
            set: Pattern::Random,
            get: Pattern::Random,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_letters_is_read_back() {
        for set in "RSGPZ".chars() {
            for get in "RSGPZ".chars() {
                let text = format!("{set}:{get}");
                let legal = (set == 'P') == (get == 'P');
                match Patterns::parse(&text) {
                    Ok(patterns) => {
                        assert!(legal, "{text}");
                        assert_eq!(patterns.as_text(), text);
                    }
                    Err(_) => assert!(!legal, "{text}"),
                }
            }
        }
        for text in ["", "S", "S:", "s:s", "S:S:S", "X:R", "RR:R"] {
            assert!(Patterns::parse(text).is_err(), "{text}");
        }
    }
}
