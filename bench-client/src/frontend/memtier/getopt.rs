//! From arguments to options, by the rules of GNU `getopt_long`.
//!
//! ```text
//! --port 7000   --port=7000   --po 7000      a long name, or a prefix of it that only one has
//! -p 7000       -p7000        -R4D           short names, flags joined
//! --                                         ends the options
//! ```
//!
//! clap is not used here: an option of our own must never make a prefix ambiguous that people use
//! with the original, the order of `--command` and `--command-ratio` matters, and an error is one
//! line that names the option. Words that belong to no option are an error; the original passes
//! over them in silence, so that a forgotten quote or dash changes the test unseen.

use std::ffi::OsString;

use super::UsageError;
use super::table::{Name, Origin, Row, TABLE};

/// An option as given, with its argument; empty for a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Which.
    pub name: Name,
    /// Its argument.
    pub value: String,
}

/// Takes arguments apart, without the name of the program.
///
/// # Errors
/// An option that is unknown, ambiguous, without its argument or with one too many; a word that
/// belongs to no option; an argument that is not UTF-8.
pub fn parse<A>(arguments: A) -> Result<Vec<Given>, UsageError>
where
    A: IntoIterator<Item: Into<OsString>>,
{
    let mut given = Vec::new();
    let mut words = arguments.into_iter().map(|word| {
        let word: OsString = word.into();
        word.into_string()
            .map_err(|word| UsageError::new("options", "text in UTF-8", word.to_string_lossy()))
    });
    while let Some(word) = words.next().transpose()? {
        let mut next = || words.next().transpose();
        if word == "--" {
            if let Some(word) = next()? {
                return Err(stray(&word));
            }
        } else if let Some(long) = word.strip_prefix("--") {
            given.push(long_option(long, next)?);
        } else if let Some(shorts) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            short_options(shorts, next, &mut given)?;
        } else {
            return Err(stray(&word));
        }
    }
    Ok(given)
}

fn long_option(
    text: &str,
    next: impl FnOnce() -> Result<Option<String>, UsageError>,
) -> Result<Given, UsageError> {
    let (long, inline) = match text.split_once('=') {
        Some((long, value)) => (long, Some(value.to_owned())),
        None => (text, None),
    };
    let row = find(long)?;
    let value = match (row.argument, inline) {
        (None, None) => String::new(),
        (None, Some(value)) => {
            return Err(UsageError::new(
                row.spelled,
                "no argument",
                format_args!("{value:?}"),
            ));
        }
        (Some(_), Some(value)) => value,
        (Some(argument), None) => next()?.ok_or_else(|| missing(row, argument))?,
    };
    Ok(Given {
        name: row.name,
        value,
    })
}

fn short_options(
    shorts: &str,
    next: impl FnOnce() -> Result<Option<String>, UsageError>,
    given: &mut Vec<Given>,
) -> Result<(), UsageError> {
    for (place, short) in shorts.char_indices() {
        let row = TABLE
            .iter()
            .find(|row| row.short == Some(short))
            .ok_or_else(|| unknown(&format!("-{short}")))?;
        let Some(argument) = row.argument else {
            given.push(Given {
                name: row.name,
                value: String::new(),
            });
            continue;
        };
        let rest = shorts.get(place + short.len_utf8()..).unwrap_or_default();
        let value = if rest.is_empty() {
            next()?.ok_or_else(|| missing(row, argument))?
        } else {
            rest.to_owned()
        };
        given.push(Given {
            name: row.name,
            value,
        });
        return Ok(());
    }
    Ok(())
}

/// The option of this long name, or the only one that begins with it. Older options are asked
/// first, so that a newer one takes no prefix away.
fn find(long: &str) -> Result<&'static Row, UsageError> {
    if let Some(row) = TABLE.iter().find(|row| row.long() == long) {
        return Ok(row);
    }
    let begins = |row: &&Row| row.long().starts_with(long);
    for origin in [Origin::Classic, Origin::Later, Origin::Own] {
        let found: Vec<&'static Row> = TABLE
            .iter()
            .filter(|row| row.origin == origin)
            .filter(begins)
            .collect();
        match found[..] {
            [] => {}
            [row] => return Ok(row),
            _ => {
                let names: Vec<_> = TABLE.iter().filter(begins).map(|row| row.spelled).collect();
                return Err(UsageError::new(
                    "options",
                    format!("one of {}", names.join(", ")),
                    format_args!("--{long}"),
                ));
            }
        }
    }
    Err(unknown(&format!("--{long}")))
}

fn unknown(option: &str) -> UsageError {
    UsageError::new("options", "a known option (see --help)", option)
}

fn missing(row: &Row, argument: &str) -> UsageError {
    UsageError::new(row.spelled, argument, "nothing")
}

fn stray(word: &str) -> UsageError {
    UsageError::new("options", "an option", format_args!("the word {word:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Vec<(Name, String)>, String> {
        parse(words)
            .map(|given| given.into_iter().map(|g| (g.name, g.value)).collect())
            .map_err(|error| error.to_string())
    }

    fn one(words: &[&str]) -> (Name, String) {
        match parsed(words).unwrap().as_slice() {
            [one] => one.clone(),
            other => panic!("{words:?}: {other:?}"),
        }
    }

    #[test]
    fn every_long_option_is_read_in_both_forms() {
        for row in TABLE {
            let expected = row.argument.map_or("", |_| "17").to_owned();
            if row.argument.is_some() {
                let joined = format!("{}=17", row.spelled);
                assert_eq!(one(&[&joined]), (row.name, expected.clone()), "{joined}");
                assert_eq!(one(&[row.spelled, "17"]), (row.name, expected));
                assert!(parsed(&[row.spelled]).unwrap_err().contains(row.spelled));
            } else {
                assert_eq!(one(&[row.spelled]), (row.name, expected));
                let joined = format!("{}=17", row.spelled);
                assert!(parsed(&[&joined]).unwrap_err().contains("no argument"));
            }
        }
    }

    #[test]
    fn every_short_option_is_read_in_both_forms() {
        for row in TABLE {
            let Some(short) = row.short else { continue };
            let dashed = format!("-{short}");
            if row.argument.is_some() {
                assert_eq!(one(&[&dashed, "v"]), (row.name, "v".into()));
                assert_eq!(one(&[&format!("{dashed}v")]), (row.name, "v".into()));
                assert!(parsed(&[&dashed]).unwrap_err().contains(row.spelled));
            } else {
                assert_eq!(one(&[&dashed]), (row.name, String::new()));
            }
        }
    }

    #[test]
    fn joined_flags_may_end_in_an_option_with_an_argument() {
        let expected = vec![
            (Name::RandomData, String::new()),
            (Name::Ipv4, String::new()),
            (Name::Threads, "8".to_owned()),
        ];
        assert_eq!(parsed(&["-R4t8"]), Ok(expected.clone()));
        assert_eq!(parsed(&["-R4t", "8"]), Ok(expected));
    }

    #[test]
    fn prefixes_that_are_unique_in_the_original_stay_so() {
        // Each has more than one continuation once the newer options and ours are counted.
        for (prefix, name) in [
            ("--rate-limit", Name::RateLimiting),
            ("--json", Name::JsonOutFile),
            ("--cer", Name::Cert),
            ("--max", Name::MaxReconnectAttempts),
            ("--connect", Name::ConnectionTimeout),
            ("--req", Name::Requests),
            ("--pip", Name::Pipeline),
            ("--print-perc", Name::PrintPercentiles),
            ("--command-s", Name::CommandStatsBreakdown),
            ("--max-retries", Name::MaxRetries),
            ("--retry-backoff-m", Name::RetryBackoffMs),
            ("--html", Name::Html),
            ("--same", Name::SameSeed),
        ] {
            assert_eq!(
                one(&[prefix, "1"][..=usize::from(name.row().argument.is_some())]).0,
                name
            );
        }
    }

    #[test]
    fn exact_names_win_over_longer_ones() {
        assert_eq!(one(&["--key", "f"]).0, Name::Key);
        assert_eq!(one(&["--tls"]).0, Name::Tls);
        assert_eq!(one(&["--command", "PING"]).0, Name::Command);
        assert_eq!(one(&["--retry-on", "BUSY"]).0, Name::RetryOn);
        assert_eq!(one(&["--clients", "1"]).0, Name::Clients);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let table: &[(&[&str], &str)] = &[
            (
                &["--key-m", "1"],
                "--key-minimum, --key-maximum, --key-median",
            ),
            (&["--nonsense"], "--nonsense"),
            (&["-q"], "-q"),
            (&["-Rq"], "-q"),
            (&["--port"], "--port"),
            (&["word"], "\"word\""),
            (&["--", "word"], "\"word\""),
            (&["-"], "\"-\""),
            (&["--tls=yes"], "no argument"),
        ];
        for (words, part) in table {
            let error = parsed(words).unwrap_err();
            assert!(error.contains(part), "{words:?}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn arguments_may_look_like_options() {
        assert_eq!(one(&["-a", "-x"]), (Name::Authenticate, "-x".into()));
        assert_eq!(one(&["--command", "--"]), (Name::Command, "--".into()));
        assert_eq!(one(&["--uri=redis://a=b@h"]).1, "redis://a=b@h");
    }
}
