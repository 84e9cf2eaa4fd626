//! Looking up options among a tool's arguments, as far as the grading has to understand them.
//!
//! The forms are `-c 10`, `-c10`, `--clients 10` and `--clients=10`. What a word means that follows
//! an unknown option is not known, so a value that looks like an option is found as one; this is
//! the reading of a bystander, and the tool has the last word.

use std::ffi::OsString;
use std::str::FromStr;

/// The arguments of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a>(&'a [OsString]);

impl<'a> Options<'a> {
    /// Looks into `arguments`.
    #[must_use]
    pub fn new(arguments: &'a [OsString]) -> Self {
        Self(arguments)
    }

    /// Whether one of these options is there, with or without a value.
    #[must_use]
    pub fn has(&self, names: &[&str]) -> bool {
        self.place(names).is_some()
    }

    /// The value of the last of these options.
    #[must_use]
    pub fn value(&self, names: &[&str]) -> Option<&'a str> {
        let (place, attached) = self.place(names)?;
        match attached {
            Some(value) => Some(value),
            None => self.0.get(place + 1)?.to_str(),
        }
    }

    /// The value as a number or another type.
    ///
    /// # Errors
    /// When it is no such thing.
    pub fn parsed<T: FromStr>(&self, names: &[&str]) -> Result<Option<T>, String> {
        let name = names.first().copied().unwrap_or_default();
        let Some(text) = self.value(names) else {
            return match self.has(names) {
                true => Err(format!("{name}: expected a value")),
                false => Ok(None),
            };
        };
        let value = text
            .parse()
            .map_err(|_| format!("{name}: '{text}' is not a number the grading can use"))?;
        Ok(Some(value))
    }

    /// The last place of one of these options, and a value in the same word.
    fn place(&self, names: &[&str]) -> Option<(usize, Option<&'a str>)> {
        self.0.iter().enumerate().rev().find_map(|(place, word)| {
            let word = word.to_str()?;
            let attached = names.iter().find_map(|name| {
                let rest = word.strip_prefix(name)?;
                if rest.is_empty() {
                    return Some(None);
                }
                if name.starts_with("--") {
                    return rest.strip_prefix('=').map(Some);
                }
                // `-c10`, but not `-csv` for `-c`.
                rest.starts_with(|first: char| first.is_ascii_digit())
                    .then_some(Some(rest))
            })?;
            Some((place, attached))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn all_forms_of_an_option_are_found_and_the_last_counts() {
        let clients = &["-c", "--clients"];
        for (text, value) in [
            ("-c 10 -n 5", Some("10")),
            ("-n 5 -c10", Some("10")),
            ("--clients=10 -n 5", Some("10")),
            ("--clients 10", Some("10")),
            ("-c 10 -c 20", Some("20")),
            ("--csv -cx", None),
            ("-t get", None),
        ] {
            let words = words(text);
            assert_eq!(Options::new(&words).value(clients), value, "{text}");
        }
    }

    #[test]
    fn numbers_are_parsed_and_other_words_refused() {
        let words = words("-c ten -n 5 -P");
        let options = Options::new(&words);
        assert_eq!(options.parsed(&["-n"]), Ok(Some(5_u32)));
        assert_eq!(options.parsed::<u32>(&["-k"]), Ok(None));
        assert_eq!(
            options.parsed::<u32>(&["-c"]),
            Err("-c: 'ten' is not a number the grading can use".to_owned())
        );
        assert_eq!(
            options.parsed::<u32>(&["-P"]),
            Err("-P: expected a value".to_owned())
        );
        assert!(options.has(&["-P"]) && !options.has(&["-q"]));
    }
}
