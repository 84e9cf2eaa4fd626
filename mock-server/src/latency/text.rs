//! The short text form of laws: `none`, `constant(1ms)`, `lognormal(p50=300us,p99=2ms)`.
//!
//! ```text
//! law      = "none" | name "(" argument { "," argument } ")"
//! argument = [ parameter "=" ] value          without its name: the parameter at this place
//! measured = "empirical" "(" share "%:" time { "," share "%:" time } ")"
//!          | "empirical" "(" "file=" path [ ",unit=" unit ] [ ",tag=" tag ] ")"
//! mixture  = "mixture" "(" share "%:" law { "," share "%:" law } ")"
//! ```
//!
//! Values are durations with a unit, or plain numbers. Spaces around tokens do no harm. Errors name
//! the place and what was expected there.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kvlab_timing::duration::{self, DurationError};

use super::Distribution;
use super::law::{
    Empirical, Exponential, LawError, Lognormal, Mixture, Normal, Pareto, Replay, Uniform, Unit,
};

/// Why a text is not a law, a rule or a freeze, and where it goes wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}, at character {} of '{text}'", self.character())]
pub struct ParseError {
    /// The whole text.
    pub text: String,
    /// Where in it, as an offset in bytes.
    pub at: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// What can be wrong with a law, a rule or a freeze.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Something else stands where a token belongs.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What belongs there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// No law has this name.
    #[error("unknown law '{name}', expected {LAWS}")]
    UnknownLaw {
        /// The name.
        name: String,
    },
    /// The law has no parameter of this name.
    #[error("unknown parameter '{name}', expected {expected}")]
    UnknownParameter {
        /// The name.
        name: String,
        /// The parameters there are.
        expected: String,
    },
    /// More values than the law has parameters.
    #[error("too many values, expected {expected}")]
    TooMany {
        /// The parameters there are.
        expected: String,
    },
    /// A parameter was given twice.
    #[error("'{name}' is given twice")]
    Twice {
        /// The parameter.
        name: &'static str,
    },
    /// A parameter without which the law is incomplete.
    #[error("'{name}' is missing")]
    Missing {
        /// The parameter, or the parameters of which one has to be there.
        name: &'static str,
    },
    /// Parameters of a lognormal law that say too little or too much.
    #[error("expected p50 and p99, p50 and sigma, or mean and sigma")]
    LognormalParameters,
    /// A value that is not a duration.
    #[error(transparent)]
    Duration(#[from] DurationError),
    /// A value that is not a number.
    #[error("'{found}' is not a number")]
    Number {
        /// The value.
        found: String,
    },
    /// Values that make no law.
    #[error(transparent)]
    Law(#[from] LawError),
    /// The first part of a selector is no protocol.
    #[error("unknown protocol '{name}', expected redis or aerospike")]
    UnknownProtocol {
        /// The name.
        name: String,
    },
    /// The server has no such command.
    #[error(
        "'{name}' is no protocol, class (read, write, admin, all) or command of this server{}",
        whose(*protocol)
    )]
    UnknownSelector {
        /// The name.
        name: String,
        /// The protocol it was looked for in, if one was named.
        protocol: Option<crate::exchange::Protocol>,
    },
    /// A key pattern for requests that do not carry their key.
    #[error(
        "Aerospike requests carry the digest of a key and not the key, so a key pattern cannot \
         select them"
    )]
    PatternForDigests,
    /// A value that is not a whole number.
    #[error("'{found}' is not a whole number")]
    WholeNumber {
        /// The value.
        found: String,
    },
    /// A time that has to be above 0.
    #[error("'{parameter}' is 0; expected a time above 0")]
    NoTime {
        /// The parameter.
        parameter: &'static str,
    },
    /// Something that is to happen once and again and again.
    #[error("'at' is for something that happens once; expected it without 'every' and 'first'")]
    AtAndEvery,
    /// A shape that says too little or too much.
    #[error("expected factor or add, and one of them alone")]
    FactorOrAdd,
    /// A factor out of its bounds.
    #[error("a factor of '{found}'; expected a number from 0 to 1000 with at most six places")]
    Factor {
        /// The value.
        found: String,
    },
    /// Too much to add.
    #[error("expected at most 1h to add")]
    LongAdd,
    /// Times of a shape that are too long.
    #[error("expected times of at most 1000h")]
    LongCourse,
    /// A spike that never ends.
    #[error("a spike of {length} every {every}; expected 'for' to be below 'every'")]
    EndlessSpike {
        /// How long it lasts.
        length: String,
        /// How often it comes.
        every: String,
    },
    /// Too few or too many servers of a queue.
    #[error("{found} servers; expected 1 to {}", super::Queue::MAX_SERVERS)]
    Servers {
        /// How many.
        found: String,
    },
    /// A freeze that never ends.
    #[error("a freeze of {length} every {every}; expected 'for' to be above 0 and below 'every'")]
    EndlessFreeze {
        /// How long it lasts.
        length: String,
        /// How often it comes.
        every: String,
    },
}

fn whose(protocol: Option<crate::exchange::Protocol>) -> String {
    protocol.map_or_else(String::new, |protocol| format!("'s {protocol} side"))
}

impl ParseError {
    /// Where it goes wrong, as the number of a character, from 1.
    #[must_use]
    pub fn character(&self) -> usize {
        self.text
            .get(..self.at)
            .map_or(0, |before| before.chars().count())
            + 1
    }

    pub(super) fn new(text: &str, at: usize, problem: impl Into<Problem>) -> Self {
        Self {
            text: text.to_owned(),
            at,
            problem: problem.into(),
        }
    }
}

/// A conversion that cannot fail fits where one that can is asked for.
impl From<Infallible> for ParseError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl FromStr for Distribution {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        law_from(text, 0)
    }
}

/// Reads the law that begins at byte `from` of `text` and fills the rest of it.
pub(super) fn law_from(text: &str, from: usize) -> Result<Distribution, ParseError> {
    let mut reader = Reader { text, at: from };
    let law = reader.law()?;
    reader.skip_spaces();
    if reader.at < text.len() {
        return Err(reader.unexpected("the end"));
    }
    Ok(law)
}

/// A `name=value` or `value` between commas.
#[derive(Debug)]
pub(super) struct Argument<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) at: usize,
    pub(super) value: &'a str,
    pub(super) value_at: usize,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn law(&mut self) -> Result<Distribution, ParseError> {
        self.skip_spaces();
        let at = self.at;
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        match name {
            "" => Err(self.unexpected("a law")),
            "none" => Ok(Distribution::None),
            "mixture" => self.mixture(at),
            "empirical" => self.empirical(at),
            _ => {
                let Some((_, parameters)) = PARAMETERS.iter().find(|(law, _)| *law == name) else {
                    let name = name.to_owned();
                    return Err(self.error(at, Problem::UnknownLaw { name }));
                };
                let arguments = self.arguments()?;
                let values = Values::sort(self.text, at, arguments, parameters)?;
                build(name, &values)
            }
        }
    }

    fn mixture(&mut self, at: usize) -> Result<Distribution, ParseError> {
        self.token('(', "'('")?;
        let mut parts = Vec::new();
        loop {
            self.skip_spaces();
            let share_at = self.at;
            let share = self.take_while(|c| c.is_ascii_digit() || c == '.');
            if share.is_empty() {
                return Err(self.unexpected("a share, as in 99.5%:constant(1ms)"));
            }
            let share = number(self.text, share, share_at)?;
            self.token('%', "'%'")?;
            self.token(':', "':'")?;
            self.skip_spaces();
            // Refused before it is read, so that nesting cannot go deep.
            let law_at = self.at;
            if self.rest().starts_with("mixture") {
                return Err(self.error(law_at, LawError::NestedMixture));
            }
            parts.push((share, self.law()?));
            self.skip_spaces();
            if !self.rest().starts_with(',') {
                break;
            }
            self.at += 1;
        }
        self.token(')', "',' or ')'")?;
        Mixture::new(parts)
            .map(Distribution::Mixture)
            .map_err(|error| self.error(at, error))
    }

    /// `empirical(file=...)`, or `empirical(share%:time, ...)`.
    fn empirical(&mut self, at: usize) -> Result<Distribution, ParseError> {
        let arguments = self.arguments()?;
        let law = if arguments.iter().any(|argument| argument.name.is_some()) {
            let values = Values::sort(self.text, at, arguments, &["file", "unit", "tag"])?;
            let unit = match values.find("unit") {
                None => None,
                Some((name, place)) => match Unit::named(name) {
                    Some(unit) => Some(unit),
                    None => {
                        let problem = Problem::Unexpected {
                            expected: "ns, us, ms or s",
                            found: format!("'{name}'"),
                        };
                        return Err(self.error(place, problem));
                    }
                },
            };
            let (path, _) = values.text("file")?;
            Empirical::from_file(path, unit, values.find("tag").map(|(tag, _)| tag))
        } else {
            let points: Vec<(f64, Duration)> = arguments
                .iter()
                .map(|argument| self.point(argument))
                .collect::<Result<_, _>>()?;
            Empirical::from_quantiles(&points)
        };
        law.map(Distribution::Empirical)
            .map_err(|error| self.error(at, error))
    }

    /// `50%:2ms`.
    fn point(&self, argument: &Argument<'_>) -> Result<(f64, Duration), ParseError> {
        let Some((share, time)) = argument.value.split_once("%:") else {
            let problem = Problem::Unexpected {
                expected: "a quantile, as in 50%:2ms",
                found: format!("'{}'", argument.value),
            };
            return Err(self.error(argument.at, problem));
        };
        let share = number(self.text, share.trim(), argument.value_at)?;
        let time_at = argument.value_at + argument.value.len() - time.len();
        let time = duration::parse(time.trim()).map_err(|error| self.error(time_at, error))?;
        Ok((share / 100.0, time))
    }

    fn arguments(&mut self) -> Result<Vec<Argument<'a>>, ParseError> {
        self.token('(', "'('")?;
        let inside_at = self.at;
        let inside = self.take_while(|c| c != ')' && c != '(');
        self.token(')', "')'")?;
        Ok(arguments_of(inside, inside_at))
    }

    fn token(&mut self, token: char, expected: &'static str) -> Result<(), ParseError> {
        self.skip_spaces();
        if !self.rest().starts_with(token) {
            return Err(self.unexpected(expected));
        }
        self.at += token.len_utf8();
        Ok(())
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += len;
        rest.get(..len).unwrap_or_default()
    }

    fn skip_spaces(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn unexpected(&self, expected: &'static str) -> ParseError {
        let found = match self.rest().chars().next() {
            Some(found) => format!("'{found}'"),
            None => "the end".to_owned(),
        };
        self.error(self.at, Problem::Unexpected { expected, found })
    }

    fn error(&self, at: usize, problem: impl Into<Problem>) -> ParseError {
        ParseError::new(self.text, at, problem)
    }
}

/// Splits `inside`, which begins at byte `at` of the whole text, at its commas outside of parentheses.
pub(super) fn arguments_of(inside: &str, at: usize) -> Vec<Argument<'_>> {
    let mut arguments = Vec::new();
    let mut piece_at = at;
    let mut depth = 0_usize;
    let pieces = inside.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    for piece in pieces {
        let trimmed = |text: &str, at: usize| at + (text.len() - text.trim_start().len());
        let (name, value, value_at) = match piece.split_once('=') {
            Some((name, value)) => (Some(name.trim()), value, piece_at + name.len() + 1),
            None => (None, piece, piece_at),
        };
        arguments.push(Argument {
            name,
            at: trimmed(piece, piece_at),
            value: value.trim(),
            value_at: trimmed(value, value_at),
        });
        piece_at += piece.len() + 1;
    }
    arguments
}

/// The values of a law, by parameter.
pub(super) struct Values<'a> {
    text: &'a str,
    at: usize,
    parameters: &'static [&'static str],
    values: Vec<Option<(&'a str, usize)>>,
}

impl<'a> Values<'a> {
    /// Puts the arguments of what begins at byte `at` of `text` in the order of `parameters`.
    pub(super) fn sort(
        text: &'a str,
        at: usize,
        arguments: Vec<Argument<'a>>,
        parameters: &'static [&'static str],
    ) -> Result<Self, ParseError> {
        let mut values = vec![None; parameters.len()];
        for (place, argument) in arguments.into_iter().enumerate() {
            let error = |problem| Err(ParseError::new(text, argument.at, problem));
            let place = match argument.name {
                None if place >= parameters.len() => {
                    let expected = parameters.join(", ");
                    return error(Problem::TooMany { expected });
                }
                None => place,
                Some(name) => match parameters.iter().position(|parameter| *parameter == name) {
                    Some(place) => place,
                    None => {
                        return error(Problem::UnknownParameter {
                            name: name.to_owned(),
                            expected: parameters.join(", "),
                        });
                    }
                },
            };
            if values[place]
                .replace((argument.value, argument.value_at))
                .is_some()
            {
                return error(Problem::Twice {
                    name: parameters[place],
                });
            }
        }
        Ok(Self {
            text,
            at,
            parameters,
            values,
        })
    }

    /// The text of a value and its place, if it was given.
    pub(super) fn find(&self, name: &str) -> Option<(&'a str, usize)> {
        let place = self
            .parameters
            .iter()
            .position(|parameter| *parameter == name)?;
        self.values[place]
    }

    /// A duration, if it was given.
    pub(super) fn optional_time(&self, name: &str) -> Result<Option<Duration>, ParseError> {
        let Some((value, at)) = self.find(name) else {
            return Ok(None);
        };
        let parsed = duration::parse(value);
        parsed
            .map(Some)
            .map_err(|error| ParseError::new(self.text, at, error))
    }

    /// A duration.
    pub(super) fn time(&self, name: &'static str) -> Result<Duration, ParseError> {
        self.optional_time(name)?
            .ok_or_else(|| self.error(Problem::Missing { name }))
    }

    /// A whole number, if it was given.
    pub(super) fn optional_count(&self, name: &str) -> Result<Option<u64>, ParseError> {
        let Some((value, at)) = self.find(name) else {
            return Ok(None);
        };
        let digits = value.bytes().all(|byte| byte.is_ascii_digit());
        let count = value.parse().ok().filter(|_| digits);
        let wrong = || {
            let found = value.to_owned();
            ParseError::new(self.text, at, Problem::WholeNumber { found })
        };
        count.ok_or_else(wrong).map(Some)
    }

    /// A whole number.
    pub(super) fn count(&self, name: &'static str) -> Result<u64, ParseError> {
        self.optional_count(name)?
            .ok_or_else(|| self.error(Problem::Missing { name }))
    }

    /// The text of a value and its place.
    pub(super) fn text(&self, name: &'static str) -> Result<(&'a str, usize), ParseError> {
        self.find(name)
            .ok_or_else(|| self.error(Problem::Missing { name }))
    }

    fn optional_number(&self, name: &str) -> Result<Option<f64>, ParseError> {
        let Some((value, at)) = self.find(name) else {
            return Ok(None);
        };
        number(self.text, value, at).map(Some)
    }

    fn number(&self, name: &'static str) -> Result<f64, ParseError> {
        self.optional_number(name)?
            .ok_or_else(|| self.error(Problem::Missing { name }))
    }

    /// An error of the value at a place.
    pub(super) fn error_at(&self, at: usize, problem: impl Into<Problem>) -> ParseError {
        ParseError::new(self.text, at, problem)
    }

    /// An error of the whole, not of one value.
    pub(super) fn error(&self, problem: impl Into<Problem>) -> ParseError {
        ParseError::new(self.text, self.at, problem)
    }
}

/// A decimal number without sign or exponent.
fn number(text: &str, value: &str, at: usize) -> Result<f64, ParseError> {
    let plain = value
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let parsed = value.parse().ok().filter(|_| plain);
    parsed.ok_or_else(|| {
        let found = value.to_owned();
        ParseError::new(text, at, Problem::Number { found })
    })
}

fn build(name: &str, values: &Values<'_>) -> Result<Distribution, ParseError> {
    let law = match name {
        "constant" => {
            let delay = values.time("delay")?;
            // The bounds of a uniform law are those of a constant too.
            return match Uniform::new(delay, delay) {
                Ok(_) => Ok(Distribution::constant(delay)),
                Err(error) => Err(values.error(error)),
            };
        }
        "uniform" => {
            Uniform::new(values.time("min")?, values.time("max")?).map(Distribution::Uniform)
        }
        "normal" => Normal::new(values.time("mean")?, values.time("sd")?).map(Distribution::Normal),
        "replay" => Replay::from_file(values.text("file")?.0).map(Distribution::Replay),
        "exponential" => Exponential::new(values.time("mean")?).map(Distribution::Exponential),
        "pareto" => Pareto::new(
            values.time("min")?,
            values.number("shape")?,
            values.optional_time("max")?,
        )
        .map(Distribution::Pareto),
        _ => lognormal(values)?.map(Distribution::Lognormal),
    };
    law.map_err(|error| values.error(error))
}

fn lognormal(values: &Values<'_>) -> Result<Result<Lognormal, LawError>, ParseError> {
    let (p50, p99) = (values.optional_time("p50")?, values.optional_time("p99")?);
    let (mean, sigma) = (
        values.optional_time("mean")?,
        values.optional_number("sigma")?,
    );
    match (p50, p99, mean, sigma) {
        (Some(p50), Some(p99), None, None) => Ok(Lognormal::from_percentiles(p50, p99)),
        (Some(p50), None, None, Some(sigma)) => Ok(Lognormal::from_median(p50, sigma)),
        (None, None, Some(mean), Some(sigma)) => Ok(Lognormal::from_mean(mean, sigma)),
        _ => Err(values.error(Problem::LognormalParameters)),
    }
}

/// The laws with parameters and the parameters by place.
const PARAMETERS: [(&str, &[&str]); 7] = [
    ("constant", &["delay"]),
    ("uniform", &["min", "max"]),
    ("normal", &["mean", "sd"]),
    ("lognormal", &["p50", "p99", "mean", "sigma"]),
    ("exponential", &["mean"]),
    ("pareto", &["min", "shape", "max"]),
    ("replay", &["file"]),
];

const LAWS: LawNames = LawNames;

/// Prints the names of all laws.
struct LawNames;

impl fmt::Display for LawNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("none")?;
        for (name, _) in PARAMETERS {
            write!(f, ", {name}")?;
        }
        f.write_str(", mixture or empirical")
    }
}
