//! Values that name other nodes: the peers list and the list of a node's own addresses.
//!
//! Peers: `<generation>,<default port>,[<peer>,...]` with peer =
//! `[<node>,<tls name or empty>,[<host>[:port],...]]`; the node that answers is not listed, a port is
//! left out when it is the default, IPv6 hosts stand in brackets. A vanished node, in the form that
//! asks for changes, is `[A3,,]`.

use bytes::{BufMut, BytesMut};

use super::answer::ValueError;
use super::{parse_number, put_number};
use crate::aerospike::text::Scanner;

/// A peers list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peers {
    /// Grows with every change of the list.
    pub generation: u64,
    /// The port of hosts without one; `None` for an empty text.
    pub default_port: Option<u16>,
    /// The other nodes.
    pub peers: Vec<Peer>,
}

/// One other node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The node's name.
    pub node: String,
    /// The name in its certificate, usually empty.
    pub tls_name: String,
    /// Where it can be reached; none for a node that left.
    pub hosts: Vec<Host>,
}

/// An address of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Host name or address, IPv6 without brackets.
    pub name: String,
    /// The port, if it is written.
    pub port: Option<u16>,
}

impl Peers {
    /// Parses the value of `peers-clear-std` and its relatives.
    ///
    /// # Errors
    /// [`ValueError`] where the text leaves the form above.
    pub fn parse(value: &[u8]) -> Result<Self, ValueError> {
        let mut scanner = Scanner::new(value);
        let generation = scanner.until(b",");
        let generation = parse_number(generation).ok_or(expected("a generation"))?;
        scanner.expect(b',').ok_or(expected("a comma"))?;
        let default_port = match scanner.until(b",") {
            b"" => None,
            text => Some(parse_number(text).ok_or(expected("a default port"))?),
        };
        scanner.expect(b',').ok_or(expected("a comma"))?;
        let peers = list(&mut scanner, peer)?;
        if !scanner.is_empty() {
            return Err(expected("the end of the list"));
        }
        Ok(Self {
            generation,
            default_port,
            peers,
        })
    }

    /// Writes the value.
    pub fn put(&self, out: &mut BytesMut) {
        put_number(self.generation, out);
        out.put_u8(b',');
        if let Some(port) = self.default_port {
            put_number(port.into(), out);
        }
        out.put_slice(b",[");
        put_joined(&self.peers, out, |peer, out| {
            out.put_u8(b'[');
            out.put_slice(peer.node.as_bytes());
            out.put_u8(b',');
            out.put_slice(peer.tls_name.as_bytes());
            out.put_u8(b',');
            if !peer.hosts.is_empty() {
                out.put_u8(b'[');
                put_joined(&peer.hosts, out, Host::put);
                out.put_u8(b']');
            }
            out.put_u8(b']');
        });
        out.put_u8(b']');
    }
}

/// The addresses of a node itself, as in `service-clear-std`: `host:port`, joined by commas.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Services {
    /// The addresses; none for an empty value.
    pub hosts: Vec<Host>,
}

impl Services {
    /// Parses the value.
    ///
    /// # Errors
    /// [`ValueError`] where the text is no list of hosts.
    pub fn parse(value: &[u8]) -> Result<Self, ValueError> {
        let mut hosts = Vec::new();
        let mut scanner = Scanner::new(value);
        while !scanner.is_empty() {
            hosts.push(host(&mut scanner)?);
            if !scanner.is_empty() {
                scanner
                    .expect(b',')
                    .ok_or(expected("a comma between hosts"))?;
            }
        }
        Ok(Self { hosts })
    }

    /// Writes the value.
    pub fn put(&self, out: &mut BytesMut) {
        put_joined(&self.hosts, out, Host::put);
    }
}

impl Host {
    /// Writes `host` or `host:port`, IPv6 in brackets.
    pub fn put(&self, out: &mut BytesMut) {
        let brackets = self.name.contains(':');
        if brackets {
            out.put_u8(b'[');
        }
        out.put_slice(self.name.as_bytes());
        if brackets {
            out.put_u8(b']');
        }
        if let Some(port) = self.port {
            out.put_u8(b':');
            put_number(port.into(), out);
        }
    }
}

fn peer(scanner: &mut Scanner<'_>) -> Result<Peer, ValueError> {
    scanner.expect(b'[').ok_or(expected("a peer in brackets"))?;
    let node = text(scanner.until(b",]"))?;
    scanner
        .expect(b',')
        .ok_or(expected("a comma behind the node"))?;
    let tls_name = text(scanner.until(b",]"))?;
    scanner
        .expect(b',')
        .ok_or(expected("a comma behind the TLS name"))?;
    let hosts = match scanner.peek() {
        Some(b']') => Vec::new(),
        _ => list(scanner, host)?,
    };
    scanner.expect(b']').ok_or(expected("the end of a peer"))?;
    Ok(Peer {
        node,
        tls_name,
        hosts,
    })
}

fn host(scanner: &mut Scanner<'_>) -> Result<Host, ValueError> {
    let name = if scanner.expect(b'[').is_some() {
        let name = text(scanner.until(b"]"))?;
        if !name.contains(':') {
            return Err(expected("an IPv6 address in brackets"));
        }
        scanner
            .expect(b']')
            .ok_or(expected("the end of an IPv6 address"))?;
        name
    } else {
        text(scanner.until(b":,]"))?
    };
    if name.is_empty() {
        return Err(expected("a host"));
    }
    let port = match scanner.expect(b':') {
        Some(()) => Some(parse_number(scanner.until(b",]")).ok_or(expected("a port"))?),
        None => None,
    };
    Ok(Host { name, port })
}

/// `[item,item]`, possibly empty.
fn list<T>(
    scanner: &mut Scanner<'_>,
    item: impl Fn(&mut Scanner<'_>) -> Result<T, ValueError>,
) -> Result<Vec<T>, ValueError> {
    scanner.expect(b'[').ok_or(expected("a list in brackets"))?;
    let mut items = Vec::new();
    if scanner.expect(b']').is_some() {
        return Ok(items);
    }
    loop {
        items.push(item(scanner)?);
        if scanner.expect(b']').is_some() {
            return Ok(items);
        }
        scanner
            .expect(b',')
            .ok_or(expected("a comma or the end of a list"))?;
    }
}

fn text(bytes: &[u8]) -> Result<String, ValueError> {
    str::from_utf8(bytes)
        .map(str::to_owned)
        .map_err(|_| expected("UTF-8 text"))
}

fn put_joined<T>(items: &[T], out: &mut BytesMut, put: impl Fn(&T, &mut BytesMut)) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.put_u8(b',');
        }
        put(item, out);
    }
}

const fn expected(expected: &'static str) -> ValueError {
    ValueError { expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, port: Option<u16>) -> Host {
        Host {
            name: name.into(),
            port,
        }
    }

    #[test]
    fn peers_lists_are_read_and_written() {
        let value = "5,3000,[[A2,,[127.0.0.1:3101]],[A3,tls,[[fe80::1]:3102,b]],[A4,,]]";
        let peers = Peers::parse(value.as_bytes()).unwrap();
        assert_eq!((peers.generation, peers.default_port), (5, Some(3000)));
        assert_eq!(peers.peers[0].hosts, [host("127.0.0.1", Some(3101))]);
        assert_eq!(peers.peers[1].tls_name, "tls");
        assert_eq!(
            peers.peers[1].hosts,
            [host("fe80::1", Some(3102)), host("b", None)]
        );
        assert_eq!(peers.peers[2].hosts, []);
        let mut out = BytesMut::new();
        peers.put(&mut out);
        assert_eq!(&out[..], value.as_bytes());
    }

    #[test]
    fn a_node_without_peers_lists_none() {
        let peers = Peers::parse(b"0,3000,[]").unwrap();
        assert_eq!(peers.peers, []);
    }

    #[test]
    fn broken_lists_are_errors() {
        for value in [
            "",
            "0",
            "0,3000",
            "x,3000,[]",
            "0,3000,[",
            "0,3000,[[A]]",
            "0,3000,[]x",
        ] {
            assert!(Peers::parse(value.as_bytes()).is_err(), "{value}");
        }
        for value in [
            "0,3000,[[A,,[]]",
            "0,3000,[[A,,[h:99999]]]",
            "0,3000,[[A,,[h]],]",
        ] {
            assert!(Peers::parse(value.as_bytes()).is_err(), "{value}");
        }
    }

    #[test]
    fn brackets_around_a_host_must_hold_an_ipv6_address() {
        // Found by fuzzing: such a name was written without brackets and could not be read again.
        assert!(Peers::parse(b"0,3000,[[A,,[[b]]]]").is_err());
    }

    #[test]
    fn services_are_hosts_joined_by_commas() {
        let services = Services::parse(b"a:3000,[::1]:3001").unwrap();
        assert_eq!(
            services.hosts,
            [host("a", Some(3000)), host("::1", Some(3001))]
        );
        let mut out = BytesMut::new();
        services.put(&mut out);
        assert_eq!(&out[..], b"a:3000,[::1]:3001");
        assert_eq!(Services::parse(b"").unwrap().hosts, []);
        assert!(Services::parse(b"a:3000,:1").is_err());
    }
}
