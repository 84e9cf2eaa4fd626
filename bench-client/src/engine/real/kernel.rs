//! Receive stamps of the kernel: when a reply reached this machine, whoever slept at that moment.
//!
//! With `SO_TIMESTAMPING` (software, receive) each read of a socket brings a control message with
//! the moment at which the kernel received the **last** segment that the read took. What the read
//! came later by is the client's own delay: waking up, and what it did before.
//!
//! ```text
//! sent ......... kernel stamp ......... received
//!      network latency        read delay
//! ```
//!
//! The stamp is calendar time. It is converted with an offset that is sampled between two readings
//! of the monotonic clock, known to well under a microsecond. Slewing (NTP) moves both clocks
//! alike; only a step of the calendar clock moves the offset. So each read compares both clocks,
//! one more reading of about 25 ns, and samples the offset again if they are apart by more than
//! [`SLACK_NS`]; the stamp of a read that found a step is dropped.
//!
//! Source: the kernel's `Documentation/networking/timestamping.rst`; that a TCP read brings the
//! stamp of its last segment is `tcp_update_recv_tstamps` in `net/ipv4/tcp.c`.

use std::io::{self, IoSliceMut, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::thread;
use std::time::Duration;

use kvlab_timing::{Clock, Stamp, WallClock};
use nix::cmsg_space;
use nix::sys::socket::sockopt::Timestamping;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, TimestampingFlag, Timestamps, recvmsg, setsockopt,
};
use rustix::time::{ClockId, clock_gettime};

use crate::engine::RunError;
use crate::engine::worker::Arrival;
use crate::record::STAMP_TOLERANCE_NS;
use crate::settings::{KernelStamps, Target};

/// What came of the wish for kernel stamps.
#[derive(Debug)]
pub(super) enum Stamping {
    /// Nobody wants them.
    Off,
    /// They work. The socket keeps the kernel stamping until the run's own sockets are there.
    On(#[expect(dead_code, reason = "held open, not used")] TcpStream),
    /// They do not work, and the run goes on without.
    Missing(String),
}

impl Stamping {
    /// Tries whether this kernel stamps.
    pub(super) fn prepare(wanted: KernelStamps, target: &Target) -> Result<Self, RunError> {
        if !wanted.is_wanted() {
            return Ok(Self::Off);
        }
        let probed = if target.is_socket_file() {
            Err(io::Error::other(
                "the kernel stamps nothing on a Unix socket",
            ))
        } else {
            probe()
        };
        match (probed, wanted) {
            (Ok(socket), _) => Ok(Self::On(socket)),
            (Err(error), KernelStamps::On) => Err(RunError::NoKernelStamps(error.to_string())),
            (Err(error), _) => Ok(Self::Missing(error.to_string())),
        }
    }

    pub(super) fn is_on(&self) -> bool {
        matches!(self, Self::On(_))
    }

    /// Why there are none though they were wanted.
    pub(super) fn missing(&self) -> Option<&str> {
        match self {
            Self::Missing(reason) => Some(reason),
            Self::Off | Self::On(_) => None,
        }
    }
}

/// Asks the kernel to stamp what this socket receives.
pub(super) fn enable(socket: &impl AsFd) -> io::Result<()> {
    let flags = TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE;
    Ok(setsockopt(socket, Timestamping, &flags)?)
}

/// Reads sockets together with their stamps; one serves all connections of a worker.
#[derive(Debug)]
pub(super) struct StampedReader {
    clock: Clock,
    wall: WallClock,
    control: Vec<u8>,
}

impl StampedReader {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            wall: WallClock::real(clock),
            control: cmsg_space!(Timestamps),
        }
    }

    /// One read call, and its moments.
    pub(super) fn read(
        &mut self,
        socket: RawFd,
        buffer: &mut [u8],
    ) -> io::Result<(usize, Arrival)> {
        let mut parts = [IoSliceMut::new(buffer)];
        let message = recvmsg::<()>(
            socket,
            &mut parts,
            Some(&mut self.control),
            MsgFlags::empty(),
        )?;
        let received = self.clock.now();
        let stamp = message.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampsns(stamps) => unix_nanos(&stamps),
            _ => None,
        });
        let bytes = message.bytes;
        let kernel = stamp.and_then(|unix_ns| self.convert(unix_ns, received));
        Ok((bytes, Arrival { received, kernel }))
    }

    /// The moment of a stamp; `None` when the calendar clock was set since the last look at it.
    fn convert(&mut self, unix_ns: u64, received: Stamp) -> Option<Stamp> {
        let unix_now = calendar_nanos();
        if unix_now.abs_diff(self.wall.unix_nanos(received)) > SLACK_NS {
            // Either this thread lost the processor between the two readings, or a step.
            let fresh = WallClock::real(self.clock);
            let moved = fresh
                .unix_nanos(received)
                .abs_diff(self.wall.unix_nanos(received));
            self.wall = fresh;
            if moved > SLACK_NS {
                return None;
            }
        }
        Some(self.wall.stamp_at(unix_ns))
    }
}

/// The software stamp; the kernel leaves it at 0 when it has none.
fn unix_nanos(stamps: &Timestamps) -> Option<u64> {
    let nanos = nanos(stamps.system.tv_sec(), stamps.system.tv_nsec());
    (nanos > 0).then_some(nanos)
}

fn calendar_nanos() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    nanos(time.tv_sec, time.tv_nsec)
}

fn nanos(seconds: i64, nanos: i64) -> u64 {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    let nanos = u64::try_from(nanos).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// Sends bytes to itself until one is stamped, which may take a moment: the kernel begins to stamp
/// a little after the first socket asked for it.
fn probe() -> io::Result<TcpStream> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let receiver = TcpStream::connect(listener.local_addr()?)?;
    let (mut sender, _) = listener.accept()?;
    enable(&receiver)?;
    receiver.set_read_timeout(Some(PROBE_PATIENCE))?;
    let clock = Clock::real();
    let mut reader = StampedReader::new(clock);
    for _ in 0..PROBES {
        let before = clock.now();
        sender.write_all(b"?")?;
        let (_, arrival) = reader.read(receiver.as_raw_fd(), &mut [0])?;
        let Some(kernel) = arrival.kernel else {
            thread::sleep(PROBE_PAUSE);
            continue;
        };
        let early = before.saturating_since(kernel);
        let late = kernel.saturating_since(arrival.received);
        if early.max(late) <= STAMP_TOLERANCE_NS {
            return Ok(receiver);
        }
        let text = "its stamps do not agree with its clocks";
        return Err(io::Error::other(text));
    }
    Err(io::Error::other("reads bring no stamp"))
}

/// How far the two clocks may be apart from what the offset says before it is sampled again. A
/// smaller step goes unseen; with the error of the sampling the tolerance covers it.
const SLACK_NS: u64 = STAMP_TOLERANCE_NS / 2;
const PROBES: u32 = 50;
const PROBE_PAUSE: Duration = Duration::from_millis(1);
const PROBE_PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A connected pair whose second end is stamped; `None` on a machine that does not stamp.
    fn pair() -> Option<(TcpStream, TcpStream, StampedReader)> {
        // Held until the pair asks for stamps itself.
        let _probe = probe()
            .inspect_err(|error| eprintln!("nothing to test: {error}"))
            .ok()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let receiver = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (sender, _) = listener.accept().unwrap();
        sender.set_nodelay(true).unwrap();
        enable(&receiver).unwrap();
        Some((sender, receiver, StampedReader::new(Clock::real())))
    }

    fn read(reader: &mut StampedReader, socket: &TcpStream) -> (usize, Arrival) {
        reader.read(socket.as_raw_fd(), &mut [0; 16]).unwrap()
    }

    const NAP: Duration = Duration::from_millis(20);
    const NAP_NS: u64 = 20_000_000;

    #[test]
    fn a_stamp_is_the_moment_of_arrival_and_not_of_the_read() {
        let Some((mut sender, receiver, mut reader)) = pair() else {
            return;
        };
        let before = Clock::real().now();
        sender.write_all(b"a").unwrap();
        let after = Clock::real().now();
        thread::sleep(NAP);
        let (n, arrival) = read(&mut reader, &receiver);
        let kernel = arrival.kernel.unwrap();
        assert_eq!(n, 1);
        assert!(before.saturating_since(kernel) <= STAMP_TOLERANCE_NS);
        assert!(arrival.received.saturating_since(kernel) + STAMP_TOLERANCE_NS >= NAP_NS);
        // On the loopback a segment arrives within the call that sends it, or soon after it.
        assert!(kernel.saturating_since(after) < NAP_NS, "{kernel} {after}");
    }

    #[test]
    fn one_read_of_two_segments_has_the_stamp_of_the_second() {
        let Some((mut sender, receiver, mut reader)) = pair() else {
            return;
        };
        sender.write_all(b"first").unwrap();
        thread::sleep(NAP);
        let between = Clock::real().now();
        sender.write_all(b"second").unwrap();
        // Until both are there.
        while receiver.peek(&mut [0; 16]).unwrap() < 11 {}
        let (n, arrival) = read(&mut reader, &receiver);
        assert_eq!(n, 11);
        assert!(between.saturating_since(arrival.kernel.unwrap()) <= STAMP_TOLERANCE_NS);
    }

    #[test]
    fn a_step_of_the_calendar_costs_one_stamp() {
        let Some((mut sender, receiver, mut reader)) = pair() else {
            return;
        };
        for step_ns in [1_000_000, -1_000_000, 3_600_000_000_000] {
            // As if the calendar had been set since the offset was sampled.
            reader.wall.adjust(step_ns);
            let mut stamped = [false; 2];
            for found in &mut stamped {
                let before = Clock::real().now();
                sender.write_all(b"a").unwrap();
                let (_, arrival) = read(&mut reader, &receiver);
                *found = arrival.kernel.is_some();
                if let Some(kernel) = arrival.kernel {
                    let early = before.saturating_since(kernel);
                    let late = kernel.saturating_since(arrival.received);
                    assert!(early.max(late) <= STAMP_TOLERANCE_NS, "{step_ns}");
                }
            }
            assert_eq!(stamped, [false, true], "{step_ns}");
        }
    }

    #[test]
    fn a_socket_that_did_not_ask_has_no_stamp() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let receiver = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut sender, _) = listener.accept().unwrap();
        sender.write_all(b"a").unwrap();
        let mut reader = StampedReader::new(Clock::real());
        let (n, arrival) = read(&mut reader, &receiver);
        assert_eq!((n, arrival.kernel), (1, None));
    }
}
