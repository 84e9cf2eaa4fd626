//! From a host name to addresses.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The addresses of a host; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The one to use where only one is used.
    pub first: SocketAddr,
    rest: Vec<SocketAddr>,
}

impl Addresses {
    /// One address.
    #[must_use]
    pub fn one(first: SocketAddr) -> Self {
        Self {
            first,
            rest: Vec::new(),
        }
    }

    /// All of them, the first first.
    #[must_use]
    pub fn all(&self) -> Vec<SocketAddr> {
        let mut all = vec![self.first];
        all.extend(&self.rest);
        all
    }

    /// Asks the system's resolver. When the name has several addresses (`localhost` often has
    /// `::1` and `127.0.0.1`), the first that takes a connection is put first, as other clients
    /// do it; a name with one address is not probed.
    ///
    /// # Errors
    /// The name is unknown, or the resolver is out of order.
    pub(super) fn lookup(host: &str, port: u16, timeout: Duration) -> io::Result<Self> {
        Self::lookup_among(host, port, timeout, |_| true)
    }

    /// The same among those addresses that are `wanted`.
    ///
    /// # Errors
    /// The name is unknown, has no address that is wanted, or the resolver is out of order.
    pub(in crate::frontend) fn lookup_among(
        host: &str,
        port: u16,
        timeout: Duration,
        wanted: impl Fn(&SocketAddr) -> bool,
    ) -> io::Result<Self> {
        let mut found: Vec<SocketAddr> = Vec::new();
        for address in (host, port)
            .to_socket_addrs()?
            .filter(|address| wanted(address))
        {
            if !found.contains(&address) {
                found.push(address);
            }
        }
        if found.len() > 1 {
            let answers =
                |address: &SocketAddr| TcpStream::connect_timeout(address, timeout).is_ok();
            if let Some(place) = found.iter().position(answers) {
                found.rotate_left(place);
            }
        }
        let mut found = found.into_iter();
        let first = found
            .next()
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address"))?;
        Ok(Self {
            first,
            rest: found.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn literal_addresses_are_taken_as_they_are() {
        let second = Duration::from_secs(1);
        let found = Addresses::lookup("127.0.0.1", 7, second).unwrap();
        assert_eq!(found, Addresses::one("127.0.0.1:7".parse().unwrap()));
        let found = Addresses::lookup("::1", 7, second).unwrap();
        assert_eq!(found.first, "[::1]:7".parse().unwrap());
    }

    #[test]
    fn the_address_that_answers_comes_first() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let found = Addresses::lookup("localhost", address.port(), Duration::from_secs(1)).unwrap();
        assert_eq!(found.first, address);
        assert!(found.all().contains(&address));
    }
}
