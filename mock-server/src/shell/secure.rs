//! TLS between a session and its socket.
//!
//! ```text
//!  socket --read--> ciphertext --rustls--> plaintext --> session     one stamp per read of the socket
//!  session --plaintext--> rustls --> ciphertext --write--> socket    what it does not take is kept
//! ```
//!
//! Each step reads the socket once, into the rear of the buffer it is given, and hands out all that
//! could be decrypted then, in the front: nothing that a session could still be given stays inside,
//! so that readiness of the socket says all, as it does without TLS. The buffer is parted so that the
//! front has room for what one read can complete, a record begun earlier included.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use kvlab_timing::{Clock, Stamp};
use rustls::ServerConnection;

/// One connection's TLS.
#[derive(Debug)]
pub(super) struct Secure {
    connection: ServerConnection,
    clock: Clock,
    /// Anything was read.
    begun: bool,
    /// The client has ended its side.
    ended: bool,
}

/// What a read of the socket brought.
#[derive(Debug)]
pub(super) struct Taken {
    /// Bytes of plaintext at the front of the buffer.
    pub(super) len: usize,
    /// The moment of the read.
    pub(super) stamp: Stamp,
    /// Nothing is left in the socket.
    pub(super) emptied: bool,
    /// With this read the handshake was completed.
    pub(super) established: bool,
}

impl Secure {
    /// TLS with the server's settings; the handshake waits for the client.
    pub(super) fn new(config: Arc<rustls::ServerConfig>) -> io::Result<Self> {
        Ok(Self {
            connection: ServerConnection::new(config).map_err(io::Error::other)?,
            clock: Clock::real(),
            begun: false,
            ended: false,
        })
    }

    /// Whether the handshake is not complete.
    pub(super) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether the client has ended its side, so that nothing comes any more.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether ciphertext waits for the socket to take it.
    pub(super) fn keeps_output(&self) -> bool {
        self.connection.wants_write()
    }

    /// Reads the socket once. An error of kind `InvalidData` is a fault in the client's TLS, and one
    /// of kind `Unsupported` a client that speaks none.
    pub(super) fn read(&mut self, mut socket: &TcpStream, buf: &mut [u8]) -> io::Result<Taken> {
        let front = buf.len().saturating_sub(CIPHERTEXT);
        let (plain, cipher) = buf.split_at_mut(front);
        let room = cipher.len();
        let read = socket.read(cipher)?;
        let stamp = self.clock.now();
        let cipher = cipher.get(..read).unwrap_or_default();
        match cipher.first() {
            None => self.ended = true,
            Some(&first) if !self.begun && first != HANDSHAKE => {
                return Err(io::ErrorKind::Unsupported.into());
            }
            Some(_) => self.begun = true,
        }
        let before = self.is_handshaking();
        let len = self.decrypt(cipher, plain, socket)?;
        // Its own part of the handshake, if any.
        self.push(socket)?;
        Ok(Taken {
            len,
            stamp,
            emptied: read < room,
            established: before && !self.is_handshaking(),
        })
    }

    fn decrypt(
        &mut self,
        mut cipher: &[u8],
        plain: &mut [u8],
        socket: &TcpStream,
    ) -> io::Result<usize> {
        let mut len = 0;
        while !cipher.is_empty() {
            if self.connection.read_tls(&mut cipher)? == 0 {
                // Nothing counts behind the client's farewell.
                break;
            }
            let state = match self.connection.process_new_packets() {
                Ok(state) => state,
                Err(error) => {
                    // The client is told why, if it still listens.
                    let _ = self.push(socket);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            };
            let mut left = state.plaintext_bytes_to_read();
            while left > 0 {
                let room = plain.get_mut(len..).unwrap_or_default();
                let read = self.connection.reader().read(room)?;
                if read == 0 {
                    return Err(io::Error::other("a record is larger than TLS allows"));
                }
                len += read;
                left = left.saturating_sub(read);
            }
            self.ended |= state.peer_has_closed();
        }
        Ok(len)
    }

    /// Encrypts and sends what can be sent: the number of bytes taken. `WouldBlock` when the handshake
    /// is not complete, or the socket has not taken what it was given before.
    pub(super) fn write(&mut self, socket: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
        self.push(socket)?;
        if self.is_handshaking() || self.keeps_output() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // Bounded by the buffer limit of the connection, 64 KiB.
        let taken = self.connection.writer().write(bytes)?;
        self.push(socket)?;
        Ok(taken)
    }

    /// Sends ciphertext as far as the socket takes it.
    pub(super) fn push(&mut self, mut socket: &TcpStream) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Says farewell, which tells the client that nothing was cut off.
    pub(super) fn end(&mut self, socket: &TcpStream) {
        if !self.is_handshaking() {
            self.connection.send_close_notify();
        }
        // The client may have left already.
        let _ = self.push(socket);
    }
}

/// First byte of a TLS connection: a record of the handshake.
const HANDSHAKE: u8 = 0x16;
/// Bytes of ciphertext that are read at once; the rest of the buffer has to hold that much and a
/// record of at most 18 KiB that was begun before.
const CIPHERTEXT: usize = 22 * 1024;
