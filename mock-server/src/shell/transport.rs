//! The transport under a connection: bytes in, bytes out, readiness in between.
//!
//! A read that returns fewer bytes than it had room for has emptied the socket, so readiness is
//! cleared then and there and the usual second read, which would only report that nothing is left,
//! is never made. (The registration is edge-triggered, and a closed peer stays readable, so nothing
//! is missed.) A read may carry the kernel's receive stamp; plain sockets do not ask for one.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use kvlab_timing::Stamp;
use socket2::SockRef;
use tokio::io::unix::AsyncFd;

/// A plain TCP transport registered with the runtime of the current thread.
#[derive(Debug)]
pub(crate) struct Transport {
    socket: AsyncFd<TcpStream>,
}

impl Transport {
    /// Registers `socket`, which must be non-blocking.
    #[expect(
        deprecated,
        reason = "the replacement is unsafe; the socket is owned and kept open"
    )]
    pub(crate) fn new(socket: TcpStream) -> io::Result<Self> {
        Ok(Self {
            socket: AsyncFd::new(socket)?,
        })
    }

    /// Reads once when the socket is readable. `Ok((0, _))` is the end of input.
    pub(crate) fn poll_read(
        &self,
        context: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<(usize, Option<Stamp>)>> {
        loop {
            let mut guard = ready!(self.socket.poll_read_ready(context))?;
            match self.try_read(buf) {
                Ok((read, stamp)) => {
                    if read > 0 && read < buf.len() {
                        guard.clear_ready();
                    }
                    return Poll::Ready(Ok((read, stamp)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => guard.clear_ready(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Completes when a write that found the socket full is worth trying again.
    pub(crate) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut guard = ready!(self.socket.poll_write_ready(context))?;
        // The caller writes next; if the socket is full again, it comes back here and waits.
        guard.clear_ready();
        Poll::Ready(Ok(()))
    }

    /// Reads what is there, with the kernel's receive stamp where the transport has one.
    pub(crate) fn try_read(&self, buf: &mut [u8]) -> io::Result<(usize, Option<Stamp>)> {
        Ok((self.socket.get_ref().read(buf)?, None))
    }

    /// Has the client see a reset when the socket is closed, and no orderly end.
    pub(crate) fn reset_when_closed(&self) {
        // With a linger time of 0 a close discards what is unsent and sends RST. A socket that the
        // client has left already may refuse, and needs none.
        let _ = SockRef::from(self.socket.get_ref()).set_linger(Some(Duration::ZERO));
    }

    /// Writes what the socket takes.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.get_ref().write(bytes)
    }
}
