//! SCAN that follows its cursor.
//!
//! ```text
//! SCAN 0 COUNT 20       class 0: a scan begins          -> *2 $2 17 *20 …
//! SCAN 17 COUNT 20      class 1: it goes on             -> *2 $1 0 *3 …
//! SCAN 0 COUNT 20       class 0: the next one begins
//! ```
//!
//! Each connection has a scan of its own; a new socket begins anew. The workload draws class 0 only,
//! and what is sent is settled on the connection. An error begins a new scan.

use bytes::BytesMut;
use kvlab_protocol::resp::request::encode_command;

use crate::record::OpClass;
use crate::settings::ScanSettings;

/// What is sent.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    settings: ScanSettings,
}

/// Where a connection's scan is.
#[derive(Debug, Default)]
pub(super) struct ScanState {
    /// The cursor of the last reply; empty where the next scan begins.
    cursor: Vec<u8>,
    /// Cursors followed since the scan began.
    followed: u32,
}

impl Scan {
    pub(super) fn new(settings: &ScanSettings) -> Self {
        Self {
            settings: settings.clone(),
        }
    }

    /// The class of the next request.
    pub(super) fn class(&self, state: &ScanState) -> OpClass {
        let most = self.settings.most_cursors;
        if state.cursor.is_empty() || (most > 0 && state.followed >= most) {
            BEGINS
        } else {
            GOES_ON
        }
    }

    /// Notes that a scan begins, or appends the request that goes on with it; says which.
    pub(super) fn encode(&self, class: OpClass, state: &mut ScanState, out: &mut BytesMut) -> bool {
        if class == BEGINS {
            state.followed = 0;
            return false;
        }
        state.followed = state.followed.saturating_add(1);
        let mut arguments: Vec<&[u8]> = vec![b"SCAN", &state.cursor];
        arguments.extend(self.settings.arguments.iter().map(Vec::as_slice));
        encode_command(&arguments, out);
        true
    }
}

impl ScanState {
    /// Takes the cursor out of a reply.
    pub(super) fn take(&mut self, frame: &[u8]) {
        self.cursor.clear();
        if let Some(cursor) = cursor(frame).filter(|cursor| *cursor != b"0") {
            self.cursor.extend_from_slice(cursor);
        }
    }
}

/// The first element of an array, if it is a number in a bulk string.
fn cursor(frame: &[u8]) -> Option<&[u8]> {
    let line = |bytes: &'_ [u8]| bytes.windows(2).position(|end| end == b"\r\n");
    let rest = frame.strip_prefix(b"*")?;
    let rest = rest.get(line(rest)? + 2..)?.strip_prefix(b"$")?;
    let rest = rest.get(line(rest)? + 2..)?;
    let cursor = rest.get(..line(rest)?)?;
    let digits = !cursor.is_empty() && cursor.iter().all(u8::is_ascii_digit);
    digits.then_some(cursor)
}

/// The class of `SCAN 0`.
const BEGINS: OpClass = OpClass(0);
/// The class of `SCAN cursor`.
const GOES_ON: OpClass = OpClass(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(most_cursors: u32) -> Scan {
        Scan::new(&ScanSettings {
            arguments: vec![b"COUNT".to_vec(), b"20".to_vec()],
            most_cursors,
        })
    }

    /// Sends until the replies are used up, and says what was sent.
    fn sent(scan: &Scan, replies: &[&str]) -> Vec<String> {
        let mut state = ScanState::default();
        let mut all = Vec::new();
        for reply in replies {
            let mut out = BytesMut::new();
            let class = scan.class(&state);
            let went_on = scan.encode(class, &mut state, &mut out);
            all.push(if went_on {
                String::from_utf8(out.to_vec()).unwrap()
            } else {
                "begins".to_owned()
            });
            state.take(reply.as_bytes());
        }
        all
    }

    const TO_17: &str = "*2\r\n$2\r\n17\r\n*1\r\n$1\r\nk\r\n";
    const TO_0: &str = "*2\r\n$1\r\n0\r\n*0\r\n";
    const WITH_17: &str = "*4\r\n$4\r\nSCAN\r\n$2\r\n17\r\n$5\r\nCOUNT\r\n$2\r\n20\r\n";

    #[test]
    fn a_scan_goes_on_until_its_cursor_is_0() {
        assert_eq!(
            sent(&scan(0), &[TO_17, TO_17, TO_0, TO_0, TO_17]),
            ["begins", WITH_17, WITH_17, "begins", "begins"]
        );
    }

    #[test]
    fn a_scan_begins_anew_after_so_many_cursors() {
        assert_eq!(
            sent(&scan(2), &[TO_17; 5]),
            ["begins", WITH_17, WITH_17, "begins", WITH_17]
        );
    }

    #[test]
    fn errors_and_other_replies_begin_a_new_scan() {
        for other in [
            "-ERR no\r\n",
            "+OK\r\n",
            "*0\r\n",
            "*1\r\n:5\r\n",
            "*1\r\n$1\r\nx\r\n",
        ] {
            assert_eq!(
                sent(&scan(0), &[TO_17, other, TO_0])[2],
                "begins",
                "{other}"
            );
        }
    }
}
