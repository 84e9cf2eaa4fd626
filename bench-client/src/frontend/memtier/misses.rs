//! `--miss-rate-threshold`: a warning for each command of one's own that found nothing too often.

use super::model::{Run, float};

/// The warnings after a run, for the threshold in percent.
#[must_use]
pub fn warnings(run: &Run, threshold: f64) -> Vec<String> {
    let commands = run.rows.iter().filter(|row| row.kind.is_command());
    commands
        .filter_map(|row| {
            let (misses, all) = (row.outcomes.misses, row.good());
            let share = float(misses) / float(all) * 100.0;
            (all > 0 && share > threshold).then(|| {
                format!(
                    "warning: {} found nothing in {misses} of {all} requests: {share:.2} %, more \
                     than --miss-rate-threshold {threshold}",
                    row.kind.name()
                )
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::model::{Row, RowKind};
    use super::*;

    fn run(kind: RowKind, hits: u64, misses: u64) -> Run {
        let mut run = Run::new(1);
        let mut row = Row::new(kind);
        (row.outcomes.hits, row.outcomes.misses) = (hits, misses);
        run.rows.push(row);
        run
    }

    #[test]
    fn only_commands_above_the_threshold_are_warned_of() {
        let command = || RowKind::Command("HGET".to_owned());
        let warned =
            |kind, hits, misses, threshold| warnings(&run(kind, hits, misses), threshold).len();
        // 1 of 100 is 1 %, which is not more than that.
        assert_eq!(warned(command(), 99, 1, 1.0), 0);
        assert_eq!(warned(command(), 98, 2, 1.0), 1);
        assert_eq!(warned(command(), 999, 1, 0.0), 1);
        assert_eq!(warned(command(), 1_000, 0, 0.0), 0);
        assert_eq!(warned(command(), 0, 0, 0.0), 0);
        assert_eq!(warned(RowKind::Get, 0, 9, 1.0), 0);
        let text = warnings(&run(command(), 1, 2), 0.5);
        assert_eq!(
            text,
            [
                "warning: HGET found nothing in 2 of 3 requests: 66.67 %, more than \
              --miss-rate-threshold 0.5"
            ]
        );
    }
}
