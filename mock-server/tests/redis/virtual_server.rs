//! A server under virtual time, with clients at its sides.

use std::net::SocketAddr;

use kvlab_mock_server::ServerConfig;
use kvlab_mock_server::config::{RedisConfig, RedisVersion};
use kvlab_mock_server::dialect::Listener;
use kvlab_mock_server::event::ConnId;
use kvlab_mock_server::virtual_shell::VirtualServer;
use kvlab_timing::Stamp;

use crate::client::{replies, texts};

pub(crate) const MILLI: u64 = 1_000_000;

/// A server under virtual time that stands at one moment.
#[derive(Debug)]
pub(crate) struct Laboratory {
    server: VirtualServer,
    now: Stamp,
    clients: u16,
    /// What each connection was sent and has not yet been looked at, and whether it was closed.
    received: Vec<(ConnId, Vec<u8>, bool)>,
}

impl Laboratory {
    pub(crate) fn new(config: ServerConfig) -> Self {
        let now = Stamp::from_nanos(1_000 * MILLI);
        Self {
            server: VirtualServer::new(config, now),
            now,
            clients: 0,
            received: Vec::new(),
        }
    }

    pub(crate) fn of_version(major: u16, minor: u16, patch: u16) -> Self {
        let version = RedisVersion {
            major,
            minor,
            patch,
        };
        Self::new(ServerConfig {
            redis: RedisConfig {
                version,
                ..RedisConfig::default()
            },
            ..ServerConfig::default()
        })
    }

    pub(crate) fn connect(&mut self) -> ConnId {
        self.connect_from([127, 0, 0, 1])
    }

    /// A client of another address.
    pub(crate) fn connect_from(&mut self, address: [u8; 4]) -> ConnId {
        self.clients += 1;
        let peer = SocketAddr::from((address, 40_000 + self.clients));
        let id = self.server.accept(self.now, Listener::Redis, peer);
        self.collect();
        id
    }

    /// Sends an inline command and returns what came back at once, each reply on a line.
    pub(crate) fn ask(&mut self, client: ConnId, command: &str) -> String {
        self.send(client, format!("{command}\r\n").as_bytes());
        self.heard(client)
    }

    /// Sends bytes.
    pub(crate) fn send(&mut self, client: ConnId, bytes: &[u8]) {
        self.server.handle_bytes(self.now, client, bytes);
        self.collect();
    }

    /// How many replies a client was sent since it was looked at last.
    pub(crate) fn heard_count(&mut self, client: ConnId) -> usize {
        replies(&self.take(client)).len()
    }

    /// Ends the sending side of a client.
    pub(crate) fn hang_up(&mut self, client: ConnId) {
        self.server.handle_eof(self.now, client);
        self.collect();
    }

    /// What a client was sent since it was looked at last, each reply on a line.
    pub(crate) fn heard(&mut self, client: ConnId) -> String {
        texts(&self.take(client))
    }

    fn take(&mut self, client: ConnId) -> Vec<u8> {
        let received = self.received.iter_mut().find(|(id, _, _)| *id == client);
        received.map_or_else(Vec::new, |(_, bytes, _)| std::mem::take(bytes))
    }

    /// Whether the server has closed the connection of a client.
    pub(crate) fn is_closed(&self, client: ConnId) -> bool {
        let received = self.received.iter().find(|(id, _, _)| *id == client);
        received.is_some_and(|(_, _, closed)| *closed)
    }

    /// Lets time pass, with all that is due on the way.
    pub(crate) fn pass(&mut self, nanos: u64) {
        let end = self.now.add_nanos(nanos);
        while let Some(due) = self.server.poll_timeout().filter(|due| *due <= end) {
            self.now = due;
            self.server.handle_timeout(due);
            self.collect();
        }
        self.now = end;
    }

    /// How long it is until something is due.
    pub(crate) fn until_due(&self) -> Option<u64> {
        let due = self.server.poll_timeout()?;
        Some(due.saturating_since(self.now))
    }

    fn collect(&mut self) {
        while let Some(output) = self.server.poll_output() {
            let known = self
                .received
                .iter()
                .position(|(id, _, _)| *id == output.connection);
            let place = known.unwrap_or_else(|| {
                self.received.push((output.connection, Vec::new(), false));
                self.received.len() - 1
            });
            let (_, bytes, closed) = &mut self.received[place];
            bytes.extend_from_slice(&output.bytes);
            *closed |= output.close;
        }
    }
}
