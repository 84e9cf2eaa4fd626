//! Key patterns as Redis reads them: `user:*`, `h?llo`, `h[ae]llo`, `h[^e]llo`, `h[a-b]llo`, and `\`
//! before a byte that is meant as such.
//!
//! The corners are those of a real server: a range may be written backwards, `[` without `]` reaches
//! to the end of the pattern, a lone `\` at the end is a byte like any other. A pattern is compiled
//! once; matching allocates nothing and takes at most (length of pattern) x (length of text) steps.

use std::fmt;

/// A compiled pattern. See the module documentation.
#[derive(Clone, PartialEq, Eq)]
pub struct Glob {
    text: Vec<u8>,
    tokens: Vec<Token>,
    ignore_case: bool,
}

#[derive(Clone, PartialEq, Eq)]
enum Token {
    Byte(u8),
    /// `?`
    Any,
    /// `*`, or several of them in a row.
    Star,
    /// A bit for each byte that fits.
    Set(Box<[u64; 4]>),
}

impl Glob {
    /// Compiles `pattern`; every byte string is a pattern.
    #[must_use]
    pub fn new(pattern: &[u8]) -> Self {
        Self::compile(pattern, false)
    }

    /// The same for ASCII letters of either case.
    #[must_use]
    pub fn ignoring_case(pattern: &[u8]) -> Self {
        Self::compile(pattern, true)
    }

    /// The pattern as it was given.
    #[must_use]
    pub fn pattern(&self) -> &[u8] {
        &self.text
    }

    /// Whether all of `text` fits the pattern.
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        let (mut token, mut byte) = (0, 0);
        // Where to go on after the last star once what follows it does not fit.
        let mut retry = None;
        loop {
            let fits = match (self.tokens.get(token), text.get(byte)) {
                (None, None) => return true,
                (Some(Token::Star), _) => {
                    token += 1;
                    retry = Some((token, byte));
                    continue;
                }
                (Some(token), Some(byte)) => self.fits(token, *byte),
                _ => false,
            };
            if fits {
                token += 1;
                byte += 1;
                continue;
            }
            match retry {
                Some((after_star, from)) if from < text.len() => {
                    retry = Some((after_star, from + 1));
                    (token, byte) = (after_star, from + 1);
                }
                _ => return false,
            }
        }
    }

    fn fits(&self, token: &Token, byte: u8) -> bool {
        let byte = self.fold(byte);
        match token {
            Token::Byte(wanted) => byte == *wanted,
            Token::Any | Token::Star => true,
            Token::Set(bits) => bits[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1,
        }
    }

    fn fold(&self, byte: u8) -> u8 {
        if self.ignore_case {
            byte.to_ascii_lowercase()
        } else {
            byte
        }
    }

    fn compile(pattern: &[u8], ignore_case: bool) -> Self {
        let mut glob = Self {
            text: pattern.to_vec(),
            tokens: Vec::new(),
            ignore_case,
        };
        let mut rest = pattern;
        while let [first, tail @ ..] = rest {
            rest = tail;
            let token = match (first, tail) {
                (b'*', _) if matches!(glob.tokens.last(), Some(Token::Star)) => continue,
                (b'*', _) => Token::Star,
                (b'?', _) => Token::Any,
                (b'[', _) => {
                    let (set, behind) = glob.compile_set(tail);
                    rest = behind;
                    set
                }
                (b'\\', [escaped, behind @ ..]) => {
                    rest = behind;
                    Token::Byte(glob.fold(*escaped))
                }
                (byte, _) => Token::Byte(glob.fold(*byte)),
            };
            glob.tokens.push(token);
        }
        glob
    }

    /// Compiles what follows a `[`; also returns what follows the `]`.
    fn compile_set<'a>(&self, inside: &'a [u8]) -> (Token, &'a [u8]) {
        let (negated, mut rest) = match inside {
            [b'^', rest @ ..] => (true, rest),
            _ => (false, inside),
        };
        let mut bits = [0_u64; 4];
        let mut add = |byte: u8| bits[usize::from(byte >> 6)] |= 1 << (byte & 63);
        let behind = loop {
            match rest {
                [] => break rest,
                [b'\\', escaped, tail @ ..] => {
                    add(self.fold(*escaped));
                    rest = tail;
                }
                [b']', tail @ ..] => break tail,
                [first, b'-', last, tail @ ..] => {
                    let (first, last) = (self.fold(*first), self.fold(*last));
                    (first.min(last)..=first.max(last)).for_each(&mut add);
                    rest = tail;
                }
                [byte, tail @ ..] => {
                    add(self.fold(*byte));
                    rest = tail;
                }
            }
        };
        if negated {
            bits.iter_mut().for_each(|word| *word = !*word);
        }
        (Token::Set(Box::new(bits)), behind)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Glob({:?})", String::from_utf8_lossy(&self.text))
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What KEYS of a redis-server 7.0.15 lists for a database that holds the key.
    #[test]
    fn patterns_select_what_a_real_server_selects() {
        for (pattern, key, selected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("user:*", "user:", true),
            ("user:*", "user:17", true),
            ("user:*", "User:17", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("a*a", "a", false),
            ("a*a", "aba", true),
            ("**a", "ba", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[c-a]llo", "hbllo", true),
            ("h[a-c]llo", "hdllo", false),
            ("[a-]", "a-", false),
            ("[a-]", "a", true),
            ("[a-]", "]", true),
            ("[abc", "c", true),
            ("[^", "c", true),
            ("[", "c", false),
            ("[]a", "a", false),
            ("[\\]]", "]", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a\\", "a\\", true),
            ("?", "é", false),
            ("??", "é", true),
        ] {
            let glob = Glob::new(pattern.as_bytes());
            assert_eq!(glob.matches(key.as_bytes()), selected, "{pattern} on {key}");
        }
    }

    #[test]
    fn case_is_ignored_when_asked() {
        let glob = Glob::ignoring_case(b"MaxMemory-[P-Z]*");
        assert!(glob.matches(b"maxmemory-policy"));
        assert!(!glob.matches(b"maxmemory-clients"));
    }

    /// Without its step back to the last star alone this would take longer than the universe has.
    #[test]
    fn many_stars_take_few_steps() {
        let glob = Glob::new("*a".repeat(200).as_bytes());
        assert!(!glob.matches("a".repeat(199).as_bytes()));
        assert!(glob.matches("a".repeat(200).as_bytes()));
    }
}
