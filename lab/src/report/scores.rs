//! The scores of a client as a compact table: one line per figure, each value with its limit.
//!
//! ```text
//! scores: value (limit), ! beyond it, ~ not judged
//!   ServErr    p50 +0.31 % (5.00 %)     p90 -0.10 % (5.00 %)     p99 +2.11 % (29.8 %)
//!   Omission   0 % (0 %)
//! ```

use std::fmt::{self, Write};

use super::text::time;
use crate::check::score::{Score, ScoreName, Unit};
use crate::verdict::Verdict;

/// Writes the table.
///
/// # Errors
/// When writing fails.
pub(super) fn write(scores: &[Score], out: &mut String) -> fmt::Result {
    if scores.is_empty() {
        return Ok(());
    }
    writeln!(out, "scores: value (limit), ! beyond it, ~ not judged")?;
    let mut rest = scores;
    while let Some(first) = rest.first() {
        let alike = |score: &&Score| score.name == first.name;
        let count = rest.iter().take_while(alike).count();
        let (row, others) = rest.split_at(count);
        write_row(first.name, row, out)?;
        rest = others;
    }
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    let figures = [ScoreName::ServErr, ScoreName::RespErr, ScoreName::NetErr];
    for score in scores {
        // The tables of the figures say it already.
        let Some(reason) = score.reason.as_deref() else {
            continue;
        };
        if figures.contains(&score.name) {
            continue;
        }
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(score.to_string()),
            None => reasons.push((reason, vec![score.to_string()])),
        }
    }
    for (reason, names) in reasons {
        writeln!(out, "  ~ {}: {reason}", names.join(", "))?;
    }
    Ok(())
}

fn write_row(name: ScoreName, row: &[Score], out: &mut String) -> fmt::Result {
    let mut name = format!("{name:?}");
    for cells in row.chunks(PER_LINE) {
        let cells: Vec<String> = cells
            .iter()
            .map(|score| format!("{:<width$}", cell(score), width = CELL))
            .collect();
        let line = format!("  {name:<10} {}", cells.join(" "));
        writeln!(out, "{}", line.trim_end())?;
        name.clear();
    }
    Ok(())
}

/// `p99 +2.11 % (29.8 %)`.
fn cell(score: &Score) -> String {
    let label = match (score.quantile, score.of) {
        (Some(quantile), _) => format!("{quantile} "),
        (None, Some(aspect)) => format!("{aspect} "),
        (None, None) => String::new(),
    };
    let Some(value) = score.value else {
        return format!("{label}n/a");
    };
    let mut text = format!("{label}{}", amount(value, score.unit, score.has_sign()));
    if let Some(limit) = score.limit {
        let least = if score.limit_is_least() { ">= " } else { "" };
        text += &format!(" ({least}{})", amount(limit, score.unit, false));
    }
    text += match score.verdict {
        Some(Verdict::Pass) => "",
        Some(Verdict::Fail | Verdict::Void) => " !",
        None => " ~",
    };
    text
}

/// A value with its unit: shares in per cent with three digits.
pub(super) fn amount(value: f64, unit: Unit, signed: bool) -> String {
    let sign = match value {
        value if value < 0.0 => "-",
        value if value > 0.0 && signed => "+",
        _ => "",
    };
    let size = value.abs();
    let text = match unit {
        Unit::Share => format!("{} %", digits(size * 100.0)),
        Unit::Nanoseconds => time(whole(size)),
        Unit::Number => digits(size),
    };
    format!("{sign}{text}")
}

fn digits(size: f64) -> String {
    match size {
        0.0 => "0".to_owned(),
        size if size < 9.995 => format!("{size:.2}"),
        size if size < 99.95 => format!("{size:.1}"),
        size => format!("{size:.0}"),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; rounded, and the cast saturates"
)]
fn whole(ns: f64) -> u64 {
    ns.round() as u64
}

const PER_LINE: usize = 4;
const CELL: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::score::Aspect;
    use crate::truth::Quantile;

    #[test]
    fn a_row_has_each_value_with_its_limit_and_a_mark() {
        let error = |q, value| {
            Score::new(ScoreName::RespErr, Unit::Share)
                .at(q)
                .value(value)
                .within(0.03)
        };
        let scores = [
            error(Quantile::P50, 0.0),
            error(Quantile::P99, -0.921),
            Score::new(ScoreName::RespErr, Unit::Share)
                .at(Quantile::P99_9)
                .because("needs 100000 samples, has 10"),
            error(Quantile::P90, 0.012_34),
            Score::new(ScoreName::RespErr, Unit::Share)
                .of(Aspect::Mean)
                .value(0.15),
            Score::new(ScoreName::LagP99, Unit::Nanoseconds)
                .value(131_250.0)
                .because("flagged"),
            Score::new(ScoreName::Clamp, Unit::Nanoseconds)
                .value(3.6e12)
                .within(3.6e12),
        ];
        let mut out = String::new();
        write(&scores, &mut out).unwrap();
        let lines: Vec<&str> = out.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "  RespErr    p50 0 % (3.00 %)         p99 -92.1 % (3.00 %) !   p99.9 n/a                p90 +1.23 % (3.00 %)",
                "             mean +15.0 % ~",
                "  LagP99     0.131 ms ~",
                "  Clamp      3600000.000 ms (>= 3600000.000 ms)",
                "  ~ LagP99: flagged",
            ]
        );
    }
}
