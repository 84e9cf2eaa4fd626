//! The file of `--data-import`: a CSV dump of memcached.
//!
//! ```text
//! dumpflags, time, exptime, nbytes, nsuffix, it_flags, clsid, nkey, key, data
//! 0, 0, 0, 12, 0, 0, 0, 4, key1, xxxxxxxxxx
//! 0, 0, 60, 7, 0, 0, 0, 4, key2, "a"",b"
//! ```
//!
//! `nbytes` counts the data and the two bytes of its line end; `nkey` counts the key. Columns are
//! parted by a comma and a blank; key and data may stand in double quotes, doubled inside, and may
//! then hold commas and line ends.

use std::fs;
use std::io;
use std::path::Path;

/// One record of the dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Key.
    pub key: Vec<u8>,
    /// Value.
    pub data: Vec<u8>,
    /// Seconds to live; 0 is for ever.
    pub expiry: u32,
}

/// Why a dump cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("--data-import: cannot read {path}: {error}")]
    File {
        /// Its path.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// It holds no record.
    #[error("--data-import: no record in {path}")]
    Empty {
        /// Its path.
        path: String,
    },
    /// A record that cannot be read.
    #[error("--data-import: {path}: record {record}: expected {expected}")]
    Record {
        /// The file's path.
        path: String,
        /// Number of the record, from 1.
        record: usize,
        /// What should be there.
        expected: &'static str,
    },
}

/// Reads a dump. The items are never empty.
///
/// # Errors
/// A file that cannot be read, one without a record, or a record that breaks the form.
pub fn read(path: &Path) -> Result<Vec<Item>, ImportError> {
    let shown = || path.display().to_string();
    let bytes = fs::read(path).map_err(|error| ImportError::File {
        path: shown(),
        error,
    })?;
    let items = items(&bytes).map_err(|(record, expected)| ImportError::Record {
        path: shown(),
        record,
        expected,
    })?;
    if items.is_empty() {
        return Err(ImportError::Empty { path: shown() });
    }
    Ok(items)
}

/// The items of a dump, or the number of the record that is broken and what should be there.
fn items(bytes: &[u8]) -> Result<Vec<Item>, (usize, &'static str)> {
    let mut rest = Rest(bytes);
    // The first line names the columns.
    rest.line();
    let mut items = Vec::new();
    while !rest.0.iter().all(u8::is_ascii_whitespace) {
        let record = items.len() + 1;
        let item = rest.item().map_err(|expected| (record, expected))?;
        items.push(item);
    }
    Ok(items)
}

/// What of the file is not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn item(&mut self) -> Result<Item, &'static str> {
        let mut numbers = [0_u32; 8];
        for number in &mut numbers {
            *number = self.number().ok_or("eight numbers before the key")?;
        }
        let [_, _, expiry, data_len, _, _, _, key_len] = numbers;
        let key = self.text().ok_or("a key that ends with its quote")?;
        if !self.comma() {
            return Err("a comma after the key");
        }
        let data = self.text().ok_or("data that end with their quote")?;
        if !self
            .line()
            .is_some_and(|left| left.iter().all(u8::is_ascii_whitespace))
        {
            return Err("the end of the line after the data");
        }
        if !is_len(&key, key_len, 0) {
            return Err("a key as long as nkey says");
        }
        if !is_len(&data, data_len, LINE_END) {
            return Err("data as long as nbytes says, two bytes of line end included");
        }
        Ok(Item { key, data, expiry })
    }

    /// A number and the comma behind it.
    fn number(&mut self) -> Option<u32> {
        self.blanks();
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit());
        let (number, rest) = self.0.split_at_checked(digits.count())?;
        self.0 = rest;
        let number = std::str::from_utf8(number).ok()?.parse().ok()?;
        self.comma().then_some(number)
    }

    /// A text with or without quotes; a text without them ends at a comma or the end of the line.
    fn text(&mut self) -> Option<Vec<u8>> {
        self.blanks();
        let Some(mut inside) = self.0.strip_prefix(b"\"") else {
            let ends = |byte: &&u8| !matches!(byte, b',' | b'\r' | b'\n');
            let (text, rest) = self
                .0
                .split_at_checked(self.0.iter().take_while(ends).count())?;
            self.0 = rest;
            return Some(text.to_vec());
        };
        let mut text = Vec::new();
        loop {
            let quote = inside.iter().position(|byte| *byte == b'"')?;
            text.extend_from_slice(inside.get(..quote)?);
            inside = inside.get(quote + 1..)?;
            match inside.strip_prefix(b"\"") {
                Some(rest) => {
                    text.push(b'"');
                    inside = rest;
                }
                None => {
                    self.0 = inside;
                    return Some(text);
                }
            }
        }
    }

    fn comma(&mut self) -> bool {
        match self.0.strip_prefix(b",") {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn blanks(&mut self) {
        while let Some(rest) = self.0.strip_prefix(b" ") {
            self.0 = rest;
        }
    }

    /// The rest of the line.
    fn line(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == b'\n');
        let line = self.0.get(..end.unwrap_or(self.0.len()))?;
        self.0 = end
            .and_then(|end| self.0.get(end + 1..))
            .unwrap_or_default();
        Some(line)
    }
}

fn is_len(text: &[u8], stated: u32, extra: usize) -> bool {
    usize::try_from(stated).is_ok_and(|stated| stated == text.len() + extra)
}

/// Bytes of the line end that `nbytes` counts.
const LINE_END: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "dumpflags, time, exptime, nbytes, nsuffix, it_flags, clsid, nkey, key, data\n";

    fn parsed(lines: &str) -> Result<Vec<Item>, (usize, &'static str)> {
        items(format!("{HEAD}{lines}").as_bytes())
    }

    fn item(key: &str, data: &str, expiry: u32) -> Item {
        Item {
            key: key.into(),
            data: data.into(),
            expiry,
        }
    }

    #[test]
    fn records_are_read_with_and_without_quotes() {
        let lines = "0, 0, 0, 12, 0, 0, 0, 4, key1, xxxxxxxxxx\n\
                     0, 5, 60, 7, 0, 0, 0, 4, \"key2\", \"a\"\",b\"\r\n\
                     0, 0, 0, 5, 0, 0, 0, 3, \"k,3\", \"x\ny\"\n\
                     0, 0, 0, 2, 0, 0, 0, 2, k4, \n";
        let expected = vec![
            item("key1", "xxxxxxxxxx", 0),
            item("key2", "a\",b", 60),
            item("k,3", "x\ny", 0),
            item("k4", "", 0),
        ];
        // "a",b has four bytes: nbytes is 6, not 7.
        assert!(parsed(lines).is_err());
        assert_eq!(parsed(&lines.replace("60, 7", "60, 6")), Ok(expected));
    }

    #[test]
    fn broken_records_are_named_by_their_number() {
        let good = "0, 0, 0, 3, 0, 0, 0, 1, k, x\n";
        for (line, part) in [
            ("0, 0, 0\n", "eight numbers"),
            ("0, 0, 0, 3, 0, 0, 0, -1, k, x\n", "eight numbers"),
            ("0, 0, 0, 3, 0, 0, 0, 1, k\n", "comma"),
            ("0, 0, 0, 3, 0, 0, 0, 2, k, x\n", "nkey"),
            ("0, 0, 0, 1, 0, 0, 0, 1, k, x\n", "nbytes"),
            ("0, 0, 0, 3, 0, 0, 0, 1, k, \"x\n", "quote"),
            ("0, 0, 0, 3, 0, 0, 0, 1, k, x, y\n", "end of the line"),
        ] {
            let (record, expected) = parsed(&format!("{good}{line}")).unwrap_err();
            assert_eq!(record, 2, "{line}");
            assert!(expected.contains(part), "{line}: {expected}");
        }
    }

    #[test]
    fn an_empty_dump_is_an_error() {
        let path = std::env::temp_dir().join(format!("kvlab-import-{}", std::process::id()));
        fs::write(&path, HEAD).unwrap();
        assert!(matches!(read(&path), Err(ImportError::Empty { .. })));
        fs::write(&path, format!("{HEAD}0, 0, 9, 3, 0, 0, 0, 1, k, x\n")).unwrap();
        assert_eq!(read(&path).unwrap(), [item("k", "x", 9)]);
        fs::remove_file(&path).unwrap();
        assert!(matches!(read(&path), Err(ImportError::File { .. })));
    }
}
