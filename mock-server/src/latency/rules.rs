//! Latency rules: `[selector=]law`, and which of several is the one for a request.
//!
//! The most specific rule wins, whatever the order: a key pattern before none, then a command before
//! a class before neither, then a named protocol before none. Among equals the later one wins. A
//! request that no rule selects is not delayed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;

use super::Distribution;
use super::selector::Selector;
use super::text::{ParseError, law_from};
use crate::exchange::{Class, Exchange};

/// A law and the requests it is for.
///
/// ```
/// use kvlab_mock_server::latency::{Distribution, Rule};
///
/// let rule: Rule = "redis.get@user:*=uniform(1ms,3ms)".parse()?;
/// assert_eq!(rule.selector.to_string(), "redis.get@user:*");
/// assert!(matches!(rule.law, Distribution::Uniform(_)));
/// # Ok::<(), kvlab_mock_server::latency::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The requests it is for.
    pub selector: Selector,
    /// How late their replies are.
    pub law: Distribution,
}

impl FromStr for Rule {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let law = law_start(text);
        let selector = match law.checked_sub("=".len()) {
            Some(len) => Selector::parse(text, len)?,
            None => Selector::DATA,
        };
        let law = law_from(text, law)?;
        Ok(Self { selector, law })
    }
}

impl TryFrom<&str> for Rule {
    type Error = ParseError;

    fn try_from(text: &str) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl From<Distribution> for Rule {
    fn from(law: Distribution) -> Self {
        Self {
            selector: Selector::DATA,
            law,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.selector != Selector::DATA {
            write!(f, "{}=", self.selector)?;
        }
        self.law.fmt(f)
    }
}

/// The latency rules of a server, ready to be asked for each request.
#[derive(Debug, Clone, Default)]
pub struct LatencyRules {
    /// As they were given.
    rules: Vec<Rule>,
    plan: Plan,
}

/// How a request finds its rule.
#[derive(Debug, Clone, Default)]
enum Plan {
    /// Nothing is delayed.
    #[default]
    Nothing,
    /// One constant for all reads and writes, the case that has to cost nothing.
    OneConstant { delay_ns: u64 },
    /// The first that selects the request; most specific first.
    Search(Vec<Rule>),
}

/// A server takes at most [`LatencyRules::MAX_RULES`] rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{found} latency rules; expected at most {}", LatencyRules::MAX_RULES)]
pub struct TooManyRules {
    /// How many were given.
    pub found: usize,
}

impl LatencyRules {
    /// More rules are refused: each request may look at all of them.
    pub const MAX_RULES: usize = 256;

    /// Takes rules in the order in which they were given.
    ///
    /// # Errors
    /// When there are more than [`LatencyRules::MAX_RULES`].
    pub fn new(rules: Vec<Rule>) -> Result<Self, TooManyRules> {
        if rules.len() > Self::MAX_RULES {
            return Err(TooManyRules { found: rules.len() });
        }
        let plan = match rules.as_slice() {
            rules if rules.iter().all(|rule| rule.law.is_none()) => Plan::Nothing,
            [
                Rule {
                    selector,
                    law: Distribution::Constant { delay_ns },
                },
            ] if *selector == Selector::DATA => Plan::OneConstant {
                delay_ns: *delay_ns,
            },
            rules => {
                let mut search: Vec<_> = rules.iter().rev().cloned().collect();
                // The sort is stable, so later rules stay in front of their equals.
                search.sort_by_key(|rule| std::cmp::Reverse(rule.selector.specificity()));
                Plan::Search(search)
            }
        };
        Ok(Self { rules, plan })
    }

    /// The same rules for a server that starts now: recorded lists begin with their first delay.
    #[must_use]
    pub fn restarted(&self) -> Self {
        let restart = |rule: &Rule| Rule {
            selector: rule.selector.clone(),
            law: rule.law.restarted(),
        };
        // As many rules as before, so not too many.
        Self::new(self.rules.iter().map(restart).collect()).unwrap_or_default()
    }

    /// The same delay for all reads and writes, in nanoseconds.
    #[must_use]
    pub fn constant(delay_ns: u64) -> Self {
        let law = Distribution::constant(Duration::from_nanos(delay_ns));
        // One rule is never too many.
        Self::new(vec![law.into()]).unwrap_or_default()
    }

    /// The rules as they were given.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether no rule delays anything.
    #[must_use]
    pub fn is_none(&self) -> bool {
        matches!(self.plan, Plan::Nothing)
    }

    /// The delay wanted for `exchange`, in nanoseconds.
    #[inline]
    pub fn wanted_ns(&self, exchange: &Exchange<'_>, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match &self.plan {
            Plan::Nothing => 0,
            Plan::OneConstant { delay_ns } => match exchange.class {
                Class::Read | Class::Write => *delay_ns,
                Class::Admin => 0,
            },
            Plan::Search(rules) => search(rules, exchange).map_or(0, |law| law.sample_ns(rng)),
        }
    }

    /// The law that the delays of requests like `exchange` follow.
    #[must_use]
    pub fn law(&self, exchange: &Exchange<'_>) -> Distribution {
        match &self.plan {
            Plan::Nothing => Distribution::None,
            Plan::OneConstant { delay_ns } => match exchange.class {
                Class::Read | Class::Write => Distribution::Constant {
                    delay_ns: *delay_ns,
                },
                Class::Admin => Distribution::None,
            },
            Plan::Search(rules) => search(rules, exchange).cloned().unwrap_or_default(),
        }
    }
}

fn search<'a>(rules: &'a [Rule], exchange: &Exchange<'_>) -> Option<&'a Distribution> {
    rules
        .iter()
        .find(|rule| rule.selector.selects(exchange))
        .map(|rule| &rule.law)
}

/// Where the law of a rule begins. A key pattern may hold every character, so this looks from the
/// end: over the law's parentheses and its name, to a `=` or to the beginning.
fn law_start(text: &str) -> usize {
    let trimmed = text.trim_end();
    let head = if trimmed.ends_with(')') {
        let mut depth = 0_usize;
        let opening = trimmed.char_indices().rev().find(|(_, c)| {
            match c {
                ')' => depth += 1,
                '(' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        });
        opening.map(|(at, _)| at)
    } else {
        // Not closed, or a law without parameters; the message of the law's reader will tell.
        trimmed.find('(')
    };
    let head = trimmed
        .get(..head.unwrap_or(trimmed.len()))
        .unwrap_or_default();
    head.rfind('=').map_or(0, |equals| equals + 1)
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
