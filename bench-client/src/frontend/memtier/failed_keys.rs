//! `--failed-keys-file`: one line for each request that failed for good, as it fails.
//!
//! ```text
//! 1767225600.123456,SET,memtier-42,OOM command not allowed when used memory > 'maxmemory'.,3
//! timestamp        ,command,key   ,status                                                ,retries
//! ```
//!
//! Lines are appended, without a header, and each is in the file as soon as it is written. A thread
//! of its own writes: no worker waits for a disk. What comes faster than it can write is left out.

use std::fs::File;
use std::io::{self, LineWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use kvlab_protocol::resp::request::KEY_PLACEHOLDER;
use kvlab_timing::WallClock;

use super::recorder::RowPlan;
use crate::record::FailedRequest;
use crate::settings::{FailureLog, Settings, Target};

/// The file, being written.
#[derive(Debug)]
pub struct FailedKeys {
    log: SyncSender<FailedRequest>,
    writer: JoinHandle<io::Result<()>>,
}

/// How a class is shown.
#[derive(Clone, Debug)]
struct Shown {
    command: String,
    /// Whether it has a key.
    keyed: bool,
}

impl FailedKeys {
    /// Opens the file to append to it.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(
        path: &Path,
        rows: &RowPlan,
        settings: &Settings,
        wall: WallClock,
    ) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        let shown = shown(rows, settings);
        let (log, told) = sync_channel(ROOM);
        let writer = thread::Builder::new()
            .name("failed-keys".to_owned())
            .spawn(move || write(LineWriter::new(file), &told, &shown, wall))?;
        Ok(Self { log, writer })
    }

    /// Where workers tell what failed. Until all copies of it are gone, [`Self::finish`] waits.
    #[must_use]
    pub fn log(&self) -> FailureLog {
        FailureLog(self.log.clone())
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// A line could not be written.
    pub fn finish(self) -> io::Result<()> {
        drop(self.log);
        self.writer
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that writes it has died")))
    }
}

fn shown(rows: &RowPlan, settings: &Settings) -> Vec<Shown> {
    let Target::Redis(target) = &settings.target else {
        return Vec::new();
    };
    let commands = target.commands();
    let name_of = |class| rows.row_of(class).and_then(|row| rows.rows().get(row));
    (0..target.operations.len())
        .map(|class| Shown {
            command: name_of(class).map_or_else(String::new, |kind| kind.name().to_owned()),
            keyed: commands
                .iter()
                .filter(|command| command.class.index() == class)
                .any(|command| command.arguments.iter().any(|word| has_key(word))),
        })
        .collect()
}

fn has_key(word: &[u8]) -> bool {
    let placeholder = KEY_PLACEHOLDER.as_bytes();
    word.windows(placeholder.len())
        .any(|part| part == placeholder)
}

fn write(
    mut out: impl Write,
    told: &Receiver<FailedRequest>,
    shown: &[Shown],
    wall: WallClock,
) -> io::Result<()> {
    for failed in told {
        out.write_all(line(&failed, shown, &wall).as_bytes())?;
    }
    out.flush()
}

fn line(failed: &FailedRequest, shown: &[Shown], wall: &WallClock) -> String {
    let micros = wall.unix_micros(failed.at);
    let (command, key) = match shown.get(failed.class.index()) {
        None => ("", String::new()),
        Some(Shown { command, keyed }) => {
            let key = if *keyed { failed.key.as_slice() } else { &[] };
            (command.as_str(), String::from_utf8_lossy(key).into_owned())
        }
    };
    format!(
        "{}.{:06},{},{},{},{}\n",
        micros / 1_000_000,
        micros % 1_000_000,
        field(command),
        field(&key),
        field(&failed.status),
        failed.retries
    )
}

/// A field of CSV (RFC 4180).
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Lines that wait to be written at most.
const ROOM: usize = 65_536;

#[cfg(test)]
mod tests {
    use kvlab_timing::Stamp;

    use super::super::model::RowKind;
    use super::*;
    use crate::record::OpClass;
    use crate::settings::RedisTarget;

    #[test]
    fn lines_are_appended_and_all_there_in_the_end() {
        let path = std::env::temp_dir().join(format!("kvlab-failed-{}", std::process::id()));
        std::fs::write(&path, "before\n").unwrap();
        let target = RedisTarget::new("127.0.0.1:1".parse().unwrap(), 1, 1);
        let settings = Settings::new(Target::Redis(target));
        let rows = RowPlan::standard(&[RowKind::Set, RowKind::Get]);
        let wall = WallClock::fixed(Stamp::ZERO, 0);
        let file = FailedKeys::open(&path, &rows, &settings, wall).unwrap();
        let log = file.log();
        for retries in 0..1_000 {
            let failed = FailedRequest {
                at: Stamp::from_nanos(2_000),
                class: OpClass(1),
                key: b"k".to_vec(),
                status: "lost".to_owned(),
                retries,
            };
            log.0.try_send(failed).unwrap();
        }
        drop(log);
        file.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let expected: String = (0..1_000)
            .map(|n| format!("0.000002,GET,k,lost,{n}\n"))
            .collect();
        assert_eq!(text, format!("before\n{expected}"));
        std::fs::remove_file(&path).unwrap();
        let folder = FailedKeys::open(&std::env::temp_dir(), &rows, &settings, wall);
        assert!(folder.is_err(), "a folder is no file");
    }

    #[test]
    fn a_line_has_time_command_key_words_and_retries() {
        let wall = WallClock::fixed(Stamp::from_nanos(5_000), 1_767_225_600_000_000_000);
        let shown = [("SET", true), ("PING", false)].map(|(command, keyed)| Shown {
            command: command.to_owned(),
            keyed,
        });
        let failed = |class, status: &str| FailedRequest {
            at: Stamp::from_nanos(123_461_000),
            class: OpClass(class),
            key: b"memtier-42".to_vec(),
            status: status.to_owned(),
            retries: 3,
        };
        assert_eq!(
            line(&failed(0, "OOM no room"), &shown, &wall),
            "1767225600.123456,SET,memtier-42,OOM no room,3\n"
        );
        assert_eq!(
            line(&failed(1, "ERR \"x\", not y"), &shown, &wall),
            "1767225600.123456,PING,,\"ERR \"\"x\"\", not y\",3\n"
        );
    }
}
