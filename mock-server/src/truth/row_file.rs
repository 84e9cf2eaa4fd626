//! Rows as a CSV file, written by a thread of its own so that no request waits for a disk.
//!
//! Workers hand over full chunks. Where the disk cannot keep up, chunks are dropped and counted; where it
//! takes no more, what is written stays, the rest is counted, and the error is told.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use kvlab_timing::{Stamp, WallClock};

use crate::stamp::ServerRow;

/// Rows that are handed over together.
pub(crate) const CHUNK: usize = 1024;

/// Chunks that may wait for the disk.
const WAITING: usize = 256;

/// A worker's way to the file.
#[derive(Debug, Clone)]
pub(crate) struct RowSender {
    chunks: SyncSender<Vec<ServerRow>>,
    lost: Arc<AtomicU64>,
}

impl RowSender {
    /// Hands rows over; never waits.
    pub(crate) fn send(&self, chunk: Vec<ServerRow>) {
        let count = chunk.len() as u64;
        if count > 0 && self.chunks.try_send(chunk).is_err() {
            self.lost.fetch_add(count, Ordering::Relaxed);
        }
    }
}

/// The file and the thread that writes it.
#[derive(Debug)]
pub(crate) struct RowFile {
    path: PathBuf,
    lost: Arc<AtomicU64>,
    thread: JoinHandle<(u64, io::Result<()>)>,
}

/// Why not all rows are in the file.
#[derive(Debug, thiserror::Error)]
#[error("{lost} of {} rows are not in {}: {reason}", lost + written, path.display())]
pub struct RowsLost {
    /// The file.
    pub path: PathBuf,
    /// Rows that are in it.
    pub written: u64,
    /// Rows that are not.
    pub lost: u64,
    /// What the system said, or that the disk was too slow.
    pub reason: String,
}

impl RowFile {
    /// Creates the file, or empties it, and starts the thread.
    pub(crate) fn create(path: &Path, wall: WallClock) -> io::Result<(Self, RowSender)> {
        let mut out = BufWriter::with_capacity(1 << 18, File::create(path)?);
        writeln!(out, "{HEADING}")?;
        // A full disk is told now rather than at the end of the first run.
        out.flush()?;
        let (chunks, inbox) = sync_channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let (counter, name) = (Arc::clone(&lost), path.display().to_string());
        let thread = thread::Builder::new()
            .name("kvlab-rows".to_owned())
            .spawn(move || write_all(out, &wall, &inbox, &counter, &name))?;
        let file = Self {
            path: path.to_owned(),
            lost: Arc::clone(&lost),
            thread,
        };
        Ok((file, RowSender { chunks, lost }))
    }

    /// Waits until everything is written that was handed over; every sender has to be gone.
    pub(crate) fn finish(self) -> Result<u64, RowsLost> {
        let (written, result) = self.thread.join().unwrap_or_else(|_| {
            (
                0,
                Err(io::Error::other("the thread that writes has panicked")),
            )
        });
        let lost = self.lost.load(Ordering::Relaxed);
        let reason = match result {
            Ok(()) if lost == 0 => return Ok(written),
            Ok(()) => "the disk did not keep up".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(RowsLost {
            path: self.path,
            written,
            lost,
            reason,
        })
    }
}

/// Writes until the last sender is gone; returns how many rows are surely in the file.
fn write_all<W: Write>(
    mut out: BufWriter<W>,
    wall: &WallClock,
    inbox: &Receiver<Vec<ServerRow>>,
    lost: &AtomicU64,
    name: &str,
) -> (u64, io::Result<()>) {
    let mut written = 0;
    let mut failure = Ok(());
    for chunk in inbox {
        let count = chunk.len() as u64;
        if failure.is_ok() {
            failure = chunk
                .iter()
                .try_for_each(|row| write_row(row, wall, &mut out))
                .and_then(|()| out.flush());
            if let Err(error) = &failure {
                tracing::error!(%error, file = name, "rows cannot be written and are dropped");
            }
        }
        if failure.is_ok() {
            written += count;
        } else {
            lost.fetch_add(count, Ordering::Relaxed);
        }
    }
    if failure.is_err() {
        // What the buffer still holds was reported as lost; do not try the disk again.
        let _ = out.into_parts();
    }
    (written, failure)
}

fn write_row(row: &ServerRow, wall: &WallClock, out: &mut impl Write) -> io::Result<()> {
    let since_read = |moment: Stamp| moment.saturating_since(row.read);
    writeln!(
        out,
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
        row.peer,
        row.ordinal,
        row.connection,
        row.sequence,
        row.protocol,
        row.class,
        row.command,
        wall.unix_nanos(row.read),
        row.read.as_nanos(),
        row.started,
        since_read(row.start),
        row.drawn_ns,
        row.wanted_ns,
        row.wait_ns,
        row.service_ns,
        row.throttle_ns,
        row.reply_wait_ns,
        row.request_bytes,
        row.reply_bytes,
        since_read(row.due),
        since_read(row.written),
        since_read(row.written_after),
        row.answered,
        row.fault,
    )
}

/// The columns. `read` is told as calendar time and by the server's clock, which a client on the same
/// machine reads too; the other moments count from it. With address, ordinal and sequence rows join
/// with those of a client.
const HEADING: &str = "peer,ordinal,connection,sequence,protocol,class,command,read_unix_ns,read_ns,\
                       started,start_ns,drawn_ns,wanted_ns,wait_ns,service_ns,throttle_ns,\
                       reply_wait_ns,request_bytes,reply_bytes,due_ns,written_ns,written_after_ns,\
                       answered,fault";

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::exchange::{Class, Protocol};
    use crate::stamp::FaultKind;

    /// Calendar time is 6 us ahead.
    fn wall() -> WallClock {
        WallClock::fixed(Stamp::ZERO, 6_000)
    }

    fn row(sequence: u64) -> ServerRow {
        let at = Stamp::from_nanos;
        ServerRow {
            peer: ([127, 0, 0, 1], 40_001).into(),
            ordinal: 0,
            connection: 3,
            sequence,
            protocol: Protocol::Redis,
            command: "get",
            class: Class::Read,
            read: at(1_000),
            started: true,
            start: at(1_500),
            request_bytes: 20,
            reply_bytes: 30,
            throttle_place: Some(1),
            throttle_ns: 8,
            reply_place: Some(2),
            reply_wait_ns: 9,
            drawn_ns: 10,
            wanted_ns: 20,
            queue_place: Some(0),
            wait_ns: 5,
            service_ns: 7,
            due: at(1_532),
            written: at(1_540),
            written_after: at(1_541),
            answered: true,
            fault: FaultKind::Frozen,
        }
    }

    #[test]
    fn a_row_is_a_line_under_the_heading() {
        let mut line = Vec::new();
        write_row(&row(9), &wall(), &mut line).unwrap();
        let line = String::from_utf8(line).unwrap();
        let expected = "127.0.0.1:40001,0,3,9,redis,read,get,7000,1000,true,500,10,20,5,7,8,9,20,30,532,540,\
                        541,true,frozen\n";
        assert_eq!(line, expected);
        assert_eq!(line.split(',').count(), HEADING.split(',').count());
    }

    /// A disk with room for so many bytes.
    struct Disk(Arc<Mutex<Vec<u8>>>, usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut kept = self.0.lock().unwrap();
            let room = bytes.len().min(self.1 - kept.len());
            if room == 0 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            kept.extend_from_slice(&bytes[..room]);
            Ok(room)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_keeps_what_is_there_and_the_rest_is_counted() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        // Room for two chunks of ten rows and a little more.
        let mut line = Vec::new();
        write_row(&row(0), &wall(), &mut line).unwrap();
        let disk = Disk(Arc::clone(&kept), 25 * line.len());
        let (sender, inbox) = channel();
        for _ in 0..4 {
            sender.send(vec![row(0); 10]).unwrap();
        }
        drop(sender);
        let lost = AtomicU64::new(0);
        let (written, result) = write_all(BufWriter::new(disk), &wall(), &inbox, &lost, "rows.csv");
        assert_eq!((written, lost.into_inner()), (20, 20));
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::StorageFull);
        let kept = kept.lock().unwrap();
        assert!(kept.starts_with(&line.repeat(20)));
        assert_eq!(kept.len(), 25 * line.len());
    }

    #[test]
    fn what_was_handed_over_is_in_the_file_when_all_senders_are_gone() {
        let path = std::env::temp_dir().join(format!("kvlab-rows-{}.csv", std::process::id()));
        let (file, sender) = RowFile::create(&path, wall()).unwrap();
        let other = sender.clone();
        sender.send(vec![row(1), row(2)]);
        other.send(vec![row(3)]);
        drop((sender, other));
        assert_eq!(file.finish().unwrap(), 3);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 4);
        assert_eq!(text.lines().next(), Some(HEADING));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_full_device_is_told_at_the_start() {
        let error = RowFile::create(Path::new("/dev/full"), wall()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
