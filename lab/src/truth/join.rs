//! Matching the client's rows with the server's.
//!
//! The key of a request is the client's address, how often that address had connected before, and
//! the number of the request on its connection, handshake and tend included. Both sides count
//! alike, so the lists are sorted by key and merged; what is left over on either side is reported.

use std::fmt;
use std::net::SocketAddr;

use kvlab_bench_client::record::{ClientRow, Outcome, RowKind};
use kvlab_mock_server::ServerRow;

/// What names a request on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The client's end of the connection.
    pub address: SocketAddr,
    /// How many times this address had connected before.
    pub ordinal: u32,
    /// Number of the request on the connection, from 0.
    pub sequence: u64,
}

/// `127.0.0.1:40001/0#17`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{}", self.address, self.ordinal, self.sequence)
    }
}

impl From<&ClientRow> for Key {
    fn from(row: &ClientRow) -> Self {
        Self {
            address: row.local,
            ordinal: row.ordinal,
            sequence: row.sequence,
        }
    }
}

impl From<&ServerRow> for Key {
    fn from(row: &ServerRow) -> Self {
        Self {
            address: row.peer,
            ordinal: row.ordinal,
            sequence: row.sequence,
        }
    }
}

/// One request as both sides saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The client's row.
    pub client: ClientRow,
    /// The server's row.
    pub server: ServerRow,
    /// How long it lay at the server before it was read, because its connection was held; known under
    /// virtual time.
    pub held_ns: u64,
}

impl Pair {
    /// What names the request.
    #[must_use]
    pub fn key(&self) -> Key {
        Key::from(&self.client)
    }

    /// Whether it is load of the measured part whose end counts: no attempt that was followed by
    /// another.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        is_measured(&self.client)
    }

    /// `written - read`, and what its connection was held: how long the server had the request.
    #[must_use]
    pub fn sojourn_ns(&self) -> u64 {
        self.held_ns + self.server.written.saturating_since(self.server.read)
    }

    /// `received - sent`, if a reply came.
    #[must_use]
    pub fn service_ns(&self) -> Option<u64> {
        let received = self.client.received?;
        Some(received.saturating_since(self.client.sent))
    }

    /// `received - intended`, if a reply came.
    #[must_use]
    pub fn response_ns(&self) -> Option<u64> {
        let received = self.client.received?;
        Some(received.saturating_since(self.client.intended))
    }
}

/// Whether a row is load of the measured part whose end counts.
#[must_use]
pub fn is_measured(row: &ClientRow) -> bool {
    row.kind == RowKind::Load && !row.retried
}

/// Whether a row's latency belongs in the client's histograms.
#[must_use]
pub fn is_timed(row: &ClientRow) -> bool {
    is_measured(row) && matches!(row.outcome, Outcome::Hit | Outcome::Miss)
}

/// The rows of both sides, matched.
#[derive(Clone, Debug, Default)]
pub struct Joined {
    /// Requests both sides know, by key.
    pub pairs: Vec<Pair>,
    /// Requests only the client knows, though they were sent.
    pub client_only: Vec<ClientRow>,
    /// Requests only the server knows.
    pub server_only: Vec<ServerRow>,
    /// Client rows that need no partner: given up before a byte of them was written, or sent over a
    /// lossy network on a connection that ended before their reply, and never read.
    pub excused: Vec<ClientRow>,
}

/// Whether bytes can be lost between the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Sockets: what was written may never be read when the connection ends.
    Lossy,
    /// In-memory pipes: what was sent arrives.
    Exact,
}

/// Matches the rows of both sides.
#[must_use]
pub fn join(mut client: Vec<ClientRow>, mut server: Vec<ServerRow>, network: Network) -> Joined {
    client.sort_by_key(|row| Key::from(row));
    server.sort_by_key(|row| Key::from(row));
    let mut joined = Joined {
        pairs: Vec::with_capacity(client.len().min(server.len())),
        ..Joined::default()
    };
    let mut server = server.into_iter().peekable();
    for client in client {
        let key = Key::from(&client);
        while let Some(row) = server.next_if(|row| Key::from(row) < key) {
            joined.server_only.push(row);
        }
        match server.next_if(|row| Key::from(row) == key) {
            Some(server) => joined.pairs.push(Pair {
                client,
                server,
                held_ns: 0,
            }),
            None if is_excused(client.outcome, network) => joined.excused.push(client),
            None => joined.client_only.push(client),
        }
    }
    joined.server_only.extend(server);
    joined
}

/// Whether the server need not know a request that ended so.
fn is_excused(outcome: Outcome, network: Network) -> bool {
    match outcome {
        Outcome::NotSent => true,
        Outcome::Timeout | Outcome::ConnectionLost => network == Network::Lossy,
        Outcome::Hit | Outcome::Miss | Outcome::Error(_) => false,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use kvlab_bench_client::record::OpClass;
    use kvlab_mock_server::exchange::{Class, Protocol};
    use kvlab_mock_server::stamp::FaultKind;
    use kvlab_timing::Stamp;

    use super::*;

    /// A request sent at `at`, held for a microsecond, with 10 ns of network each way.
    pub(crate) fn pair(port: u16, sequence: u64, at: u64) -> Pair {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let stamp = |ns: u64| Stamp::from_nanos(at + ns);
        Pair {
            client: ClientRow {
                local: address,
                ordinal: 0,
                sequence,
                kind: RowKind::Load,
                class: OpClass(0),
                intended: stamp(0),
                sent: stamp(0),
                received: Some(stamp(1_020)),
                kernel: None,
                connection: 0,
                bytes_out: 0,
                bytes_in: 0,
                outcome: Outcome::Hit,
                attempt: 0,
                retried: false,
            },
            server: ServerRow {
                peer: address,
                ordinal: 0,
                connection: u64::from(port),
                sequence,
                protocol: Protocol::Redis,
                command: "get",
                class: Class::Read,
                read: stamp(10),
                started: true,
                start: stamp(10),
                request_bytes: 30,
                reply_bytes: 7,
                throttle_place: None,
                throttle_ns: 0,
                reply_place: None,
                reply_wait_ns: 0,
                drawn_ns: 1_000,
                wanted_ns: 1_000,
                queue_place: None,
                wait_ns: 0,
                service_ns: 0,
                due: stamp(1_010),
                written: stamp(1_010),
                written_after: stamp(1_012),
                answered: true,
                fault: FaultKind::None,
            },
            held_ns: 0,
        }
    }

    fn rows(pairs: &[Pair]) -> (Vec<ClientRow>, Vec<ServerRow>) {
        pairs
            .iter()
            .cloned()
            .map(|pair| (pair.client, pair.server))
            .unzip()
    }

    fn six() -> Vec<Pair> {
        [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (9, 0)]
            .map(|(port, sequence)| pair(port, sequence, 5_000 * (1 + sequence)))
            .to_vec()
    }

    #[test]
    fn rows_in_any_order_find_their_partners() {
        let (mut client, server) = rows(&six());
        client.reverse();
        let joined = join(client, server, Network::Exact);
        assert_eq!(joined.pairs, six());
        assert!(joined.client_only.is_empty() && joined.server_only.is_empty());
    }

    #[test]
    fn a_row_missing_on_either_side_is_left_over() {
        for missing in 0..6 {
            let (mut client, server) = rows(&six());
            let lost = Key::from(&client.remove(missing));
            let joined = join(client, server.clone(), Network::Lossy);
            assert_eq!(joined.pairs.len(), 5);
            assert_eq!(
                joined.server_only.iter().map(Key::from).collect::<Vec<_>>(),
                [lost]
            );

            let (client, mut server) = rows(&six());
            let lost = Key::from(&server.remove(missing));
            let joined = join(client, server, Network::Lossy);
            assert_eq!(
                joined.client_only.iter().map(Key::from).collect::<Vec<_>>(),
                [lost]
            );
        }
    }

    #[test]
    fn the_same_key_twice_leaves_the_second_over() {
        let (mut client, server) = rows(&six());
        client.push(client[2]);
        let joined = join(client, server, Network::Exact);
        assert_eq!((joined.pairs.len(), joined.client_only.len()), (6, 1));
    }

    #[test]
    fn another_ordinal_is_another_connection() {
        let (mut client, server) = rows(&six());
        client[0].ordinal = 1;
        let joined = join(client, server, Network::Exact);
        assert_eq!((joined.client_only.len(), joined.server_only.len()), (1, 1));
    }

    #[test]
    fn what_was_never_sent_needs_no_partner_and_what_was_lost_only_in_pipes() {
        let (mut client, mut server) = rows(&six());
        client[1].outcome = Outcome::NotSent;
        client[2].outcome = Outcome::Timeout;
        server.drain(1..3);
        let lossy = join(client.clone(), server.clone(), Network::Lossy);
        assert_eq!((lossy.excused.len(), lossy.client_only.len()), (2, 0));
        let exact = join(client, server, Network::Exact);
        assert_eq!((exact.excused.len(), exact.client_only.len()), (1, 1));
    }
}
