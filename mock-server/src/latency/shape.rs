//! Delays that change over time: a step, a ramp or a spike that multiplies a drawn delay or adds to it,
//! by the moment at which the request starts.
//!
//! ```text
//! step(at=A, ...)               from A on in full
//! ramp(at=A, over=O, ...)       growing evenly from A to A + O, then in full
//! spike(at=A, for=L, ...)       in full from A to before A + L; with every=E again each E
//! ..., factor=F                 the delay times F in full, times 1 + (F - 1) x part on a ramp
//! ..., add=T                    the delay and T in full, and T x part on a ramp
//! ```
//!
//! Everything is whole numbers, rounded down, so that a run is the same on every machine.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kvlab_timing::duration::{self, Human};

use super::occasions::{Occasions, nanos};
use super::text::{ParseError, Problem, Values, arguments_of};
use crate::stamp::LONGEST_NS;

/// A change of delays over time. It prints in the form that [`FromStr`] reads:
///
/// ```
/// use kvlab_mock_server::latency::Shape;
///
/// let ramp: Shape = "ramp(at=5s,over=10s,factor=4)".parse()?;
/// assert_eq!(ramp.to_string(), "ramp(at=5s,over=10s,factor=4)");
/// // Half way up: times two and a half.
/// assert_eq!(ramp.apply(1_000, 10_000_000_000), 2_500);
/// # Ok::<(), kvlab_mock_server::latency::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// When it takes effect.
    pub course: Course,
    /// What it does in full effect.
    pub change: Change,
}

/// How the effect of a shape goes on over time; times are nanoseconds from the server's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// From a moment on.
    Step {
        /// The moment.
        at_ns: u64,
    },
    /// Evenly more and more, then in full.
    Ramp {
        /// Where it begins.
        at_ns: u64,
        /// How long it takes to full effect; above 0.
        over_ns: u64,
    },
    /// For a while, once or again and again.
    Spike {
        /// When each begins.
        when: Occasions,
        /// How long each lasts.
        length_ns: u64,
    },
}

/// What a shape does to a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Multiplies it.
    Factor {
        /// By so many millionths.
        millionths: u64,
    },
    /// Adds to it.
    Add {
        /// So many nanoseconds.
        ns: u64,
    },
}

/// How much of its full effect a shape has: a part of a whole.
#[derive(Debug, Clone, Copy)]
struct Effect {
    part: u128,
    whole: u128,
}

const FULL: Effect = Effect { part: 1, whole: 1 };

impl Shape {
    /// More are refused.
    pub const MAX: usize = 64;

    /// The delay that becomes of `delay_ns` for a request that starts `since_start` nanoseconds after
    /// the server; at most [`LONGEST_NS`].
    #[must_use]
    pub fn apply(&self, delay_ns: u64, since_start: u64) -> u64 {
        let Some(Effect { part, whole }) = self.course.effect(since_start) else {
            return delay_ns;
        };
        let delay = u128::from(delay_ns);
        // At most 2^42 x 10^6 x 1000 x 2^52, below 2^128.
        let changed = match self.change {
            Change::Factor { millionths } => {
                let rest = MILLION * (whole - part);
                delay * (rest + u128::from(millionths) * part) / (MILLION * whole)
            }
            Change::Add { ns } => delay + u128::from(ns) * part / whole,
        };
        u64::try_from(changed).map_or(LONGEST_NS, |changed| changed.min(LONGEST_NS))
    }

    /// What becomes of a delay under all of `shapes`, one after the other.
    #[must_use]
    pub fn apply_all(shapes: &[Self], delay_ns: u64, since_start: u64) -> u64 {
        let apply = |delay: u64, shape: &Self| shape.apply(delay, since_start);
        shapes.iter().fold(delay_ns, apply)
    }
}

impl Course {
    fn effect(&self, since_start: u64) -> Option<Effect> {
        match *self {
            Self::Step { at_ns } => (since_start >= at_ns).then_some(FULL),
            Self::Ramp { at_ns, over_ns } => {
                let into = since_start.checked_sub(at_ns)?;
                Some(Effect {
                    part: u128::from(into.min(over_ns)),
                    whole: u128::from(over_ns),
                })
            }
            Self::Spike { when, length_ns } => {
                let begin = when.latest(since_start)?;
                (since_start - begin < length_ns).then_some(FULL)
            }
        }
    }
}

impl FromStr for Shape {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (name, rest) = text.split_once('(').unwrap_or((text, ""));
        let parameters: &[&str] = match name.trim() {
            "step" => &["at", "factor", "add"],
            "ramp" => &["at", "over", "factor", "add"],
            "spike" => &["at", "for", "every", "factor", "add"],
            _ => {
                let expected = "step(...), ramp(...) or spike(...)";
                let found = format!("'{}'", name.trim());
                return Err(ParseError::new(
                    text,
                    0,
                    Problem::Unexpected { expected, found },
                ));
            }
        };
        let Some(inside) = rest.trim_end().strip_suffix(')') else {
            let problem = Problem::Unexpected {
                expected: "')' at the end",
                found: "the end".to_owned(),
            };
            return Err(ParseError::new(text, text.len(), problem));
        };
        let arguments = arguments_of(inside, name.len() + 1);
        if let Some(bare) = arguments.iter().find(|argument| argument.name.is_none()) {
            let problem = Problem::Unexpected {
                expected: "at=TIME and so on",
                found: format!("'{}'", bare.value),
            };
            return Err(ParseError::new(text, bare.at, problem));
        }
        let values = Values::sort(text, 0, arguments, parameters)?;
        let at_ns = nanos(values.time("at")?);
        let course = match name.trim() {
            "step" => Course::Step { at_ns },
            "ramp" => Course::Ramp {
                at_ns,
                over_ns: positive(&values, "over")?,
            },
            _ => spike(&values, at_ns)?,
        };
        check_bounds(&values, &course)?;
        let change = change(&values)?;
        Ok(Self { course, change })
    }
}

fn spike(values: &Values<'_>, at_ns: u64) -> Result<Course, ParseError> {
    let length_ns = positive(values, "for")?;
    let every = values.optional_time("every")?;
    if let Some(every) = every.filter(|every| nanos(*every) <= length_ns) {
        return Err(values.error(Problem::EndlessSpike {
            length: duration::format(Duration::from_nanos(length_ns)),
            every: duration::format(every),
        }));
    }
    let when = Occasions {
        first_ns: at_ns,
        every_ns: every.map(nanos),
    };
    Ok(Course::Spike { when, length_ns })
}

fn positive(values: &Values<'_>, parameter: &'static str) -> Result<u64, ParseError> {
    match nanos(values.time(parameter)?) {
        0 => Err(values.error(Problem::NoTime { parameter })),
        ns => Ok(ns),
    }
}

fn check_bounds(values: &Values<'_>, course: &Course) -> Result<(), ParseError> {
    let longest = match *course {
        Course::Step { at_ns } => at_ns,
        Course::Ramp { at_ns, over_ns } => at_ns.max(over_ns),
        Course::Spike { when, length_ns } => when.first_ns.max(length_ns),
    };
    if longest > LONGEST_COURSE_NS {
        return Err(values.error(Problem::LongCourse));
    }
    Ok(())
}

fn change(values: &Values<'_>) -> Result<Change, ParseError> {
    let (factor, add) = (values.find("factor"), values.optional_time("add")?);
    match (factor, add) {
        (Some((text, at)), None) => match millionths(text) {
            Some(millionths) => Ok(Change::Factor { millionths }),
            None => Err(values.error_at(
                at,
                Problem::Factor {
                    found: text.to_owned(),
                },
            )),
        },
        (None, Some(add)) if nanos(add) <= LONGEST_NS => Ok(Change::Add { ns: nanos(add) }),
        (None, Some(_)) => Err(values.error(Problem::LongAdd)),
        _ => Err(values.error(Problem::FactorOrAdd)),
    }
}

/// A decimal number of at most six places, from 0 to 1000, in millionths.
fn millionths(text: &str) -> Option<u64> {
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || places.len() > 6 || !digits(whole) || !digits(places) {
        return None;
    }
    let places: u64 = format!("{places:0<6}").parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    let millionths = whole.checked_mul(1_000_000)?.checked_add(places)?;
    (millionths <= 1_000 * 1_000_000).then_some(millionths)
}

impl TryFrom<&str> for Shape {
    type Error = ParseError;

    fn try_from(text: &str) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |ns| Human(Duration::from_nanos(ns));
        match self.course {
            Course::Step { at_ns } => write!(f, "step(at={}", time(at_ns))?,
            Course::Ramp { at_ns, over_ns } => {
                write!(f, "ramp(at={},over={}", time(at_ns), time(over_ns))?;
            }
            Course::Spike { when, length_ns } => {
                write!(
                    f,
                    "spike(at={},for={}",
                    time(when.first_ns),
                    time(length_ns)
                )?;
                if let Some(every_ns) = when.every_ns {
                    write!(f, ",every={}", time(every_ns))?;
                }
            }
        }
        match self.change {
            Change::Factor { millionths } => {
                let (whole, places) = (millionths / 1_000_000, millionths % 1_000_000);
                let places = format!("{places:06}");
                let places = places.trim_end_matches('0');
                let point = if places.is_empty() { "" } else { "." };
                write!(f, ",factor={whole}{point}{places})")
            }
            Change::Add { ns } => write!(f, ",add={})", time(ns)),
        }
    }
}

const MILLION: u128 = 1_000_000;

/// Times of a shape reach a thousand hours at most.
const LONGEST_COURSE_NS: u64 = 1_000 * LONGEST_NS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_print_as_they_are_read() {
        for text in [
            "step(at=5s,factor=3)",
            "step(at=0,add=2ms)",
            "ramp(at=5s,over=10s,factor=0.25)",
            "ramp(at=5s,over=10s,add=1us)",
            "spike(at=5s,for=200ms,add=20ms)",
            "spike(at=5s,for=200ms,every=2s,factor=1.000001)",
        ] {
            let shape: Shape = text.parse().unwrap();
            assert_eq!(shape.to_string(), text);
        }
        let spaced = " spike ( at=5s, for=200ms , add=20ms ) ".trim();
        assert_eq!(
            spaced.parse::<Shape>(),
            "spike(at=5s,for=200ms,add=20ms)".parse()
        );
    }

    #[test]
    fn other_texts_are_refused_with_the_place() {
        for (text, message) in [
            (
                "slope(at=1s)",
                "expected step(...), ramp(...) or spike(...), found 'slope', at character 1 of \
                 'slope(at=1s)'",
            ),
            (
                "step(at=1s,add=1ms",
                "expected ')' at the end, found the end, at character 19 of 'step(at=1s,add=1ms'",
            ),
            (
                "step(at=1s)",
                "expected factor or add, and one of them alone, at character 1 of 'step(at=1s)'",
            ),
            (
                "step(at=1s,factor=2,add=1ms)",
                "expected factor or add, and one of them alone, at character 1 of \
                 'step(at=1s,factor=2,add=1ms)'",
            ),
            (
                "step(at=1s,factor=1001)",
                "a factor of '1001'; expected a number from 0 to 1000 with at most six places, at \
                 character 19 of 'step(at=1s,factor=1001)'",
            ),
            (
                "step(at=1s,factor=0.1234567)",
                "a factor of '0.1234567'; expected a number from 0 to 1000 with at most six places, \
                 at character 19 of 'step(at=1s,factor=0.1234567)'",
            ),
            (
                "ramp(at=1s,over=0,factor=2)",
                "'over' is 0; expected a time above 0, at character 1 of \
                 'ramp(at=1s,over=0,factor=2)'",
            ),
            (
                "spike(at=1s,for=2s,every=2s,factor=2)",
                "a spike of 2s every 2s; expected 'for' to be below 'every', at character 1 of \
                 'spike(at=1s,for=2s,every=2s,factor=2)'",
            ),
            (
                "step(at=2000h,factor=2)",
                "expected times of at most 1000h, at character 1 of 'step(at=2000h,factor=2)'",
            ),
        ] {
            assert_eq!(text.parse::<Shape>().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn delays_change_as_the_rule_says() {
        for (text, delay, moment, changed) in [
            ("step(at=100ns,factor=3)", 10, 99, 10),
            ("step(at=100ns,factor=3)", 10, 100, 30),
            ("step(at=100ns,factor=0)", 10, 100, 0),
            ("step(at=100ns,factor=0.5)", 11, 100, 5),
            ("step(at=100ns,add=7ns)", 0, 100, 7),
            ("ramp(at=100ns,over=10ns,factor=4)", 10, 99, 10),
            ("ramp(at=100ns,over=10ns,factor=4)", 10, 100, 10),
            ("ramp(at=100ns,over=10ns,factor=4)", 10, 101, 13),
            ("ramp(at=100ns,over=10ns,factor=4)", 9, 101, 11),
            ("ramp(at=100ns,over=10ns,factor=4)", 10, 110, 40),
            ("ramp(at=100ns,over=10ns,factor=4)", 10, 999, 40),
            ("ramp(at=100ns,over=10ns,factor=0)", 10, 105, 5),
            ("ramp(at=100ns,over=10ns,add=5ns)", 10, 103, 11),
            ("spike(at=100ns,for=5ns,add=20ns)", 10, 104, 30),
            ("spike(at=100ns,for=5ns,add=20ns)", 10, 105, 10),
            ("spike(at=100ns,for=5ns,add=20ns)", 10, 204, 10),
            ("spike(at=100ns,for=5ns,every=100ns,add=20ns)", 10, 204, 30),
            ("step(at=0,factor=1000)", LONGEST_NS, 0, LONGEST_NS),
        ] {
            let shape: Shape = text.parse().unwrap();
            assert_eq!(shape.apply(delay, moment), changed, "{text} at {moment}");
        }
    }

    #[test]
    fn the_largest_numbers_fit() {
        let text = "ramp(at=1000h,over=1000h,factor=1000)";
        let shape: Shape = text.parse().unwrap();
        let end = 2_000 * LONGEST_NS;
        assert_eq!(shape.apply(LONGEST_NS, end), LONGEST_NS);
        assert_eq!(shape.apply(1_000, end), 1_000_000);
        assert_eq!(shape.apply(1_000, end - 500 * LONGEST_NS), 500_500);
    }

    #[test]
    fn several_shapes_work_one_after_the_other() {
        let shapes =
            ["step(at=0,factor=2)", "step(at=0,add=5ns)"].map(|text| text.parse().unwrap());
        assert_eq!(Shape::apply_all(&shapes, 10, 0), 25);
        let shapes = [shapes[1], shapes[0]];
        assert_eq!(Shape::apply_all(&shapes, 10, 0), 30);
    }
}
