//! Turning what the engine reports into rows.
//!
//! The engine knows classes of operations; a [`RowPlan`] says which row each of them belongs to,
//! for example two `--command` lines with the same first word to one row. The recorder watches a
//! run second by second and is finished with the engine's summary.

use std::time::Duration;

use kvlab_timing::{Stamp, WallClock};

use super::model::{Glance, Row, RowKind, Run, Second};
use super::staircase::StaircasePlan;
use crate::record::{ClassTally, Interval, Phase, Summary, Tally};
use crate::report::sentence;

/// The rows of a run, and the row of each class of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPlan {
    rows: Vec<RowKind>,
    /// By class: place in `rows`.
    class_rows: Vec<usize>,
}

impl RowPlan {
    /// `Sets`, `Gets` and `Waits`, whether or not there is a class for each. `classes` says for
    /// each class of the engine which of them it is.
    #[must_use]
    pub fn standard(classes: &[RowKind]) -> Self {
        let rows = vec![RowKind::Set, RowKind::Get, RowKind::Wait];
        Self::grouped(rows, classes)
    }

    /// One row for each kind of command, in the order of their first appearance.
    #[must_use]
    pub fn by_command(classes: &[RowKind]) -> Self {
        Self::grouped(Vec::new(), classes)
    }

    /// One row for each class, also where two have the same name.
    #[must_use]
    pub fn by_line(classes: &[RowKind]) -> Self {
        Self {
            rows: classes.to_vec(),
            class_rows: (0..classes.len()).collect(),
        }
    }

    fn grouped(mut rows: Vec<RowKind>, classes: &[RowKind]) -> Self {
        let mut class_rows = Vec::with_capacity(classes.len());
        for kind in classes {
            let known = rows.iter().position(|row| row == kind);
            class_rows.push(known.unwrap_or_else(|| {
                rows.push(kind.clone());
                rows.len() - 1
            }));
        }
        Self { rows, class_rows }
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &[RowKind] {
        &self.rows
    }

    /// The place of the row of a class.
    #[must_use]
    pub fn row_of(&self, class: usize) -> Option<usize> {
        self.class_rows.get(class).copied()
    }

    /// The rows of a tally; the seconds are left empty.
    #[must_use]
    pub fn rows_of(&self, tally: &Tally) -> Vec<Row> {
        let mut rows: Vec<Row> = self.rows.iter().cloned().map(Row::new).collect();
        for (place, class) in self.class_rows.iter().zip(&tally.classes) {
            if let Some(row) = rows.get_mut(*place) {
                add_class(row, class);
            }
        }
        rows
    }
}

/// Watches one run.
#[derive(Debug)]
pub struct Recorder {
    number: u32,
    plan: RowPlan,
    percentiles: Vec<f64>,
    wall: WallClock,
    /// Begin of the first measured interval.
    origin: Option<Stamp>,
    /// End of the last interval.
    end: Option<Stamp>,
    /// Everything measured, for a run that ends without a summary.
    total: Tally,
    /// The running second.
    second: Tally,
    /// Number of the running second.
    running: usize,
    /// By row, and in the end all of them together.
    seconds: Vec<Vec<Second>>,
    stairs: Option<StaircasePlan>,
}

impl Recorder {
    /// For run `number` (from 1). `percentiles` are those of `--print-percentiles`; `wall` dates
    /// the run.
    #[must_use]
    pub fn new(number: u32, plan: RowPlan, percentiles: &[f64], wall: WallClock) -> Self {
        let classes = plan.class_rows.len();
        Self {
            number,
            percentiles: percentiles.to_vec(),
            wall,
            origin: None,
            end: None,
            total: Tally::new(classes),
            second: Tally::new(classes),
            running: 0,
            seconds: vec![Vec::new(); plan.rows.len() + 1],
            stairs: None,
            plan,
        }
    }

    /// The same for clients that come step by step.
    #[must_use]
    pub fn with_staircase(self, stairs: Option<StaircasePlan>) -> Self {
        Self { stairs, ..self }
    }

    /// Takes an interval of the run, of a second or a fraction of one.
    pub fn interval(&mut self, interval: &Interval) {
        if interval.phase == Phase::Warmup {
            return;
        }
        let origin = *self.origin.get_or_insert(interval.begin);
        let second = interval.begin.saturating_since(origin) / NANOS_PER_SECOND;
        let second = usize::try_from(second).unwrap_or(usize::MAX);
        while self.running < second.min(MAX_SECONDS) {
            self.close_second();
        }
        self.second.merge(&interval.tally);
        self.total.merge(&interval.tally);
        self.end = Some(interval.end);
    }

    /// The run, from the engine's summary of it.
    #[must_use]
    pub fn finish(mut self, summary: &Summary) -> Run {
        let mut run = Run::new(self.number);
        run.started_unix_ns = self
            .wall
            .unix_nanos(summary.first.unwrap_or(summary.started));
        run.duration = summary.elapsed();
        run.rows = self.plan.rows_of(&summary.tally);
        run.interrupted = summary.interrupted;
        run.notices = summary.notices.iter().map(sentence).collect();
        // A server that turns connections away says why; the kind of the error does not.
        for (words, count) in &summary.tally.connects.texts {
            let notice = format!("connections were turned away {count} times: {words}");
            run.notices.push(notice);
        }
        run.established = summary.tally.connects.established;
        run.connection_errors = summary.tally.connects.failed + summary.tally.connects.lost;
        run.certificate.clone_from(&summary.certificate);
        self.hand_over(&mut run);
        run
    }

    /// The run that the engine could not end, with what was measured until then.
    #[must_use]
    pub fn fail(mut self, failure: String) -> Run {
        let mut run = Run::new(self.number);
        run.failure = Some(failure);
        if let (Some(origin), Some(end)) = (self.origin, self.end) {
            run.started_unix_ns = self.wall.unix_nanos(origin);
            run.duration = Duration::from_nanos(end.saturating_since(origin));
        }
        run.rows = self.plan.rows_of(&self.total);
        run.established = self.total.connects.established;
        run.connection_errors = self.total.connects.failed + self.total.connects.lost;
        self.hand_over(&mut run);
        run
    }

    fn hand_over(&mut self, run: &mut Run) {
        if self.origin.is_some() {
            self.close_second();
        }
        // The last interval may be the empty rest after the last reply.
        while self
            .seconds
            .iter()
            .all(|row| row.last().is_some_and(is_empty))
        {
            for row in &mut self.seconds {
                row.pop();
            }
        }
        run.seconds = self.seconds.pop().unwrap_or_default();
        for (row, seconds) in run.rows.iter_mut().zip(self.seconds.drain(..)) {
            row.seconds = seconds;
        }
        if let Some(stairs) = &self.stairs {
            let seconds = (0..).take(run.seconds.len());
            run.active_clients = seconds.map(|second| stairs.active(second)).collect();
        }
    }

    fn close_second(&mut self) {
        let rows = self.plan.rows_of(&self.second);
        let mut all = Row::new(RowKind::Totals);
        for (row, seconds) in rows.iter().zip(&mut self.seconds) {
            seconds.push(second_of(row, &self.percentiles));
            all.merge(row);
        }
        if let Some(totals) = self.seconds.last_mut() {
            totals.push(second_of(&all, &self.percentiles));
        }
        self.second.clear();
        self.running += 1;
    }
}

fn is_empty(second: &Second) -> bool {
    *second == Second::default()
}

fn second_of(row: &Row, percentiles: &[f64]) -> Second {
    Second {
        outcomes: row.outcomes,
        bytes_in: row.bytes_in,
        bytes_out: row.bytes_out,
        service: Glance::of(&row.service, percentiles),
        response: Glance::of(&row.response, percentiles),
    }
}

fn add_class(row: &mut Row, class: &ClassTally) {
    for (kind, count) in &class.errors {
        *row.errors.entry(*kind).or_default() += count;
    }
    row.outcomes += class.outcomes;
    row.keys_found += class.keys_found;
    row.keys_missing += class.keys_missing;
    row.retries += class.retries;
    row.moved += class.moved;
    row.asked += class.asked;
    row.bytes_in += class.bytes_in;
    row.bytes_out += class.bytes_out;
    row.service.merge(&class.service);
    row.response.merge(&class.response);
    row.failed.merge(&class.failed);
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Seconds that are kept at most: four weeks. What comes later is added to the last.
const MAX_SECONDS: usize = 28 * 24 * 3600;

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
