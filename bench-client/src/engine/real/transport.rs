//! The seam to a socket: read what is there, write what it takes, wait for readiness.
//!
//! One request costs one read and one write call. A read that fills less than the buffer has
//! emptied the socket, and the readiness is cleared then, without another call that would say
//! "would block"; writes are tried directly. Kernel receive stamps and TLS belong here: everything
//! above sees bytes and moments.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use kvlab_timing::Clock;
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::kernel::{self, StampedReader};
use crate::engine::worker::Arrival;

/// The reading half of a connection; its task owns it.
#[derive(Debug)]
pub(super) struct Reader {
    half: OwnedReadHalf,
}

/// The writing half of a connection; whoever has something to send uses it.
#[derive(Debug)]
pub(super) struct Writer {
    half: OwnedWriteHalf,
}

/// Connects without blocking. Small writes leave at once (`TCP_NODELAY`); `stamped` asks the kernel
/// to stamp what is received.
pub(super) async fn connect(
    address: SocketAddr,
    stamped: bool,
) -> io::Result<(Reader, Writer, SocketAddr)> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    if stamped {
        kernel::enable(&stream)?;
    }
    let local = stream.local_addr()?;
    let (read, write) = stream.into_split();
    Ok((Reader { half: read }, Writer { half: write }, local))
}

impl Reader {
    /// Reads as soon as something is there: the number of bytes, and the moments of the read. The
    /// end of the stream is an error.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
        stamped: Option<&mut StampedReader>,
    ) -> Poll<io::Result<(usize, Arrival)>> {
        let (n, arrival) = match stamped {
            None => ready!(self.poll_plain(cx, buffer))?,
            Some(reader) => ready!(self.poll_stamped(cx, buffer, reader))?,
        };
        if n == 0 {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, CLOSED)));
        }
        Poll::Ready(Ok((n, arrival)))
    }

    fn poll_plain(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, Arrival)>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.half).poll_read(cx, &mut buffer))?;
        let received = Clock::real().now();
        Poll::Ready(Ok((buffer.filled().len(), received.into())))
    }

    /// The same with a call that brings the kernel's stamp. The runtime knows no such call, so the
    /// readiness is handled here: an answer of "would block" makes it clear its own.
    fn poll_stamped(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
        reader: &mut StampedReader,
    ) -> Poll<io::Result<(usize, Arrival)>> {
        let stream = self.half.as_ref();
        loop {
            ready!(stream.poll_read_ready(cx))?;
            let mut taken = None;
            let tried = stream.try_io(Interest::READABLE, || {
                let (n, arrival) = reader.read(stream.as_raw_fd(), buffer)?;
                taken = Some((n, arrival));
                if 0 < n && n < buffer.len() {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(())
            });
            match (taken, tried) {
                (Some(taken), _) => return Poll::Ready(Ok(taken)),
                (None, Err(error)) if !is_passing(&error) => return Poll::Ready(Err(error)),
                (None, _) => {}
            }
        }
    }
}

/// Whether the call is to be made again.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

impl Writer {
    /// Writes what the socket takes; 0 when it takes nothing at present.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            return match self.half.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                result => result,
            };
        }
    }

    /// Waits until the socket may take bytes again, after a write that took none.
    pub(super) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.half.as_ref().poll_write_ready(cx)
    }
}

const CLOSED: &str = "closed by the server";
