//! The set-up of all threads together: how long it took, and how many connections were up meanwhile.

use std::time::Duration;

use kvlab_timing::Stamp;

use super::worker::Setup;
use crate::record::{ConnectKind, ConnectRow, CurvePoint, MAX_CURVE, SetupSummary};

/// Adds the set-ups of threads up.
#[derive(Debug, Default)]
pub(super) struct SetupOfAll {
    begun: Option<Stamp>,
    /// When the last thread was complete; `None` inside when one never was.
    all_up: Option<Option<Stamp>>,
}

impl SetupOfAll {
    pub(super) fn add(&mut self, setup: Setup) {
        self.begun = [self.begun, Some(setup.begun)].into_iter().flatten().min();
        self.all_up = Some(match self.all_up {
            None => setup.all_up,
            Some(before) => before.zip(setup.all_up).map(|(one, other)| one.max(other)),
        });
    }

    /// The summary; the load began at `load`.
    pub(super) fn finish(&self, rows: &[ConnectRow], load: Stamp) -> SetupSummary {
        let begun = self.begun.unwrap_or_default();
        let since = |stamp: Stamp| Duration::from_nanos(stamp.saturating_since(begun));
        SetupSummary {
            begun,
            all_up: self.all_up.flatten().map(since),
            curve: curve(rows, begun, load),
        }
    }
}

/// How many load connections were up and being made at even steps from `begun` to `end`.
fn curve(rows: &[ConnectRow], begun: Stamp, end: Stamp) -> Vec<CurvePoint> {
    // Changes of (connecting, up).
    let mut changes: Vec<(Stamp, i64, i64)> = Vec::new();
    for row in rows.iter().filter(|row| row.kind == ConnectKind::Load) {
        changes.push((row.begun, 1, 0));
        if let Some(up) = row.logged_in {
            changes.push((up, -1, 1));
        }
        if let Some(ended) = row.ended {
            let up = i64::from(row.logged_in.is_some());
            changes.push((ended, up - 1, -up));
        }
    }
    changes.retain(|(at, ..)| *at <= end);
    changes.sort_unstable_by_key(|(at, ..)| *at);
    let span = end.saturating_since(begun);
    let steps = (MAX_CURVE - 1) as u64;
    let (mut connecting, mut up) = (0, 0);
    let mut changes = changes.into_iter().peekable();
    let mut points: Vec<CurvePoint> = Vec::new();
    for step in 0..=steps {
        // Below the span, which is 64 bits wide.
        let ns =
            u64::try_from(u128::from(span) * u128::from(step) / u128::from(steps)).unwrap_or(0);
        let moment = begun.add_nanos(ns);
        while let Some((_, made, came)) = changes.next_if(|(at, ..)| *at <= moment) {
            connecting += made;
            up += came;
        }
        let point = CurvePoint {
            at: Duration::from_nanos(ns),
            up: up.unsigned_abs(),
            connecting: connecting.unsigned_abs(),
        };
        // A point that only repeats what the two before it said is left out.
        let same =
            |other: &CurvePoint| (other.up, other.connecting) == (point.up, point.connecting);
        let repeats = matches!(points.as_slice(), [.., a, b] if same(a) && same(b));
        if repeats {
            points.pop();
        }
        points.push(point);
    }
    points
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::record::Cause;

    fn row(begun: u64, up: Option<u64>, ended: u64) -> ConnectRow {
        ConnectRow {
            begun: Stamp::from_nanos(begun),
            wanted: Stamp::from_nanos(begun),
            logged_in: up.map(Stamp::from_nanos),
            ended: Some(Stamp::from_nanos(ended)),
            cause: Some(Cause::End),
            ..ConnectRow::begin(
                ConnectKind::Load,
                SocketAddr::from(([127, 0, 0, 1], 1)).into(),
            )
        }
    }

    #[test]
    fn the_curve_counts_what_is_up_and_what_is_being_made() {
        let rows = [
            row(1_000, Some(1_100), 9_000),
            row(1_000, Some(3_390), 9_000),
            row(1_500, None, 2_000),
        ];
        let points = curve(&rows, Stamp::from_nanos(1_000), Stamp::from_nanos(3_390));
        let at = |ns: u64| {
            let past = points
                .iter()
                .rev()
                .find(|p| p.at <= Duration::from_nanos(ns));
            past.map(|point| (point.connecting, point.up)).unwrap()
        };
        // Steps of 10 ns.
        assert_eq!(at(0), (2, 0));
        assert_eq!(at(100), (1, 1));
        assert_eq!(at(500), (2, 1));
        assert_eq!(at(1_000), (1, 1));
        assert_eq!(at(2_390), (0, 2));
        assert!(
            points.len() < 12,
            "repeated points are left out: {points:?}"
        );
    }

    #[test]
    fn all_are_up_only_when_every_thread_is_complete() {
        let setup = |up: Option<u64>| Setup {
            begun: Stamp::from_nanos(100),
            all_up: up.map(Stamp::from_nanos),
        };
        let mut all = SetupOfAll::default();
        all.add(setup(Some(150)));
        all.add(setup(Some(300)));
        let end = Stamp::from_nanos(400);
        assert_eq!(all.finish(&[], end).all_up, Some(Duration::from_nanos(200)));
        all.add(setup(None));
        assert_eq!(all.finish(&[], end).all_up, None);
    }
}
