//! One parameter of CONFIG: what values it takes, in the words and with the limits of a real server.

use kvlab_protocol::resp::number::parse_i64;

/// One parameter.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// An older name for it.
    pub alias: Option<&'static str>,
    /// Its value at the start of a server.
    pub default: &'static str,
    kind: Kind,
    change: Change,
}

/// Reads a value, given the value before: what CONFIG GET says then, or what is wrong.
pub type Read = fn(new: &str, old: &str) -> Result<String, String>;

#[derive(Debug, Clone, Copy)]
enum Kind {
    YesNo,
    Integer { min: i64, max: i64 },
    Memory { min: i64 },
    MemoryOrPercent,
    OneOf(&'static [&'static str]),
    Text,
    Special(Read),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Allowed,
    AtStartOnly,
    Protected,
}

impl Parameter {
    /// `yes` or `no`.
    pub(super) const fn yes_no(name: &'static str, default: &'static str) -> Self {
        Self::new(name, default, Kind::YesNo)
    }

    /// An integer from `min` to `max`.
    pub(super) const fn integer(
        name: &'static str,
        default: &'static str,
        min: i64,
        max: i64,
    ) -> Self {
        Self::new(name, default, Kind::Integer { min, max })
    }

    /// Bytes, with a unit if one likes, from `min`.
    pub(super) const fn memory(name: &'static str, default: &'static str, min: i64) -> Self {
        Self::new(name, default, Kind::Memory { min })
    }

    /// Bytes, or a percentage of `maxmemory`.
    pub(super) const fn memory_or_percent(name: &'static str, default: &'static str) -> Self {
        Self::new(name, default, Kind::MemoryOrPercent)
    }

    /// One of these words.
    pub(super) const fn one_of(
        name: &'static str,
        default: &'static str,
        words: &'static [&'static str],
    ) -> Self {
        Self::new(name, default, Kind::OneOf(words))
    }

    /// Any text.
    pub(super) const fn text(name: &'static str, default: &'static str) -> Self {
        Self::new(name, default, Kind::Text)
    }

    /// What `read` takes.
    pub(super) const fn special(name: &'static str, default: &'static str, read: Read) -> Self {
        Self::new(name, default, Kind::Special(read))
    }

    /// Not to be changed while the server runs.
    pub(super) const fn immutable(mut self) -> Self {
        self.change = Change::AtStartOnly;
        self
    }

    /// Not to be changed by clients.
    pub(super) const fn protected(mut self) -> Self {
        self.change = Change::Protected;
        self
    }

    /// With an older name.
    pub(super) const fn alias(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    const fn new(name: &'static str, default: &'static str, kind: Kind) -> Self {
        Self {
            name,
            alias: None,
            default,
            kind,
            change: Change::Allowed,
        }
    }

    /// Why CONFIG SET may not touch it, if it may not.
    #[must_use]
    pub fn refusal(&self) -> Option<&'static str> {
        match self.change {
            Change::Allowed => None,
            Change::AtStartOnly => Some("can't set immutable config"),
            Change::Protected => Some("can't set protected config"),
        }
    }

    /// Reads a value, given the value before: what CONFIG GET says then.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(&self, value: &[u8], old: &str) -> Result<String, String> {
        let value = String::from_utf8_lossy(value);
        match self.kind {
            Kind::Text => Ok(value.into_owned()),
            Kind::Special(read) => read(&value, old),
            Kind::YesNo => match value.to_ascii_lowercase().as_str() {
                "yes" => Ok("yes".to_owned()),
                "no" => Ok("no".to_owned()),
                _ => Err("argument must be 'yes' or 'no'".to_owned()),
            },
            Kind::OneOf(words) => words
                .iter()
                .find(|word| word.eq_ignore_ascii_case(&value))
                .map(|word| (*word).to_owned())
                .ok_or_else(|| {
                    let words = words.join(", ");
                    format!("argument(s) must be one of the following: {words}")
                }),
            Kind::Integer { min, max } => {
                let number = parse_i64(value.as_bytes())
                    .ok_or("argument couldn't be parsed into an integer")?;
                in_range(i128::from(number), min, max)
            }
            Kind::Memory { min } => {
                let bytes = memory(&value).ok_or("argument must be a memory value")?;
                in_range(bytes, min, i64::MAX)
            }
            Kind::MemoryOrPercent => match value.strip_suffix('%') {
                Some(percent) => match percent.parse::<u64>() {
                    Ok(0..=100) => Ok(value.into_owned()),
                    Ok(_) => Err("percentage argument must be less or equal to 100".to_owned()),
                    Err(_) => Err("argument must be a memory or percent value".to_owned()),
                },
                None => {
                    let bytes =
                        memory(&value).ok_or("argument must be a memory or percent value")?;
                    in_range(bytes, 0, i64::MAX)
                }
            },
        }
    }
}

fn in_range(number: i128, min: i64, max: i64) -> Result<String, String> {
    if (i128::from(min)..=i128::from(max)).contains(&number) {
        return Ok(number.to_string());
    }
    Err(format!(
        "argument must be between {min} and {max} inclusive"
    ))
}

/// A number of bytes with an optional unit; no text at all is 0.
pub(super) fn memory(text: &str) -> Option<i128> {
    let unit_at = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(unit_at);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1_i128 << 30,
        _ => return None,
    };
    if digits.is_empty() {
        return unit.is_empty().then_some(0);
    }
    if digits.len() > LONGEST_MEMORY {
        return None;
    }
    Some(digits.parse::<i128>().ok()? * factor)
}

/// More digits are no amount of memory.
const LONGEST_MEMORY: usize = 25;
