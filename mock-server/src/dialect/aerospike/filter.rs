//! Filter expressions, as far as they are constants.
//!
//! `c3` lets every record pass and `c2` none; the unknown constant `[0]` counts as false. What is no
//! msgpack or no boolean is a bad parameter, as on a real server. An expression that would have to be
//! evaluated is answered with "unsupported": a wrong verdict would be worse than none.

use kvlab_protocol::aerospike::msgpack::Value;
use kvlab_protocol::aerospike::result_code::ResultCode;

/// Whether a record passes the filter.
pub(super) fn passes(expression: &[u8]) -> Result<bool, ResultCode> {
    match Value::decode(expression) {
        Ok(Value::Bool(verdict)) => Ok(verdict),
        Ok(Value::List(list)) => match list.items.first().and_then(Value::as_integer) {
            Some(UNKNOWN) if list.items.len() == 1 => Ok(false),
            Some(code) if may_be_boolean(code) => Err(ResultCode::Unsupported),
            _ => Err(ResultCode::Parameter),
        },
        _ => Err(ResultCode::Parameter),
    }
}

/// The code of the constant that is neither true nor false.
const UNKNOWN: i64 = 0;

/// Whether an expression with this code can have a boolean result: comparisons, logic, flags of the
/// record, and whatever takes its type from an argument.
fn may_be_boolean(code: i64) -> bool {
    matches!(code, 1..=9 | 16..=19 | 71 | 72 | 80 | 81 | 122..=125 | 127)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_have_a_verdict_and_the_rest_an_error() {
        assert_eq!(passes(&[0xc3]), Ok(true));
        assert_eq!(passes(&[0xc2]), Ok(false));
        assert_eq!(passes(&[0x91, 0]), Ok(false));
        for malformed in [&[0xc1][..], &[5], &[0xc0], &[0x90], &[0x93, 20, 1, 1], &[]] {
            assert_eq!(
                passes(malformed),
                Err(ResultCode::Parameter),
                "{malformed:?}"
            );
        }
        let greater = [0x93, 3, 0x93, 0x51, 2, 0xa1, b'a', 3];
        assert_eq!(passes(&greater), Err(ResultCode::Unsupported));
    }
}
