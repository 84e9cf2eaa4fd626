//! Attempts to connect: one row for each, and what they are counted under.
//!
//! ```text
//! wanted   begun      connected   secured     logged in     first sent   first reply     ended
//!   |--------|------------|-----------|------------|-------------|------------|------------|
//!   pacing,    connect()    TLS, where  login, probe:           held by an       load
//!   back-off                there is    the conversation        accept limit
//! ```
//!
//! A server that delays new connections accepts them at once all the same (its kernel does), so the
//! delay stands between the first send and the first reply. A server that refuses shows how in the
//! cause: at the connect call, after it without a word, or with a line of text.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::AddAssign;

use kvlab_timing::Stamp;

use super::ErrorKind;
use crate::settings::Address;

/// One attempt to connect, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectRow {
    /// What the connection was for.
    pub kind: ConnectKind,
    /// The worker thread, from 0.
    pub thread: u32,
    /// Place among the thread's connections; a reconnect keeps it.
    pub place: u32,
    /// Where to.
    pub address: Address,
    /// The client's end, once connected.
    pub local: Option<SocketAddr>,
    /// How many times this local address had connected before.
    pub ordinal: u32,
    /// Failures in a row of this place before this attempt.
    pub attempt: u32,
    /// When the plan (ramp-up, back-off) wanted it begun.
    pub wanted: Stamp,
    /// Just before the connect call.
    pub begun: Stamp,
    /// When the socket was connected.
    pub connected: Option<Stamp>,
    /// When the TLS handshake was over, where there is one.
    pub secured: Option<Stamp>,
    /// When the conversation at the beginning (login, version, database, probe) was over. Without
    /// one that is the moment of `connected` or `secured`.
    pub logged_in: Option<Stamp>,
    /// Just before the write call of the first request that was answered, of any kind.
    pub first_sent: Option<Stamp>,
    /// Just after the read that completed the first reply, of any kind, asked for or not.
    pub first_reply: Option<Stamp>,
    /// When the connection or the attempt ended.
    pub ended: Option<Stamp>,
    /// Why it ended.
    pub cause: Option<Cause>,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectKind {
    /// Carries the load.
    Load,
    /// Learns the cluster.
    Tend,
}

/// Why an attempt or a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The connect call was refused.
    Refused,
    /// Reset after the connect and before any reply.
    ResetBeforeReply,
    /// Reset after a reply.
    ResetLater,
    /// Closed by the server before any reply.
    ClosedBeforeReply,
    /// Closed by the server after a reply.
    ClosedLater,
    /// Not connected, secured, logged in or answered in time.
    TimedOut,
    /// The server said no with an error of this kind as the first thing it said.
    ErrorLine(ErrorKind),
    /// The server sent something other than an error that nobody had asked for.
    Unsolicited,
    /// The server sent what cannot be a reply.
    Malformed,
    /// The network or the address cannot be reached.
    Unreachable,
    /// This process may open no more files.
    LocalFiles,
    /// The TLS handshake failed.
    Tls,
    /// Another error of the operating system.
    Other,
    /// Closed by the client, to be made anew.
    Retired,
    /// Closed by the client: its node left the cluster.
    NodeGone,
    /// The run was over.
    End,
}

/// How a socket ended, as the shell that owns it sees it. What it means depends on what the
/// connection had seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SocketEnd {
    /// The connect call was refused.
    Refused,
    /// The other side reset it.
    Reset,
    /// The other side closed it in order.
    Closed,
    /// The kernel gave up.
    TimedOut,
    /// No way to the address.
    Unreachable,
    /// No descriptor is left in this process.
    LocalFiles,
    /// The TLS handshake, or a record of TLS, failed.
    Tls,
    /// Anything else.
    Other,
}

/// How many attempts and connections ended for which cause. The end of the run is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CauseCounts {
    counts: [u64; CAUSES.len()],
}

impl ConnectRow {
    /// The row of an attempt of which nothing is known yet but what it is for.
    #[must_use]
    pub fn begin(kind: ConnectKind, address: Address) -> Self {
        Self {
            kind,
            thread: 0,
            place: 0,
            address,
            local: None,
            ordinal: 0,
            attempt: 0,
            wanted: Stamp::ZERO,
            begun: Stamp::ZERO,
            connected: None,
            secured: None,
            logged_in: None,
            first_sent: None,
            first_reply: None,
            ended: None,
            cause: None,
        }
    }

    /// Time of the connect call, once connected.
    #[must_use]
    pub fn tcp_ns(&self) -> Option<u64> {
        self.connected.map(|at| at.saturating_since(self.begun))
    }

    /// Time of the TLS handshake, where there was one.
    #[must_use]
    pub fn tls_ns(&self) -> Option<u64> {
        Some(self.secured?.saturating_since(self.connected?))
    }

    /// Time of the conversation at the beginning: login, version, database, probe.
    #[must_use]
    pub fn login_ns(&self) -> Option<u64> {
        let since = self.secured.or(self.connected)?;
        Some(self.logged_in?.saturating_since(since))
    }

    /// Time from the first send to its reply.
    #[must_use]
    pub fn first_reply_ns(&self) -> Option<u64> {
        Some(self.first_reply?.saturating_since(self.first_sent?))
    }

    /// From the start of connecting to the end of the conversation.
    #[must_use]
    pub fn setup_ns(&self) -> Option<u64> {
        self.logged_in.map(|at| at.saturating_since(self.begun))
    }
}

impl Cause {
    /// What the end of a socket means for a connection, which had a reply before or not.
    #[must_use]
    pub fn of(end: SocketEnd, replied: bool) -> Self {
        match (end, replied) {
            (SocketEnd::Refused, _) => Self::Refused,
            (SocketEnd::Reset, false) => Self::ResetBeforeReply,
            (SocketEnd::Reset, true) => Self::ResetLater,
            (SocketEnd::Closed, false) => Self::ClosedBeforeReply,
            (SocketEnd::Closed, true) => Self::ClosedLater,
            (SocketEnd::TimedOut, _) => Self::TimedOut,
            (SocketEnd::Unreachable, _) => Self::Unreachable,
            (SocketEnd::LocalFiles, _) => Self::LocalFiles,
            (SocketEnd::Tls, _) => Self::Tls,
            (SocketEnd::Other, _) => Self::Other,
        }
    }

    /// Its name in reports and files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.place().map_or("end", |place| CAUSES[place])
    }

    fn place(self) -> Option<usize> {
        Some(match self {
            Self::Refused => 0,
            Self::ResetBeforeReply => 1,
            Self::ResetLater => 2,
            Self::ClosedBeforeReply => 3,
            Self::ClosedLater => 4,
            Self::TimedOut => 5,
            Self::ErrorLine(_) => 6,
            Self::Unsolicited => 7,
            Self::Malformed => 8,
            Self::Unreachable => 9,
            Self::LocalFiles => 10,
            Self::Tls => 11,
            Self::Other => 12,
            Self::Retired => 13,
            Self::NodeGone => 14,
            Self::End => return None,
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ErrorLine(kind) => write!(f, "error_line {kind}"),
            other => f.write_str(other.name()),
        }
    }
}

impl SocketEnd {
    /// What an error of the operating system, or of a stream that ended, is.
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        if matches!(error.raw_os_error(), Some(EMFILE | ENFILE)) {
            return Self::LocalFiles;
        }
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Self::Reset,
            io::ErrorKind::UnexpectedEof => Self::Closed,
            io::ErrorKind::TimedOut => Self::TimedOut,
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::AddrNotAvailable => Self::Unreachable,
            _ => Self::Other,
        }
    }

    /// It in words, for shells that have no better ones.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Refused => "connection refused",
            Self::Reset => "connection reset by the server",
            Self::Closed => "closed by the server",
            Self::TimedOut => "timed out",
            Self::Unreachable => "address cannot be reached",
            Self::LocalFiles => "too many open files",
            Self::Tls => "TLS handshake failed",
            Self::Other => "connection failed",
        }
    }
}

impl CauseCounts {
    /// Counts one.
    pub fn count(&mut self, cause: Cause) {
        if let Some(count) = cause.place().and_then(|place| self.counts.get_mut(place)) {
            *count += 1;
        }
    }

    /// How many ended for this cause; the kind of an error line does not matter.
    #[must_use]
    pub fn of(&self, cause: Cause) -> u64 {
        cause
            .place()
            .and_then(|place| self.counts.get(place).copied())
            .unwrap_or(0)
    }

    /// Each cause's name with its count, in a fixed order, zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        CAUSES.into_iter().zip(self.counts)
    }

    /// Those that the client did not cause itself.
    #[must_use]
    pub fn failures(&self) -> u64 {
        let own = self.of(Cause::Retired) + self.of(Cause::NodeGone);
        self.counts.iter().sum::<u64>() - own
    }
}

impl AddAssign for CauseCounts {
    fn add_assign(&mut self, other: Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
    }
}

/// Names of the causes in the order of [`Cause`].
const CAUSES: [&str; 15] = [
    "refused",
    "reset_before_reply",
    "reset_later",
    "closed_before_reply",
    "closed_later",
    "timed_out",
    "error_line",
    "unsolicited",
    "malformed",
    "unreachable",
    "no_descriptor",
    "tls",
    "other",
    "retired",
    "node_gone",
];
/// `errno` of a process, and of a machine, that has no descriptor left; the same number on all
/// systems this runs on.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_means_what_the_connection_had_seen_before() {
        assert_eq!(Cause::of(SocketEnd::Reset, false), Cause::ResetBeforeReply);
        assert_eq!(Cause::of(SocketEnd::Reset, true), Cause::ResetLater);
        assert_eq!(
            Cause::of(SocketEnd::Closed, false),
            Cause::ClosedBeforeReply
        );
        assert_eq!(Cause::of(SocketEnd::Closed, true), Cause::ClosedLater);
        assert_eq!(Cause::of(SocketEnd::Refused, false), Cause::Refused);
    }

    #[test]
    fn errors_of_the_operating_system_are_told_apart() {
        let kind = |kind: io::ErrorKind| SocketEnd::of(&kind.into());
        assert_eq!(kind(io::ErrorKind::ConnectionRefused), SocketEnd::Refused);
        assert_eq!(kind(io::ErrorKind::ConnectionReset), SocketEnd::Reset);
        assert_eq!(kind(io::ErrorKind::UnexpectedEof), SocketEnd::Closed);
        for errno in [EMFILE, ENFILE] {
            let error = io::Error::from_raw_os_error(errno);
            assert_eq!(SocketEnd::of(&error), SocketEnd::LocalFiles, "{error}");
        }
    }

    #[test]
    fn causes_are_counted_apart_and_the_end_of_the_run_is_not() {
        let mut counts = CauseCounts::default();
        let line = Cause::ErrorLine(ErrorKind::new(b"ERR"));
        for cause in [Cause::Refused, line, line, Cause::Retired, Cause::End] {
            counts.count(cause);
        }
        let other = Cause::ErrorLine(ErrorKind::new(b"MAX"));
        assert_eq!((counts.of(Cause::Refused), counts.of(other)), (1, 2));
        assert_eq!((counts.of(Cause::End), counts.failures()), (0, 3));
        let named: Vec<_> = counts.iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(named, [("refused", 1), ("error_line", 2), ("retired", 1)]);
    }
}
