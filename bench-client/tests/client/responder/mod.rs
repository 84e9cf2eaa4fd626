//! A RESP server of a few lines: reads requests, answers what a function says, counts.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// What to do with a request.
pub(crate) enum Answer {
    /// Send these bytes.
    Reply(&'static [u8]),
    /// Send nothing.
    Silence,
    /// Close all connections and listen no more.
    Vanish,
}

type Rule = dyn Fn(u64, &[Vec<u8>]) -> Answer + Send + Sync;

pub(crate) struct Responder {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    rule: Box<Rule>,
    requests: AtomicU64,
    gone: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
    counted: (Mutex<u64>, Condvar),
}

impl Responder {
    /// Starts a server whose answers depend on the number of the request, from 0 over all
    /// connections, and on its words.
    pub(crate) fn start(rule: impl Fn(u64, &[Vec<u8>]) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            rule: Box::new(rule),
            requests: AtomicU64::new(0),
            gone: AtomicBool::new(false),
            streams: Mutex::default(),
            counted: (Mutex::new(0), Condvar::new()),
        });
        let server = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if server.gone.load(Ordering::SeqCst) {
                    return;
                }
                server
                    .streams
                    .lock()
                    .unwrap()
                    .push(stream.try_clone().unwrap());
                let server = Arc::clone(&server);
                thread::spawn(move || {
                    // Ends with the connection.
                    let _ = server.serve(&stream, address);
                });
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Requests read so far.
    pub(crate) fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Waits until this many requests were read.
    pub(crate) fn wait_for_requests(&self, least: u64) {
        let (count, changed) = &self.shared.counted;
        let count = count.lock().unwrap();
        drop(changed.wait_while(count, |count| *count < least).unwrap());
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.shared.vanish(self.address);
    }
}

impl Shared {
    fn serve(&self, stream: &TcpStream, address: SocketAddr) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut input = BufReader::new(stream);
        let mut output = stream;
        while let Some(words) = request(&mut input)? {
            let number = self.requests.fetch_add(1, Ordering::SeqCst);
            *self.counted.0.lock().unwrap() += 1;
            self.counted.1.notify_all();
            match (self.rule)(number, &words) {
                Answer::Reply(bytes) => output.write_all(bytes)?,
                Answer::Silence => {}
                Answer::Vanish => self.vanish(address),
            }
        }
        Ok(())
    }

    fn vanish(&self, address: SocketAddr) {
        if self.gone.swap(true, Ordering::SeqCst) {
            return;
        }
        for stream in self.streams.lock().unwrap().drain(..) {
            // Fails where the client was faster.
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Wakes the listener, which then ends and closes the port.
        let _ = TcpStream::connect(address);
    }
}

/// The words of the next request; `None` when the client has closed.
fn request(input: &mut impl BufRead) -> io::Result<Option<Vec<Vec<u8>>>> {
    let Some(count) = number(input, b'*')? else {
        return Ok(None);
    };
    let mut words = Vec::new();
    for _ in 0..count {
        let len = number(input, b'$')?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut word = vec![0; len + 2];
        input.read_exact(&mut word)?;
        word.truncate(len);
        words.push(word);
    }
    Ok(Some(words))
}

fn number(input: &mut impl BufRead, kind: u8) -> io::Result<Option<usize>> {
    let mut line = Vec::new();
    if input.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let text = line
        .strip_prefix(&[kind])
        .and_then(|rest| rest.strip_suffix(b"\r\n"));
    let text = text.and_then(|text| std::str::from_utf8(text).ok());
    let number = text.and_then(|text| text.parse().ok());
    number
        .map(Some)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}
