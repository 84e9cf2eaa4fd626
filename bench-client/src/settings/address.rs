//! Where a server listens: an address of the network, or a socket file of this machine.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

/// Where a server listens.
///
/// It goes with every attempt to connect, so it is small and copied freely; the path of a socket
/// file is kept as long as the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Host and port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(&'static Path),
}

impl Address {
    /// The address of a socket file.
    #[must_use]
    pub fn unix(path: impl AsRef<Path>) -> Self {
        Self::Unix(Box::leak(path.as_ref().into()))
    }

    /// The host and port, where it has them.
    #[must_use]
    pub fn tcp(self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(address),
            Self::Unix(_) => None,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_people_know_it() {
        let tcp = Address::from(SocketAddr::from(([127, 0, 0, 1], 6379)));
        assert_eq!(tcp.to_string(), "127.0.0.1:6379");
        assert_eq!(
            Address::unix("/run/redis.sock").to_string(),
            "/run/redis.sock"
        );
        assert_eq!(Address::unix("/run/redis.sock").tcp(), None);
    }
}
