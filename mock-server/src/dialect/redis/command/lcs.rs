//! LCS: the longest common subsequence of two strings, by the usual table of lengths.

use crate::dialect::Flow;
use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::fault::Fault;

/// A stretch that both strings share: `first` in one, `second` in the other, both inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Match {
    first: (usize, usize),
    second: (usize, usize),
}

impl Match {
    fn len(self) -> usize {
        self.first.1 + 1 - self.first.0
    }
}

pub(super) fn lcs(call: &mut Call<'_, '_>) -> Outcome {
    let view = call.view();
    let read = |position| {
        view.read(call.args.arg(position), |entry| match entry {
            Some(entry) => entry
                .value
                .text()
                .map(|text| text.to_vec())
                .map_err(|_| Fault::new("ERR The specified keys must contain string values")),
            None => Ok(Vec::new()),
        })
    };
    let (first, second) = (read(1)?, read(2)?);
    let (mut only_length, mut indexes, mut with_length) = (false, false, false);
    let mut shortest = 0;
    let mut position = 3;
    while position < call.args.len() {
        if call.is_word(position, "IDX") {
            indexes = true;
        } else if call.is_word(position, "LEN") {
            only_length = true;
        } else if call.is_word(position, "WITHMATCHLEN") {
            with_length = true;
        } else if call.is_word(position, "MINMATCHLEN") && position + 1 < call.args.len() {
            position += 1;
            shortest = usize::try_from(call.integer(position)?.max(0)).unwrap_or(usize::MAX);
        } else {
            return Err(Fault::SYNTAX);
        }
        position += 1;
    }
    if indexes && only_length {
        return Err(Fault::new(
            "ERR If you want both the length and indexes, please just use IDX.",
        ));
    }
    let lengths = Lengths::new(&first, &second, call.state().settings.live().max_bulk())?;
    let length = lengths.at(first.len(), second.len());
    if only_length {
        return call.number(i64::from(length));
    }
    let (common, matches) = lengths.walk(&first, &second);
    if !indexes {
        call.reply.bulk(&common);
        return Ok(Flow::Done);
    }
    let matches: Vec<_> = matches
        .into_iter()
        .filter(|found| found.len() >= shortest)
        .collect();
    call.reply.map(2);
    call.reply.bulk(b"matches");
    call.reply.array(matches.len());
    for found in matches {
        call.reply.array(2 + usize::from(with_length));
        for (from, to) in [found.first, found.second] {
            call.reply.array(2);
            call.count(from)?;
            call.count(to)?;
        }
        if with_length {
            call.count(found.len())?;
        }
    }
    call.reply.bulk(b"len");
    call.number(i64::from(length))
}

/// `at(i, j)` is the length of the longest common subsequence of the first `i` and the first `j`
/// bytes.
#[derive(Debug)]
struct Lengths {
    width: usize,
    cells: Vec<u32>,
}

impl Lengths {
    fn new(first: &[u8], second: &[u8], memory_max: u64) -> Result<Self, Fault> {
        let width = second.len() + 1;
        let cells = (first.len() + 1).checked_mul(width);
        let bytes = cells.and_then(|cells| cells.checked_mul(size_of::<u32>()));
        let (Some(cells), Some(_)) = (cells, bytes.filter(|bytes| *bytes as u64 <= memory_max))
        else {
            return Err(Fault::new(
                "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
            ));
        };
        let mut lengths = Self {
            width,
            cells: vec![0; cells],
        };
        for (i, a) in first.iter().enumerate() {
            for (j, b) in second.iter().enumerate() {
                let length = if a == b {
                    lengths.at(i, j) + 1
                } else {
                    lengths.at(i, j + 1).max(lengths.at(i + 1, j))
                };
                if let Some(cell) = lengths.cells.get_mut((i + 1) * width + j + 1) {
                    *cell = length;
                }
            }
        }
        Ok(lengths)
    }

    fn at(&self, i: usize, j: usize) -> u32 {
        self.cells.get(i * self.width + j).copied().unwrap_or(0)
    }

    /// Goes back through the table from its end: the subsequence itself, and the stretches it is
    /// made of, the last one first.
    fn walk(&self, first: &[u8], second: &[u8]) -> (Vec<u8>, Vec<Match>) {
        let (mut i, mut j) = (first.len(), second.len());
        let (mut common, mut matches) = (Vec::new(), Vec::<Match>::new());
        while i > 0 && j > 0 {
            let byte = first.get(i - 1).copied().unwrap_or_default();
            if second.get(j - 1) == Some(&byte) {
                common.push(byte);
                match matches.last_mut() {
                    Some(last) if last.first.0 == i && last.second.0 == j => {
                        last.first.0 -= 1;
                        last.second.0 -= 1;
                    }
                    _ => matches.push(Match {
                        first: (i - 1, i - 1),
                        second: (j - 1, j - 1),
                    }),
                }
                i -= 1;
                j -= 1;
            } else if self.at(i - 1, j) > self.at(i, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        common.reverse();
        (common, matches)
    }
}
