//! Operations that compute a bin's new value from its old one: increment, append, prepend.

use std::borrow::Cow;

use kvlab_protocol::aerospike::message::{Op, ParticleType};
use kvlab_protocol::aerospike::particle::stored_form;
use kvlab_protocol::aerospike::result_code::ResultCode;

use super::bins::Bins;
use super::geo;

/// Writes the operand of `op` to its bin; no value removes the bin.
#[inline]
pub(super) fn write(bins: &mut Bins, op: &Op<'_>) -> Result<(), ResultCode> {
    if op.particle == ParticleType::Nil && op.value.is_empty() {
        bins.remove(op.name);
        return Ok(());
    }
    let value = operand(op)?;
    bins.set(op.name, op.particle, &value);
    Ok(())
}

/// The operand in the form in which it is stored.
fn operand<'a>(op: &Op<'a>) -> Result<Cow<'a, [u8]>, ResultCode> {
    match op.particle {
        ParticleType::GeoJson => geo::stored_form(op.value).map(Cow::Owned),
        other => stored_form(other, op.value).map_err(|error| error.result_code()),
    }
}

/// Adds the operand. Integers wrap around; the types must agree. A missing bin counts as zero.
pub(super) fn increment(bins: &mut Bins, op: &Op<'_>) -> Result<(), ResultCode> {
    if !matches!(op.particle, ParticleType::Integer | ParticleType::Double) {
        return Err(ResultCode::IncompatibleType);
    }
    let operand = operand(op)?;
    let Some(bin) = bins.get(op.name) else {
        bins.set(op.name, op.particle, &operand);
        return Ok(());
    };
    let (Some(old), Some(by)) = (eight(bin.value), eight(&operand)) else {
        return Err(ResultCode::IncompatibleType);
    };
    let new = match (bin.particle, op.particle) {
        (ParticleType::Integer, ParticleType::Integer) => i64::from_be_bytes(old)
            .wrapping_add(i64::from_be_bytes(by))
            .to_be_bytes(),
        (ParticleType::Double, ParticleType::Double) => {
            (f64::from_be_bytes(old) + f64::from_be_bytes(by)).to_be_bytes()
        }
        _ => return Err(ResultCode::IncompatibleType),
    };
    bins.set(op.name, op.particle, &new);
    Ok(())
}

fn eight(bytes: &[u8]) -> Option<[u8; 8]> {
    bytes.try_into().ok()
}

/// Where [`join`] puts the operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Front,
    Back,
}

/// Joins the operand to a string or blob of its own type. A missing bin counts as empty.
pub(super) fn join(bins: &mut Bins, op: &Op<'_>, end: End) -> Result<(), ResultCode> {
    if !matches!(op.particle, ParticleType::String | ParticleType::Blob) {
        return Err(ResultCode::IncompatibleType);
    }
    let Some(bin) = bins.get(op.name) else {
        bins.set(op.name, op.particle, op.value);
        return Ok(());
    };
    if bin.particle != op.particle {
        return Err(ResultCode::IncompatibleType);
    }
    let joined = match end {
        End::Front => [op.value, bin.value].concat(),
        End::Back => [bin.value, op.value].concat(),
    };
    bins.set(op.name, op.particle, &joined);
    Ok(())
}

#[cfg(test)]
mod tests {
    use kvlab_protocol::aerospike::message::OpCode;

    use super::*;

    fn op<'a>(particle: ParticleType, value: &'a [u8]) -> Op<'a> {
        Op {
            op: OpCode::Increment,
            particle,
            flags: 0,
            name: b"a",
            value,
        }
    }

    fn value(bins: &Bins) -> &[u8] {
        bins.get(b"a").unwrap().value
    }

    #[test]
    fn integers_wrap_and_types_must_agree() {
        let mut bins = Bins::default();
        let max = i64::MAX.to_be_bytes();
        increment(&mut bins, &op(ParticleType::Integer, &max)).unwrap();
        increment(&mut bins, &op(ParticleType::Integer, &[2])).unwrap();
        assert_eq!(value(&bins), (i64::MIN + 1).to_be_bytes());
        let half = 0.5_f64.to_be_bytes();
        let mixed = increment(&mut bins, &op(ParticleType::Double, &half));
        assert_eq!(mixed, Err(ResultCode::IncompatibleType));
        let text = increment(&mut bins, &op(ParticleType::String, b"1"));
        assert_eq!(text, Err(ResultCode::IncompatibleType));
        bins.clear();
        increment(&mut bins, &op(ParticleType::Double, &half)).unwrap();
        increment(&mut bins, &op(ParticleType::Double, &half)).unwrap();
        assert_eq!(value(&bins), 1.0_f64.to_be_bytes());
    }

    #[test]
    fn strings_and_blobs_grow_at_both_ends_and_do_not_mix() {
        let mut bins = Bins::default();
        join(&mut bins, &op(ParticleType::String, b"b"), End::Back).unwrap();
        join(&mut bins, &op(ParticleType::String, b"c"), End::Back).unwrap();
        join(&mut bins, &op(ParticleType::String, b"a"), End::Front).unwrap();
        assert_eq!(value(&bins), b"abc");
        let mixed = join(&mut bins, &op(ParticleType::Blob, b"d"), End::Back);
        assert_eq!(mixed, Err(ResultCode::IncompatibleType));
    }

    #[test]
    fn writing_nothing_removes_the_bin() {
        let mut bins = Bins::default();
        write(&mut bins, &op(ParticleType::Bool, &[1])).unwrap();
        assert_eq!(value(&bins), [1]);
        write(&mut bins, &op(ParticleType::Nil, &[])).unwrap();
        assert!(bins.is_empty());
    }
}
