//! Patterns for keys, as KEYS, SCAN, CONFIG GET and COMMAND LIST match them.
//!
//! ```text
//! *  any bytes    ?  one byte    [abc]  [^abc]  [a-z]  one byte of a class    \x  x itself
//! ```
//!
//! The odd cases follow a real server: a class that never closes ends with the pattern, a range may
//! be written backwards, a lone backslash at the end stands for itself. A `*` is tried by going back
//! to the last one only, so no pattern takes longer than pattern length times text length.

/// Whether `text` matches `pattern`.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    matches_with(pattern, text, false)
}

/// Whether `text` matches `pattern` when letters of either case are alike.
#[must_use]
pub fn matches_any_case(pattern: &[u8], text: &[u8]) -> bool {
    matches_with(pattern, text, true)
}

fn matches_with(pattern: &[u8], text: &[u8], any_case: bool) -> bool {
    let (mut rest_of_pattern, mut rest_of_text) = (pattern, text);
    // Behind the last `*`, and where the text stood when it was last tried.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        let step = match (rest_of_pattern.split_first(), rest_of_text.split_first()) {
            (None, None) => return true,
            (Some((b'*', behind)), _) => {
                retry = Some((behind, rest_of_text));
                rest_of_pattern = behind;
                continue;
            }
            (Some(_), Some((byte, behind))) => {
                one(rest_of_pattern, *byte, any_case).map(|pattern| (pattern, behind))
            }
            _ => None,
        };
        if let Some((pattern, text)) = step {
            (rest_of_pattern, rest_of_text) = (pattern, text);
            continue;
        }
        // The `*` takes one byte more.
        let Some((pattern, text)) = retry else {
            return false;
        };
        let Some((_, behind)) = text.split_first() else {
            return false;
        };
        retry = Some((pattern, behind));
        (rest_of_pattern, rest_of_text) = (pattern, behind);
    }
}

/// If the element at the front of `pattern` (not a `*`) matches `byte`, what is behind it.
fn one(pattern: &[u8], byte: u8, any_case: bool) -> Option<&[u8]> {
    let fold = |byte: u8| {
        if any_case {
            byte.to_ascii_lowercase()
        } else {
            byte
        }
    };
    let byte = fold(byte);
    match pattern {
        [b'?', behind @ ..] => Some(behind),
        [b'[', class @ ..] => class_matches(class, byte, fold),
        [b'\\', wanted, behind @ ..] | [wanted, behind @ ..] => {
            (fold(*wanted) == byte).then_some(behind)
        }
        [] => None,
    }
}

/// The class behind its `[`: if it matches, what is behind its `]`.
fn class_matches(class: &[u8], byte: u8, fold: impl Fn(u8) -> u8) -> Option<&[u8]> {
    let (negated, mut rest) = match class {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, class),
    };
    let mut found = false;
    loop {
        match rest {
            [b'\\', wanted, behind @ ..] => {
                found |= fold(*wanted) == byte;
                rest = behind;
            }
            [b']', behind @ ..] => {
                rest = behind;
                break;
            }
            [] => break,
            [from, b'-', to, behind @ ..] => {
                let (from, to) = (fold(*from), fold(*to));
                found |= (from.min(to)..=from.max(to)).contains(&byte);
                rest = behind;
            }
            [wanted, behind @ ..] => {
                found |= fold(*wanted) == byte;
                rest = behind;
            }
        }
    }
    (found != negated).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Each row was put to KEYS of redis-server 7.0.15 with the text as the only key.
    #[test]
    fn patterns_match_as_on_a_real_server() {
        let rows: &[(&str, &str, bool)] = &[
            ("*", "", true),
            ("*", "anything", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h*llo", "hellx", false),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hello", false),
            ("h[^e]llo", "hallo", true),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h\\*llo", "h*llo", true),
            ("h\\*llo", "hxllo", false),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "aXbXb", false),
            ("", "", true),
            ("", "a", false),
            ("a[bc", "ab", true),
            ("a[bc", "ad", false),
            ("a\\", "a\\", true),
            ("a[\\]]", "a]", true),
            ("a**", "a", true),
            ("[a-]", "-", false),
            ("abc", "ABC", false),
        ];
        for (pattern, text, expected) in rows {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes()),
                *expected,
                "{pattern} against {text}"
            );
        }
        assert!(matches_any_case(b"MAX[A-M]*", b"maxmemory"));
    }

    #[test]
    fn many_stars_end_soon() {
        let pattern = b"a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
        assert!(!matches(pattern, &[b'a'; 5000]));
    }
}
