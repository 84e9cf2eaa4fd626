//! Replies that say "nothing" without being nil.
//!
//! | Commands | Nothing is |
//! |---|---|
//! | `EXISTS`, `HEXISTS`, `SISMEMBER` | the number 0 |
//! | `SMEMBERS`, `LRANGE`, `HGETALL`, `HKEYS`, `HVALS`, `ZRANGE`, … | an empty collection |
//! | `MGET`, `HMGET`, `ZMSCORE` | a list of nils alone |
//!
//! For all others nothing is nil, which the skimmer tells. The groups are those of
//! memtier_benchmark 2.4, which counts each element; here a request is a hit or a miss as a whole.

use crate::record::Outcome;
use crate::settings::Command;

/// What says of each request that nothing was found.
#[derive(Clone, Debug)]
pub(super) struct Misses(Vec<Nothing>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nothing {
    Nil,
    Zero,
    Empty,
    AllNil,
}

impl Misses {
    /// For these requests; `None` where nil says it for all of them.
    pub(super) fn new(commands: &[Command<'_>]) -> Option<Self> {
        let all: Vec<Nothing> = commands
            .iter()
            .map(|command| nothing(command.arguments.first().map_or(&[][..], Vec::as_slice)))
            .collect();
        let special = all.iter().any(|nothing| *nothing != Nothing::Nil);
        special.then_some(Self(all))
    }

    /// What an answer to the request of this place really is.
    pub(super) fn judge(&self, request: u32, outcome: Outcome, frame: &[u8]) -> Outcome {
        if outcome != Outcome::Hit {
            return outcome;
        }
        let found_nothing = match self.0.get(request as usize) {
            None | Some(Nothing::Nil) => false,
            Some(Nothing::Zero) => frame == b":0\r\n",
            Some(Nothing::Empty) => matches!(frame, b"*0\r\n" | b"~0\r\n" | b"%0\r\n"),
            Some(Nothing::AllNil) => is_nils_alone(frame),
        };
        if found_nothing {
            Outcome::Miss
        } else {
            outcome
        }
    }
}

fn nothing(name: &[u8]) -> Nothing {
    let groups: [(&[&str], Nothing); 3] = [
        (&["EXISTS", "HEXISTS", "SISMEMBER"], Nothing::Zero),
        (&["MGET", "HMGET", "ZMSCORE"], Nothing::AllNil),
        (
            &[
                "SMEMBERS",
                "SINTER",
                "SUNION",
                "SDIFF",
                "LRANGE",
                "HGETALL",
                "HKEYS",
                "HVALS",
                "ZRANGE",
                "ZREVRANGE",
                "ZRANGEBYSCORE",
                "ZREVRANGEBYSCORE",
                "ZRANGEBYLEX",
            ],
            Nothing::Empty,
        ),
    ];
    groups
        .into_iter()
        .find(|(names, _)| {
            names
                .iter()
                .any(|one| one.as_bytes().eq_ignore_ascii_case(name))
        })
        .map_or(Nothing::Nil, |(_, nothing)| nothing)
}

/// Whether the frame is a list in which every element is nil.
fn is_nils_alone(frame: &[u8]) -> bool {
    let Some(end) = frame.windows(2).position(|pair| pair == b"\r\n") else {
        return false;
    };
    let mut rest = frame.get(end + 2..).unwrap_or_default();
    if frame.first() != Some(&b'*') || rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let Some(next) = [&b"$-1\r\n"[..], b"_\r\n", b"*-1\r\n"]
            .iter()
            .find_map(|nil| rest.strip_prefix(*nil))
        else {
            return false;
        };
        rest = next;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{RedisOperation, RedisTarget};

    fn misses(commands: &[&str]) -> Option<Misses> {
        let mut target = RedisTarget::new("127.0.0.1:1".parse().unwrap(), 0, 0);
        target.operations = commands
            .iter()
            .map(|command| RedisOperation::parse(command, 1).unwrap())
            .collect();
        Misses::new(&target.commands())
    }

    #[test]
    fn commands_for_which_nil_is_nothing_need_no_look() {
        assert!(misses(&["SET __key__ x", "GET __key__", "HGET __key__ f", "INCR a"]).is_none());
    }

    #[test]
    fn each_command_has_its_own_way_to_say_nothing() {
        let all = [
            "exists __key__",
            "SMEMBERS __key__",
            "MGET __key__ __key__",
            "INCR __key__",
        ];
        let misses = misses(&all).unwrap();
        let judge = |request, frame: &str| misses.judge(request, Outcome::Hit, frame.as_bytes());
        for (request, frame, outcome) in [
            (0, ":0\r\n", Outcome::Miss),
            (0, ":1\r\n", Outcome::Hit),
            (3, ":0\r\n", Outcome::Hit),
            (1, "*0\r\n", Outcome::Miss),
            (1, "~0\r\n", Outcome::Miss),
            (1, "*1\r\n$1\r\na\r\n", Outcome::Hit),
            (2, "*2\r\n$-1\r\n$-1\r\n", Outcome::Miss),
            (2, "*2\r\n_\r\n_\r\n", Outcome::Miss),
            (2, "*2\r\n$-1\r\n$1\r\na\r\n", Outcome::Hit),
            (2, "*0\r\n", Outcome::Hit),
        ] {
            assert_eq!(judge(request, frame), outcome, "{request} {frame:?}");
        }
        let error = Outcome::Timeout;
        assert_eq!(misses.judge(0, error, b":0\r\n"), error);
    }
}
