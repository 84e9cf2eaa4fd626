//! The seam to a socket: read what is there, write what it takes, wait for readiness.
//!
//! One request costs one read and one write call. A read that fills less than the buffer has
//! emptied the socket, and the runtime then clears the readiness by itself, without another call
//! that would say "would block"; writes are tried directly. Kernel receive stamps and TLS belong
//! here: everything above sees bytes and moments.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use kvlab_timing::Stamp;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

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

/// Connects without blocking. Small writes leave at once (`TCP_NODELAY`).
pub(super) async fn connect(address: SocketAddr) -> io::Result<(Reader, Writer, SocketAddr)> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let local = stream.local_addr()?;
    let (read, write) = stream.into_split();
    Ok((Reader { half: read }, Writer { half: write }, local))
}

impl Reader {
    /// Reads as soon as something is there: the number of bytes, and the kernel's receive stamp
    /// where one was asked for (not yet). The end of the stream is an error.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, Option<Stamp>)>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.half).poll_read(cx, &mut buffer))?;
        match buffer.filled().len() {
            0 => Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, CLOSED))),
            n => Poll::Ready(Ok((n, None))),
        }
    }
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
