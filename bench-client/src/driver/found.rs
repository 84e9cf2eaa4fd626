//! How many of the keys of a request were found: the elements of its reply.
//!
//! ```text
//! MGET a b c   ->   *3 $1 x $-1 $1 y      two found, one missing
//! ```

use super::Answer;

/// What the reply to a request on several keys says; `None` for a reply that is no array of strings.
pub(super) fn keys_of(frame: &[u8]) -> Option<Answer> {
    let (count, mut rest) = line(frame.strip_prefix(b"*")?)?;
    let (mut found, mut missing) = (0, 0);
    for _ in 0..count {
        match rest.split_first()? {
            (b'$', after) => {
                let (len, after) = line(after)?;
                match usize::try_from(len) {
                    Ok(len) => {
                        found += 1;
                        rest = after.get(len..)?.strip_prefix(b"\r\n")?;
                    }
                    // No string: RESP2's nil.
                    Err(_) => {
                        missing += 1;
                        rest = after;
                    }
                }
            }
            (b'_', after) => {
                missing += 1;
                rest = after.strip_prefix(b"\r\n")?;
            }
            _ => return None,
        }
    }
    Some(Answer::Keys { found, missing })
}

/// A number up to the end of its line, and what is behind it.
fn line(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\r')?;
    let number = std::str::from_utf8(bytes.get(..end)?).ok()?.parse().ok()?;
    Some((number, bytes.get(end..)?.strip_prefix(b"\r\n")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_or_missing() {
        for (frame, found, missing) in [
            (&b"*3\r\n$1\r\nx\r\n$-1\r\n$0\r\n\r\n"[..], 2, 1),
            (b"*2\r\n_\r\n$4\r\n\r\n$-\r\n", 1, 1),
            (b"*1\r\n$-1\r\n", 0, 1),
            (b"*0\r\n", 0, 0),
        ] {
            assert_eq!(keys_of(frame), Some(Answer::Keys { found, missing }));
        }
        for other in [
            &b"$1\r\nx\r\n"[..],
            b"+OK\r\n",
            b"*1\r\n:1\r\n",
            b"*2\r\n$1\r\nx\r\n",
        ] {
            assert_eq!(keys_of(other), None);
        }
    }
}
