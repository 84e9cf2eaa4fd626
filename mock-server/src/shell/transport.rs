//! The transport under a connection: bytes in, bytes out, readiness in between.
//!
//! A read that returns fewer bytes than it had room for has emptied the socket, so readiness is
//! cleared then and there and the usual second read, which would only report that nothing is left,
//! is never made. (The registration is edge-triggered, and a closed peer stays readable, so nothing
//! is missed.) A read may carry its own stamp; plain sockets have none, and are stamped by the caller.
//!
//! Under TLS (`secure`) a connection costs an allocation when it is made; without it, the price is
//! one test for its absence in each call.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use kvlab_timing::Stamp;
use socket2::SockRef;
use tokio::io::unix::AsyncFd;

use super::secure::Secure;

/// A TCP transport, with or without TLS, registered with the runtime of the current thread.
#[derive(Debug)]
pub(crate) struct Transport {
    socket: AsyncFd<TcpStream>,
    secure: Option<Box<RefCell<Secure>>>,
}

impl Transport {
    /// Registers `socket`, which must be non-blocking; with `tls` the client has to begin a handshake.
    #[expect(
        deprecated,
        reason = "the replacement is unsafe; the socket is owned and kept open"
    )]
    pub(crate) fn new(
        socket: TcpStream,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> io::Result<Self> {
        let secure = tls.map(Secure::new).transpose()?;
        Ok(Self {
            socket: AsyncFd::new(socket)?,
            secure: secure.map(|secure| Box::new(RefCell::new(secure))),
        })
    }

    /// Reads once when the socket is readable. `Ok((0, _))` is the end of input. Under TLS an error of
    /// kind `InvalidData` is a fault in the client's TLS, and one of kind `Unsupported` a client that
    /// speaks none.
    pub(crate) fn poll_read(
        &self,
        context: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<(usize, Option<Stamp>)>> {
        match &self.secure {
            None => self.poll_read_plain(context, buf),
            Some(secure) => self.poll_read_secure(context, buf, &mut secure.borrow_mut()),
        }
    }

    fn poll_read_plain(
        &self,
        context: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<(usize, Option<Stamp>)>> {
        loop {
            let mut guard = ready!(self.socket.poll_read_ready(context))?;
            match self.socket.get_ref().read(buf) {
                Ok(read) => {
                    if read > 0 && read < buf.len() {
                        guard.clear_ready();
                    }
                    return Poll::Ready(Ok((read, None)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => guard.clear_ready(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn poll_read_secure(
        &self,
        context: &mut Context<'_>,
        buf: &mut [u8],
        secure: &mut Secure,
    ) -> Poll<io::Result<(usize, Option<Stamp>)>> {
        // Records without content must not keep the worker.
        for _ in 0..READS_WITHOUT_DATA {
            if secure.has_ended() {
                return Poll::Ready(Ok((0, None)));
            }
            let mut guard = ready!(self.socket.poll_read_ready(context))?;
            match secure.read(self.socket.get_ref(), buf) {
                Ok(taken) => {
                    if taken.emptied && !secure.has_ended() {
                        guard.clear_ready();
                    }
                    if taken.established {
                        // What was to be written before may be written now.
                        context.waker().wake_by_ref();
                    }
                    if taken.len > 0 {
                        return Poll::Ready(Ok((taken.len, Some(taken.stamp))));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => guard.clear_ready(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether the TLS handshake is not complete.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.secure
            .as_ref()
            .is_some_and(|secure| secure.borrow().is_handshaking())
    }

    /// Whether bytes that were taken wait for the socket to take them.
    pub(crate) fn keeps_output(&self) -> bool {
        self.secure
            .as_ref()
            .is_some_and(|secure| secure.borrow().keeps_output())
    }

    /// Sends on what was kept.
    pub(crate) fn push(&self) -> io::Result<()> {
        match &self.secure {
            None => Ok(()),
            Some(secure) => secure.borrow_mut().push(self.socket.get_ref()),
        }
    }

    /// Ends the server's side in order, before the socket is closed.
    pub(crate) fn end(&self) {
        if let Some(secure) = &self.secure {
            secure.borrow_mut().end(self.socket.get_ref());
        }
    }

    /// Completes when a write that found no room is worth trying again.
    pub(crate) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_handshaking() && !self.keeps_output() {
            // The client has the word; the reading side wakes the task.
            return Poll::Pending;
        }
        let mut guard = ready!(self.socket.poll_write_ready(context))?;
        // The caller writes next; if the socket is full again, it comes back here and waits.
        guard.clear_ready();
        Poll::Ready(Ok(()))
    }

    /// Reads bytes that nobody wants any more, as they come: 0 at the end.
    pub(crate) fn discard(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.socket.get_ref().read(buf)
    }

    /// Has the client see a reset when the socket is closed, and no orderly end.
    pub(crate) fn reset_when_closed(&self) {
        // With a linger time of 0 a close discards what is unsent and sends RST. A socket that the
        // client has left already may refuse, and needs none.
        let _ = SockRef::from(self.socket.get_ref()).set_linger(Some(Duration::ZERO));
    }

    /// Writes what the socket takes.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.secure {
            None => self.socket.get_ref().write(bytes),
            Some(secure) => secure.borrow_mut().write(self.socket.get_ref(), bytes),
        }
    }
}

/// Reads of a TLS connection that may bring no plaintext, before the others of its worker have their
/// turn.
const READS_WITHOUT_DATA: usize = 16;
