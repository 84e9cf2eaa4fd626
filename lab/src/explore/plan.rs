//! A scenario as something that can be made smaller: tables of keys whose values are words with
//! numbers and times in them.
//!
//! What is drawn, run and printed is one text: a plan is rendered to TOML and read back like any
//! scenario file. A plan knows nothing of what its keys mean. It only knows in which ways it could
//! be plainer: without a key, without an item of a list, with a plainer word in place of a compound
//! one, with smaller numbers. Whether the plainer plan is still legal, the reader of scenario files
//! says.

use std::fmt::{self, Display};
use std::time::Duration;

use kvlab_timing::duration;

/// A scenario with one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    tables: Vec<(&'static str, Vec<Entry>)>,
}

/// One key of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    key: &'static str,
    value: Value,
    /// Whether there is no scenario worth running without it.
    needed: bool,
}

/// What stands behind a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number without quotes.
    Number(Number),
    /// A text in quotes.
    Text(Text),
    /// A list of texts; with one item it is that text.
    List(Vec<Text>),
    /// TOML as it stands.
    Plain(&'static str),
}

/// A text in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    pieces: Vec<Piece>,
    /// A plainer text that does something like it.
    plainer: Option<Box<Text>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Word(String),
    Number(Number),
    Time(Number),
}

/// A number that may become smaller, but not below `least`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// The number.
    pub is: u64,
    /// The smallest that makes sense.
    pub least: u64,
}

impl Plan {
    /// Begins a table, such as `[server]`; keys that follow are its own.
    pub fn table(&mut self, head: &'static str) {
        self.tables.push((head, Vec::new()));
    }

    /// A key that may be left out.
    pub fn key(&mut self, key: &'static str, value: impl Into<Value>) {
        self.push(key, value.into(), false);
    }

    /// A key that stays.
    pub fn needed(&mut self, key: &'static str, value: impl Into<Value>) {
        self.push(key, value.into(), true);
    }

    fn push(&mut self, key: &'static str, value: Value, needed: bool) {
        if let Some((_, entries)) = self.tables.last_mut() {
            entries.push(Entry { key, value, needed });
        }
    }

    /// Keys in all tables.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.tables.iter().map(|(_, entries)| entries.len()).sum()
    }

    /// All plans that are one step plainer, the longest steps first. Each has fewer keys, fewer
    /// items, a shorter way to its plainest word or a smaller number, so steps come to an end.
    #[must_use]
    pub fn plainer(&self) -> Vec<Self> {
        let mut found = Vec::new();
        for (table, place) in self.places() {
            if !self.tables[table].1[place].needed {
                let mut plan = self.clone();
                plan.tables[table].1.remove(place);
                found.push(plan);
            }
        }
        for (table, place) in self.places() {
            for value in self.tables[table].1[place].value.plainer() {
                let mut plan = self.clone();
                plan.tables[table].1[place].value = value;
                found.push(plan);
            }
        }
        found
    }

    fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        let tables = self.tables.iter().enumerate();
        tables.flat_map(|(table, (_, entries))| (0..entries.len()).map(move |place| (table, place)))
    }
}

/// As a scenario file. A table without keys is left out, unless it is the client.
impl Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (head, entries) in &self.tables {
            if entries.is_empty() && !head.starts_with("[[") {
                continue;
            }
            writeln!(f, "{head}")?;
            for Entry { key, value, .. } in entries {
                writeln!(f, "{key} = {value}")?;
            }
        }
        Ok(())
    }
}

impl Value {
    fn plainer(&self) -> Vec<Self> {
        match self {
            Self::Number(number) => number.smaller().map(Self::Number).collect(),
            Self::Text(text) => text.plainer().into_iter().map(Self::Text).collect(),
            Self::Plain(_) => Vec::new(),
            Self::List(items) => {
                let without = |place| {
                    let mut items = items.clone();
                    items.remove(place);
                    Self::List(items)
                };
                let mut found = Vec::new();
                if items.len() > 1 {
                    found.extend((0..items.len()).map(without));
                }
                for (place, item) in items.iter().enumerate() {
                    found.extend(item.plainer().into_iter().map(|plainer| {
                        let mut items = items.clone();
                        items[place] = plainer;
                        Self::List(items)
                    }));
                }
                found
            }
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{}", number.is),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::Plain(text) => f.write_str(text),
            Self::List(items) if items.len() == 1 => write!(f, "'{}'", items[0]),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(|item| format!("'{item}'")).collect();
                write!(f, "[{}]", items.join(", "))
            }
        }
    }
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        Self::Text(text)
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl Text {
    /// A text of one word.
    #[must_use]
    pub fn word(word: impl Into<String>) -> Self {
        Self::default().then(word)
    }

    /// A text that is a time.
    #[must_use]
    pub fn time(is_ns: u64, least_ns: u64) -> Self {
        Self::default().then_time(is_ns, least_ns)
    }

    /// With a word behind it.
    #[must_use]
    pub fn then(mut self, word: impl Into<String>) -> Self {
        self.pieces.push(Piece::Word(word.into()));
        self
    }

    /// With a number behind it.
    #[must_use]
    pub fn then_number(mut self, is: u64, least: u64) -> Self {
        self.pieces.push(Piece::Number(Number { is, least }));
        self
    }

    /// With a time behind it, in nanoseconds.
    #[must_use]
    pub fn then_time(mut self, is_ns: u64, least_ns: u64) -> Self {
        let number = Number {
            is: is_ns,
            least: least_ns,
        };
        self.pieces.push(Piece::Time(number));
        self
    }

    /// With another text behind it, and behind its plainer forms.
    #[must_use]
    pub fn then_text(mut self, text: Self) -> Self {
        if let Some(plainer) = text.plainer {
            let mut shorter = self.clone();
            shorter.plainer = None;
            self.plainer = Some(Box::new(shorter.then_text(*plainer)));
        }
        self.pieces.extend(text.pieces);
        self
    }

    /// With a plainer text that could stand in its place.
    #[must_use]
    pub fn or(mut self, plainer: Self) -> Self {
        self.plainer = Some(Box::new(plainer));
        self
    }

    fn plainer(&self) -> Vec<Self> {
        let mut found = Vec::new();
        let mut next = &self.plainer;
        while let Some(plainer) = next {
            found.push((**plainer).clone());
            next = &plainer.plainer;
        }
        for (place, piece) in self.pieces.iter().enumerate() {
            let (Piece::Number(number) | Piece::Time(number)) = piece else {
                continue;
            };
            let smaller = number.smaller().map(|smaller| {
                let mut text = self.clone();
                text.pieces[place] = match piece {
                    Piece::Time(_) => Piece::Time(smaller),
                    _ => Piece::Number(smaller),
                };
                text
            });
            found.extend(smaller);
        }
        found
    }
}

impl Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.pieces {
            match piece {
                Piece::Word(word) => f.write_str(word)?,
                Piece::Number(number) => write!(f, "{}", number.is)?,
                Piece::Time(time) => {
                    f.write_str(&duration::format(Duration::from_nanos(time.is)))?;
                }
            }
        }
        Ok(())
    }
}

impl Number {
    /// Smaller numbers: the least, one with a digit less in use, the half, and of a small one the
    /// next below.
    fn smaller(self) -> impl Iterator<Item = Self> {
        let Self { is, least } = self;
        let below = if is <= SMALL {
            is.saturating_sub(1)
        } else {
            is
        };
        let mut found: Vec<u64> = [least, without_last_digit(is), is / 2, below]
            .into_iter()
            .filter(|number| (least..is).contains(number))
            .collect();
        found.dedup();
        found.into_iter().map(move |is| Self { is, least })
    }
}

/// The number with its last digit that is not 0 turned into one: 1 230 becomes 1 200.
fn without_last_digit(number: u64) -> u64 {
    let mut unit = 1_u64;
    while number > 0 && number.is_multiple_of(unit * 10) {
        unit *= 10;
    }
    number - number % (unit.saturating_mul(10))
}

/// Up to here every number below is tried.
const SMALL: u64 = 64;

/// A number and the smallest that makes sense in its place.
#[must_use]
pub fn number(is: u64, least: u64) -> Number {
    Number { is, least }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Plan {
        let mut plan = Plan::default();
        plan.table("[network]");
        plan.table("[server]");
        let law = Text::word("exponential(")
            .then_time(1_500_000, 0)
            .then(")")
            .or(Text::word("constant(").then_time(1_500_000, 0).then(")"));
        plan.key(
            "latency",
            Value::List(vec![law.clone(), Text::word("get=").then_text(law)]),
        );
        plan.table("[[client]]");
        plan.needed("target", Text::word("redis/").then_number(2, 0));
        plan.key("connections", number(3, 1));
        plan
    }

    #[test]
    fn a_plan_prints_as_a_scenario_file() {
        let mut plan = sample();
        plan.key("expect", Value::Plain("{ failed = 7 }"));
        assert_eq!(
            plan.to_string(),
            "[server]\nlatency = ['exponential(1.5ms)', 'get=exponential(1.5ms)']\n\
             [[client]]\ntarget = 'redis/2'\nconnections = 3\nexpect = { failed = 7 }\n"
        );
    }

    #[test]
    fn plainer_plans_are_all_that_a_step_leads_to() {
        let texts: Vec<String> = sample().plainer().iter().map(ToString::to_string).collect();
        let has = |part: &str| texts.iter().any(|text| text.contains(part));
        assert!(texts.iter().any(|text| !text.contains("latency")));
        assert!(texts.iter().any(|text| !text.contains("connections")));
        assert!(texts.iter().all(|text| text.contains("target")));
        assert!(has("latency = 'get=exponential(1.5ms)'"));
        assert!(has("'get=constant(1.5ms)'"));
        assert!(
            has("exponential(0ns)") || has("exponential(0)"),
            "{texts:#?}"
        );
        assert!(
            has("exponential(1ms)") && has("exponential(750us)"),
            "{texts:#?}"
        );
        assert!(has("redis/1") && has("connections = 1") && has("connections = 2"));
    }

    #[test]
    fn steps_come_to_an_end_at_the_needed_keys() {
        for first in [true, false] {
            let mut plan = sample();
            let mut steps = 0;
            loop {
                let mut plainer = plan.plainer();
                let next = if first {
                    plainer.drain(..).next()
                } else {
                    plainer.pop()
                };
                let Some(next) = next else { break };
                plan = next;
                steps += 1;
                assert!(steps < 2_000, "{plan}");
            }
            assert_eq!(plan.to_string(), "[[client]]\ntarget = 'redis/0'\n");
        }
    }

    #[test]
    fn a_number_loses_its_last_digit_first() {
        for (number, expected) in [
            (0, 0),
            (7, 0),
            (1_234, 1_230),
            (1_230, 1_200),
            (1_000, 0),
            (25_137, 25_130),
        ] {
            assert_eq!(without_last_digit(number), expected, "{number}");
        }
    }
}
