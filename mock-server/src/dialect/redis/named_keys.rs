//! The keys among the arguments of a command, and what the command does to each.

use kvlab_protocol::resp::Args;

use super::row::KeySpec;
use super::table::Command;

/// A key that a command names.
#[derive(Debug, Clone, Copy)]
pub struct NamedKey<'a> {
    /// Its place among the arguments, the name of the command being the first.
    pub position: usize,
    /// The key.
    pub key: &'a [u8],
    /// What the command does to it; see [`KeySpec::flags`].
    pub flags: &'static [&'static str],
}

/// The keys that `command` names in `args`, in order.
#[must_use]
pub fn named_keys<'a>(command: &Command, args: Args<'a>) -> Vec<NamedKey<'a>> {
    let mut keys = Vec::new();
    for spec in command.row.keys {
        collect(args, spec, &mut keys);
    }
    if command.name == "set" {
        // What SET does to its key depends on its options.
        let mut options = args.from(3).iter();
        let answers_old = options.any(|option| option.eq_ignore_ascii_case(b"GET"));
        for key in &mut keys {
            key.flags = if answers_old {
                &["RW", "access", "update"]
            } else {
                &["OW", "update"]
            };
        }
    }
    keys
}

fn collect<'a>(args: Args<'a>, spec: &KeySpec, keys: &mut Vec<NamedKey<'a>>) {
    let first = usize::from(spec.first);
    let end = match usize::try_from(spec.last) {
        Ok(last) => first + last + 1,
        Err(_) => args
            .len()
            .saturating_sub(usize::from(spec.last.unsigned_abs()) - 1),
    };
    for position in (first..end).step_by(usize::from(spec.step).max(1)) {
        if let Some(key) = args.get(position) {
            keys.push(NamedKey {
                position,
                key,
                flags: spec.flags,
            });
        }
    }
}
