//! Operations on lists inside bins: append, append items, size.
//!
//! | code | operation | arguments | result |
//! |---|---|---|---|
//! | 1 | append | value, \[order, flags\] | size |
//! | 2 | append items | list, \[order, flags\] | size |
//! | 16 | size | | size |
//!
//! Every other code a real server knows, and every context, is answered with "unsupported"; codes it
//! does not know and wrong arguments are a bad parameter. All three forms of a call are read, the
//! two-byte one of very old clients included.

use bytes::BytesMut;
use kvlab_protocol::aerospike::cdt::Call;
use kvlab_protocol::aerospike::message::ParticleType;
use kvlab_protocol::aerospike::msgpack::{List, Order, Value, normalise};
use kvlab_protocol::aerospike::order::compare;
use kvlab_protocol::aerospike::particle;
use kvlab_protocol::aerospike::result_code::ResultCode;

use super::bins::{Bin, Bins};

/// Flag of a list operation: every value must be new.
const ADD_UNIQUE: i64 = 1;
/// Flag: what may not be added is left out without an error.
const NO_FAIL: i64 = 4;
/// Flag: of several items those are added that may be.
const PARTIAL: i64 = 8;

/// Runs an operation that reads a collection.
pub(super) fn read(bin: &Bin<'_>, call: &[u8]) -> Result<Option<particle::Value>, ResultCode> {
    let call = parse(call)?;
    match (call.code(), call.args()) {
        (16, []) if call.context().is_empty() => {
            let size = list_of(bin)?.items.len();
            Ok(Some(integer(size)))
        }
        (code @ (16..=27 | 96..=110 | 254), _) => Err(refusal(code, call.args())),
        _ => Err(ResultCode::Parameter),
    }
}

/// Runs an operation that changes a collection; it may create the bin.
pub(super) fn modify(
    bins: &mut Bins,
    name: &[u8],
    call: &[u8],
) -> Result<Option<particle::Value>, ResultCode> {
    let call = parse(call)?;
    let code = call.code();
    let (values, order, flags) = match (code, call.args()) {
        (1, [value]) => (std::slice::from_ref(value), 0, 0),
        (1, [value, Value::Integer(order), Value::Integer(flags)]) => {
            (std::slice::from_ref(value), *order, *flags)
        }
        (2, [Value::List(list)]) => (list.items.as_slice(), 0, 0),
        (
            2,
            [
                Value::List(list),
                Value::Integer(order),
                Value::Integer(flags),
            ],
        ) => (list.items.as_slice(), *order, *flags),
        (0 | 3..=13 | 32..=40 | 64..=89 | 254, args) => return Err(refusal(code, args)),
        _ => return Err(ResultCode::Parameter),
    };
    if !call.context().is_empty() {
        return Err(ResultCode::Unsupported);
    }
    let mut list = match bins.get(name) {
        Some(bin) => list_of(&bin)?,
        None => List {
            order: (order & 1 != 0).then_some(Order::ORDERED),
            items: Vec::new(),
        },
    };
    append(&mut list, values, flags)?;
    let size = integer(list.items.len());
    let mut bytes = BytesMut::new();
    list.encode(&mut bytes);
    bins.set(name, ParticleType::List, &bytes);
    Ok(Some(size))
}

fn parse(call: &[u8]) -> Result<Call, ResultCode> {
    Call::parse(call).map_err(|error| error.result_code())
}

/// What a known operation that is not built gets: the argument count is not looked at, except that
/// one which needs arguments and has none cannot be right.
fn refusal(code: i64, args: &[Value]) -> ResultCode {
    let without = matches!(code, 11 | 13 | 16 | 75 | 96);
    if args.is_empty() && !without {
        ResultCode::Parameter
    } else {
        ResultCode::Unsupported
    }
}

fn list_of(bin: &Bin<'_>) -> Result<List, ResultCode> {
    if bin.particle != ParticleType::List {
        return Err(ResultCode::IncompatibleType);
    }
    // Stored lists were checked when they were written.
    List::decode(bin.value).map_err(|error| error.result_code())
}

fn append(list: &mut List, values: &[Value], flags: i64) -> Result<(), ResultCode> {
    let mut added = Vec::with_capacity(values.len());
    for value in values {
        let mut value = value.clone();
        normalise(&mut value).map_err(|_| ResultCode::Parameter)?;
        let same = |other: &Value| compare(other, &value).is_eq();
        if flags & ADD_UNIQUE != 0 && (list.items.iter().any(same) || added.iter().any(same)) {
            match flags & (NO_FAIL | PARTIAL) {
                both if both == NO_FAIL | PARTIAL => continue,
                one if one & NO_FAIL != 0 => return Ok(()),
                _ => return Err(ResultCode::ElementExists),
            }
        }
        added.push(value);
    }
    list.items.append(&mut added);
    if list
        .order
        .is_some_and(|order| order.contains(Order::ORDERED))
    {
        list.items.sort_by(compare);
    }
    Ok(())
}

fn integer(size: usize) -> particle::Value {
    particle::Value::Integer(i64::try_from(size).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(bins: &Bins) -> &[u8] {
        bins.get(b"l").unwrap().value
    }

    #[test]
    fn append_creates_and_grows_a_list() {
        let mut bins = Bins::default();
        let size = modify(&mut bins, b"l", &[0x92, 1, 5]);
        assert_eq!(size, Ok(Some(particle::Value::Integer(1))));
        let size = modify(&mut bins, b"l", &[0x92, 2, 0x94, 3, 9, 1, 5]);
        assert_eq!(size, Ok(Some(particle::Value::Integer(5))));
        assert_eq!(stored(&bins), [0x95, 5, 3, 9, 1, 5]);
        let size = read(&bins.get(b"l").unwrap(), &[0x91, 16]);
        assert_eq!(size, Ok(Some(particle::Value::Integer(5))));
        // The two-byte form of very old clients.
        let size = modify(&mut bins, b"l", &[0, 1, 0x91, 7]);
        assert_eq!(size, Ok(Some(particle::Value::Integer(6))));
    }

    #[test]
    fn an_ordered_list_stays_in_order() {
        let mut bins = Bins::default();
        modify(&mut bins, b"l", &[0x94, 2, 0x93, 8, 3, 5, 1, 0]).unwrap();
        modify(&mut bins, b"l", &[0x94, 1, 4, 1, 0]).unwrap();
        assert_eq!(stored(&bins), [0x95, 0xc7, 0, 1, 3, 4, 5, 8]);
    }

    #[test]
    fn unique_lists_refuse_what_they_hold() {
        let mut bins = Bins::default();
        modify(&mut bins, b"l", &[0x92, 1, 5]).unwrap();
        let again = modify(&mut bins, b"l", &[0x94, 1, 5, 0, 1]);
        assert_eq!(again, Err(ResultCode::ElementExists));
        modify(&mut bins, b"l", &[0x94, 2, 0x92, 5, 6, 0, 5]).unwrap();
        assert_eq!(stored(&bins), [0x91, 5]);
        modify(&mut bins, b"l", &[0x94, 2, 0x92, 5, 6, 0, 13]).unwrap();
        assert_eq!(stored(&bins), [0x92, 5, 6]);
    }

    #[test]
    fn what_is_not_built_is_unsupported_and_what_is_wrong_a_bad_parameter() {
        let mut bins = Bins::default();
        bins.set(b"s", ParticleType::String, b"x");
        let cases: [(&[u8], ResultCode); 7] = [
            (&[], ResultCode::Parameter),
            (&[0x91, 1], ResultCode::Parameter),
            (&[0x91, 60], ResultCode::Parameter),
            (&[0x93, 1, 5, 0], ResultCode::Parameter),
            (&[0x93, 3, 0, 5], ResultCode::Unsupported),
            (
                &[0x93, 0xcc, 0xff, 0x92, 0x10, 0, 0x92, 1, 5],
                ResultCode::Unsupported,
            ),
            (&[0x92, 1, 5], ResultCode::IncompatibleType),
        ];
        for (call, code) in cases {
            assert_eq!(modify(&mut bins, b"s", call), Err(code), "{call:x?}");
        }
        let bin = bins.get(b"s").unwrap();
        assert_eq!(read(&bin, &[0x91, 16]), Err(ResultCode::IncompatibleType));
        assert_eq!(read(&bin, &[0x91, 1]), Err(ResultCode::Parameter));
    }
}
