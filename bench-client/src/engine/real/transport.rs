//! The seam to a socket: read what is there, write what it takes, wait for readiness.
//!
//! One request costs one read and one write call. A read that fills less than the buffer has
//! emptied the socket, and the readiness is cleared then, without another call that would say
//! "would block"; writes are tried directly. Kernel receive stamps and TLS (`tls`) belong here:
//! everything above sees bytes and moments, and without TLS a call pays one test for it.

use std::cell::RefCell;
use std::io::{self, IoSlice, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use kvlab_timing::Clock;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream, tcp, unix};

use super::kernel::{self, StampedReader};
use super::tls::{CIPHERTEXT, Secure, Securing};
use crate::engine::worker::{Arrival, NAMELESS};
use crate::settings::Address;

/// The reading half of a connection; its task owns it.
#[derive(Debug)]
pub(super) struct Reader {
    half: ReadHalf,
    secure: Option<Rc<RefCell<Secure>>>,
}

/// The writing half of a connection; whoever has something to send uses it.
#[derive(Debug)]
pub(super) struct Writer {
    half: WriteHalf,
    secure: Option<Rc<RefCell<Secure>>>,
}

/// The reading half of a socket of either kind.
#[derive(Debug)]
enum ReadHalf {
    Tcp(tcp::OwnedReadHalf),
    Unix(unix::OwnedReadHalf),
}

/// The writing half of a socket of either kind.
#[derive(Debug)]
enum WriteHalf {
    Tcp(tcp::OwnedWriteHalf),
    Unix(unix::OwnedWriteHalf),
}

/// A socket that is only looked at.
#[derive(Clone, Copy, Debug)]
enum Socket<'a> {
    Tcp(&'a TcpStream),
    Unix(&'a UnixStream),
}

/// How the sockets of a run are made.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    stamped: bool,
    securing: Option<Securing>,
}

impl Connector {
    /// `stamped` has the kernel stamp what is received; `securing` follows with a TLS handshake.
    pub(super) fn new(stamped: bool, securing: Option<Securing>) -> Self {
        Self { stamped, securing }
    }

    /// Whether kernel stamps are taken.
    pub(super) fn is_stamped(&self) -> bool {
        self.stamped
    }

    /// Whether a TLS handshake follows on a connect.
    pub(super) fn is_securing(&self) -> bool {
        self.securing.is_some()
    }

    /// Connects without blocking. Small writes leave at once (`TCP_NODELAY`).
    pub(super) async fn connect(
        &self,
        address: Address,
    ) -> io::Result<(Reader, Writer, SocketAddr)> {
        let (read, write, local) = match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                if self.stamped {
                    kernel::enable(&stream)?;
                }
                let local = stream.local_addr()?;
                let (read, write) = stream.into_split();
                (ReadHalf::Tcp(read), WriteHalf::Tcp(write), local)
            }
            Address::Unix(path) => {
                let (read, write) = UnixStream::connect(path).await?.into_split();
                (ReadHalf::Unix(read), WriteHalf::Unix(write), NAMELESS)
            }
        };
        let reader = Reader {
            half: read,
            secure: None,
        };
        let writer = Writer {
            half: write,
            secure: None,
        };
        Ok((reader, writer, local))
    }

    /// Puts TLS on a connection, where it is wanted, to a server of that name if it has one of its
    /// own; [`Reader::poll_handshake`] brings it about.
    pub(super) fn begin_tls(
        &self,
        reader: &mut Reader,
        writer: &mut Writer,
        name: Option<ServerName<'static>>,
    ) -> io::Result<()> {
        if let Some(securing) = &self.securing {
            let secure = Rc::new(RefCell::new(securing.begin(name)?));
            reader.secure = Some(Rc::clone(&secure));
            writer.secure = Some(secure);
        }
        Ok(())
    }
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
        let (n, arrival) = match &self.secure {
            None => ready!(self.poll_socket(cx, buffer, stamped))?,
            Some(secure) => {
                let secure = Rc::clone(secure);
                ready!(self.poll_secure(cx, buffer, stamped, &mut secure.borrow_mut()))?
            }
        };
        if n == 0 {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, CLOSED)));
        }
        Poll::Ready(Ok((n, arrival)))
    }

    /// Completes the TLS handshake; `buffer` is scratch space.
    pub(super) fn poll_handshake(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
        mut stamped: Option<&mut StampedReader>,
    ) -> Poll<io::Result<()>> {
        let Some(secure) = self.secure.clone() else {
            return Poll::Ready(Ok(()));
        };
        let mut secure = secure.borrow_mut();
        loop {
            if !secure.push(&mut self.half.socket())? {
                ready!(self.half.socket().poll_write_ready(cx))?;
                continue;
            }
            if !secure.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            let (plain, cipher) = split(buffer);
            let (n, arrival) = ready!(self.poll_socket(cx, cipher, stamped.as_deref_mut()))?;
            let len = secure.decrypt(cipher.get(..n).unwrap_or_default(), plain)?;
            secure.keep_early(plain.get(..len).unwrap_or_default(), arrival);
        }
    }

    fn poll_secure(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
        mut stamped: Option<&mut StampedReader>,
        secure: &mut Secure,
    ) -> Poll<io::Result<(usize, Arrival)>> {
        if let Some(early) = secure.take_early(buffer) {
            return Poll::Ready(Ok(early));
        }
        loop {
            let (plain, cipher) = split(buffer);
            let (n, arrival) = ready!(self.poll_socket(cx, cipher, stamped.as_deref_mut()))?;
            let len = secure.decrypt(cipher.get(..n).unwrap_or_default(), plain)?;
            // Answers of TLS itself; where the socket takes none, they go with the next write.
            secure.push(&mut self.half.socket())?;
            if len > 0 || n == 0 || secure.has_ended() {
                return Poll::Ready(Ok((len, arrival)));
            }
        }
    }

    fn poll_socket(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
        stamped: Option<&mut StampedReader>,
    ) -> Poll<io::Result<(usize, Arrival)>> {
        match (stamped, &self.half) {
            (Some(reader), ReadHalf::Tcp(half)) => poll_stamped(half.as_ref(), cx, buffer, reader),
            // Socket files bring no stamps.
            _ => self.poll_plain(cx, buffer),
        }
    }

    fn poll_plain(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, Arrival)>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(match &mut self.half {
            ReadHalf::Tcp(half) => Pin::new(half).poll_read(cx, &mut buffer),
            ReadHalf::Unix(half) => Pin::new(half).poll_read(cx, &mut buffer),
        })?;
        let received = Clock::real().now();
        Poll::Ready(Ok((buffer.filled().len(), received.into())))
    }
}

/// A read with a call that brings the kernel's stamp. The runtime knows no such call, so the
/// readiness is handled here: an answer of "would block" makes it clear its own.
fn poll_stamped(
    stream: &TcpStream,
    cx: &mut Context<'_>,
    buffer: &mut [u8],
    reader: &mut StampedReader,
) -> Poll<io::Result<(usize, Arrival)>> {
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
        if let Some(secure) = &self.secure {
            return secure.borrow_mut().write(&mut self.half.socket(), bytes);
        }
        loop {
            return match self.half.socket().try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                result => result,
            };
        }
    }

    /// Whether the socket has all that was taken. Where it has not, another write, of nothing if
    /// there is nothing more, sends it on.
    pub(super) fn has_sent_all(&self) -> bool {
        self.secure
            .as_ref()
            .is_none_or(|secure| !secure.borrow().keeps_output())
    }

    /// Whether the connection is under TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.secure.is_some()
    }

    /// Ends the client's side in order, before the socket is closed.
    pub(super) fn end(&self) {
        if let Some(secure) = &self.secure {
            secure.borrow_mut().end(&mut self.half.socket());
        }
    }

    /// Waits until the socket may take bytes again, after a write that took none.
    pub(super) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.half.socket().poll_write_ready(cx)
    }
}

impl ReadHalf {
    fn socket(&self) -> Socket<'_> {
        match self {
            Self::Tcp(half) => Socket::Tcp(half.as_ref()),
            Self::Unix(half) => Socket::Unix(half.as_ref()),
        }
    }
}

impl WriteHalf {
    #[inline]
    fn socket(&self) -> Socket<'_> {
        match self {
            Self::Tcp(half) => Socket::Tcp(half.as_ref()),
            Self::Unix(half) => Socket::Unix(half.as_ref()),
        }
    }
}

impl Socket<'_> {
    #[inline]
    fn try_write(self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Unix(stream) => stream.try_write(bytes),
        }
    }

    fn poll_write_ready(self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_write_ready(cx),
            Self::Unix(stream) => stream.poll_write_ready(cx),
        }
    }
}

/// As TLS writes to it.
impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write_vectored(parts),
            Self::Unix(stream) => stream.try_write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The room for plaintext and the room for ciphertext.
fn split(buffer: &mut [u8]) -> (&mut [u8], &mut [u8]) {
    let front = buffer.len().saturating_sub(CIPHERTEXT);
    buffer.split_at_mut(front)
}

const CLOSED: &str = "closed by the server";
