//! Tables of plain text: names to the left, numbers to the right, two blanks between columns.

use std::fmt;

/// Rows of cells; the first row is the heading.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    /// Columns from the left that hold names.
    names: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with this heading, whose first `names` columns hold names.
    pub(super) fn new(names: usize, heading: &[&str]) -> Self {
        let heading = heading.iter().map(|&cell| cell.to_owned()).collect();
        Self {
            names,
            rows: vec![heading],
        }
    }

    /// Appends a row.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (place, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let width = *width;
                if place > 0 {
                    line.push_str("  ");
                }
                if place < self.names {
                    line.push_str(&format!("{cell:<width$}"));
                } else {
                    line.push_str(&format!("{cell:>width$}"));
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_left_and_numbers_right() {
        let mut table = Table::new(1, &["class", "n"]);
        table.row(vec!["GET".into(), "100".into()]);
        table.row(vec!["longer".into(), "5".into()]);
        assert_eq!(table.to_string(), "class     n\nGET     100\nlonger    5\n");
    }
}
