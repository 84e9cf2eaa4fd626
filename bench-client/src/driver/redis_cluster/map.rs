//! Who serves which slots, as `CLUSTER SLOTS` and its successor `CLUSTER SHARDS` tell it.
//!
//! ```text
//! CLUSTER SLOTS    [[first, last, [host, port, id, [ip, …]], [a replica, …], …], …]
//! CLUSTER SHARDS   [{slots: [first, last, first, last, …],
//!                    nodes: [{endpoint, ip, hostname, port, tls-port, role, health, …}, …]}, …]
//! ```
//!
//! A host that is empty, null or `?` is the one the answer came from. One that is a name is not looked
//! up, because a worker never waits for a resolver; the address beside it is taken, where there is one.
//! In RESP2 a map is an array of its keys and values in turn.

use std::net::{IpAddr, SocketAddr};

use kvlab_protocol::resp::Value;
use kvlab_protocol::resp::slot::SLOTS;

use crate::settings::Address;

/// A range of slots, both ends included, and its primary.
pub(super) type Served = (u16, u16, Address);

/// The ranges that an answer of either kind tells of; the node that gave it has the address `own`.
///
/// # Errors
/// It cannot be read, or names a node that cannot be reached; in words for people.
pub(super) fn read_map(answer: &Value, own: Address) -> Result<Vec<Served>, String> {
    let Value::Array(parts) = answer else {
        return Err(unreadable());
    };
    let mut map = Vec::with_capacity(parts.len());
    for part in parts {
        if !read_range(part, own, &mut map)? && !read_shard(part, own, &mut map)? {
            return Err(unreadable());
        }
    }
    Ok(map)
}

/// One range of `CLUSTER SLOTS`; false if it has not its shape.
fn read_range(part: &Value, own: Address, map: &mut Vec<Served>) -> Result<bool, String> {
    let Value::Array(parts) = part else {
        return Ok(false);
    };
    let [
        Value::Integer(first),
        Value::Integer(last),
        Value::Array(primary),
        ..,
    ] = parts.as_slice()
    else {
        return Ok(false);
    };
    let (Some(host), Some(Value::Integer(port))) = (primary.first(), primary.get(1)) else {
        return Ok(false);
    };
    let beside = primary.get(3).and_then(|more| field(more, "ip"));
    let address = reach(text(host), beside, port_of(*port)?, own)?;
    map.push((slot_of(*first)?, slot_of(*last)?, address));
    Ok(true)
}

/// One shard of `CLUSTER SHARDS`; false if it has not its shape.
fn read_shard(part: &Value, own: Address, map: &mut Vec<Served>) -> Result<bool, String> {
    let (Some(Value::Array(slots)), Some(Value::Array(nodes))) =
        (field(part, "slots"), field(part, "nodes"))
    else {
        return Ok(false);
    };
    if slots.is_empty() {
        return Ok(true);
    }
    let says =
        |node: &Value, name: &str, what: &[u8]| field(node, name).and_then(text) == Some(what);
    let role = |node: &&Value| says(node, "role", b"master");
    let health = |node: &&Value| says(node, "health", b"online");
    // While a replica takes over, two of them may call themselves so.
    let primary = nodes
        .iter()
        .filter(role)
        .find(health)
        .or_else(|| nodes.iter().find(role))
        .ok_or_else(unreadable)?;
    let port = ["port", "tls-port"]
        .into_iter()
        .find_map(|name| match field(primary, name) {
            Some(Value::Integer(port)) => Some(*port),
            _ => None,
        })
        .ok_or_else(unreadable)?;
    let host = field(primary, "endpoint").and_then(text);
    let address = reach(host, field(primary, "ip"), port_of(port)?, own)?;
    for range in slots.chunks(2) {
        let [Value::Integer(first), Value::Integer(last)] = range else {
            return Ok(false);
        };
        map.push((slot_of(*first)?, slot_of(*last)?, address));
    }
    Ok(true)
}

/// The value of a key, in a map or in an array that stands for one.
fn field<'a>(map: &'a Value, name: &str) -> Option<&'a Value> {
    let is_it = |key: &Value| text(key) == Some(name.as_bytes());
    match map {
        Value::Map(pairs) => pairs
            .iter()
            .find(|(key, _)| is_it(key))
            .map(|(_, value)| value),
        Value::Array(flat) => flat.chunks(2).find_map(|pair| match pair {
            [key, value] if is_it(key) => Some(value),
            _ => None,
        }),
        _ => None,
    }
}

fn text(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Bulk(text) | Value::Simple(text) => Some(text),
        _ => None,
    }
}

/// Where a node is reached: at its host, or at the address beside it where that is a name.
fn reach(
    host: Option<&[u8]>,
    beside: Option<&Value>,
    port: u16,
    own: Address,
) -> Result<Address, String> {
    let host = String::from_utf8_lossy(host.unwrap_or_default()).into_owned();
    address(&host, port, own).or_else(|refused| {
        let ip = beside.and_then(text).unwrap_or_default();
        match std::str::from_utf8(ip).ok().and_then(|ip| ip.parse().ok()) {
            Some(ip) => Ok(SocketAddr::new(ip, port).into()),
            None => Err(refused),
        }
    })
}

/// The address of a node by its host and port.
///
/// # Errors
/// It is a name.
pub(super) fn address(host: &str, port: u16, own: Address) -> Result<Address, String> {
    if host.is_empty() || host == "?" {
        return Ok(match own {
            Address::Tcp(own) => SocketAddr::new(own.ip(), port).into(),
            // A socket file has no port: it is that node itself.
            Address::Unix(_) => own,
        });
    }
    let ip: IpAddr = host
        .parse()
        .map_err(|_| format!("the cluster names a node {host:?}: names are not looked up"))?;
    Ok(SocketAddr::new(ip, port).into())
}

/// A slot by its number, unless there is no such slot.
pub(super) fn slot(number: i64) -> Option<u16> {
    u16::try_from(number).ok().filter(|slot| *slot < SLOTS)
}

fn slot_of(number: i64) -> Result<u16, String> {
    slot(number).ok_or_else(unreadable)
}

fn port_of(number: i64) -> Result<u16, String> {
    u16::try_from(number).map_err(|_| unreadable())
}

fn unreadable() -> String {
    "the answer to CLUSTER SLOTS cannot be read".to_owned()
}

#[cfg(test)]
mod tests {
    use kvlab_protocol::resp::ReplyDecoder;

    use super::*;

    fn read(reply: &str) -> Result<Vec<Served>, String> {
        let reply = reply.replace('|', "\r\n");
        let (value, len) = ReplyDecoder::new()
            .decode(reply.as_bytes())
            .unwrap()
            .unwrap();
        assert_eq!(len, reply.len());
        let own = Address::Tcp("127.0.0.1:7000".parse().unwrap());
        read_map(&value, own)
    }

    fn served(first: u16, last: u16, address: &str) -> Served {
        (first, last, Address::Tcp(address.parse().unwrap()))
    }

    /// As redis-server 7.0.15 answers, ids and offsets shortened.
    #[test]
    fn shards_of_both_versions_of_the_protocol_are_read() {
        let node = |role: &str, port: u16| {
            format!(
                "$2|id|$2|ab|$4|port|:{port}|$2|ip|$9|127.0.0.1|$8|endpoint|$9|127.0.0.1|\
                 $4|role|${}|{role}|$18|replication-offset|:0|$6|health|$6|online|",
                role.len()
            )
        };
        let (one, two, replica) = (
            node("master", 7001),
            node("master", 7002),
            node("replica", 7003),
        );
        let resp2 = format!(
            "*3|*4|$5|slots|*4|:0|:99|:200|:8191|$5|nodes|*2|*14|{replica}*14|{one}\
             *4|$5|slots|*2|:8192|:16383|$5|nodes|*1|*14|{two}*4|$5|slots|*0|$5|nodes|*1|*14|{two}"
        );
        let resp3 = resp2.replace("*14|", "%7|").replace("*4|$5", "%2|$5");
        let expected = [
            served(0, 99, "127.0.0.1:7001"),
            served(200, 8_191, "127.0.0.1:7001"),
            served(8_192, 16_383, "127.0.0.1:7002"),
        ];
        assert_eq!(read(&resp2).unwrap(), expected);
        assert_eq!(read(&resp3).unwrap(), expected);
    }

    #[test]
    fn a_name_is_taken_where_the_address_stands_beside_it() {
        let range = |host: &str, more: &str| {
            let len = host.len();
            format!("*1|*3|:0|:16383|*4|${len}|{host}|:7001|$2|id|{more}")
        };
        let named = range("redis-a", "*2|$2|ip|$8|10.0.0.7|");
        assert_eq!(read(&named).unwrap(), [served(0, 16_383, "10.0.0.7:7001")]);
        let named = range("redis-a", "%1|$2|ip|$8|10.0.0.7|");
        assert_eq!(read(&named).unwrap(), [served(0, 16_383, "10.0.0.7:7001")]);
        for unknown in ["", "?"] {
            let own = range(unknown, "*0|");
            assert_eq!(read(&own).unwrap(), [served(0, 16_383, "127.0.0.1:7001")]);
        }
        let refused = read(&range("redis-a", "*0|")).unwrap_err();
        assert!(refused.contains("\"redis-a\""), "{refused}");
    }

    #[test]
    fn what_is_no_map_is_refused() {
        for reply in [
            "+OK|",
            "*1|:1|",
            "*1|*3|:0|:16384|*2|$0||:7000|",
            "*1|*3|:0|:1|*2|$0||:70000|",
            "*1|*2|:0|:1|",
        ] {
            assert!(read(reply).is_err(), "{reply}");
        }
    }
}
