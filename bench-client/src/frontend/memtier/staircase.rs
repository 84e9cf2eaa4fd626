//! The plan of a staircase, as it is shown before the load begins, and its clients by second.
//!
//! ```text
//! [RUN #1] Client staircase pattern (per thread x 1 threads):
//!   Step 0:   0s -   1s :   2 clients  ███████
//!   Step 1:   1s -   2s :   4 clients  ██████████████
//!   Step 2:   2s -   4s :   6 clients  ████████████████████  (max)
//!   Total max connections: 6 x 1 = 6
//!   Minimum time to reach max: 2s (test_time: 4s OK)
//! ```

use std::fmt::Write as _;

use super::config::Staircase;
use super::model::ActiveClients;

/// A staircase with what surrounds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaircasePlan {
    /// Its steps.
    pub staircase: Staircase,
    /// `--clients`: the most clients of each thread.
    pub clients: u32,
    /// Threads.
    pub threads: u32,
    /// `--test-time` in seconds.
    pub test_time: u64,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedStep {
    /// Second at which it begins.
    pub begin: u64,
    /// Second at which the next begins, or the test ends.
    pub end: u64,
    /// Clients of each thread.
    pub clients: u32,
}

impl StaircasePlan {
    /// The steps within the test time; the last goes on to its end.
    #[must_use]
    pub fn steps(&self) -> Vec<PlannedStep> {
        let Staircase {
            start,
            step,
            duration,
        } = self.staircase;
        let mut steps = Vec::new();
        let (mut begin, mut clients) = (0, start.min(self.clients));
        loop {
            let next = begin + duration;
            let last = clients >= self.clients || step == 0 || duration == 0;
            let end = if last { self.test_time } else { next };
            steps.push(PlannedStep {
                begin,
                end: end.min(self.test_time),
                clients,
            });
            if last || next >= self.test_time {
                return steps;
            }
            begin = next;
            clients = clients.saturating_add(step).min(self.clients);
        }
    }

    /// Clients that are planned for a second of the test.
    #[must_use]
    pub fn active(&self, second: u64) -> ActiveClients {
        let steps = self.steps();
        let step = steps.iter().rev().find(|step| step.begin <= second);
        let clients = step.map_or(0, |step| step.clients);
        ActiveClients {
            per_thread: u64::from(clients),
            total: u64::from(clients) * u64::from(self.threads),
        }
    }

    /// Seconds until all clients are there.
    #[must_use]
    pub fn time_to_most(&self) -> u64 {
        let Staircase {
            start,
            step,
            duration,
        } = self.staircase;
        let missing = self.clients.saturating_sub(start);
        match step {
            0 => 0,
            step => u64::from(missing.div_ceil(step)) * duration,
        }
    }

    /// The plan of run `run`.
    #[must_use]
    pub fn render(&self, run: u32) -> String {
        let (clients, threads) = (self.clients, self.threads);
        let mut text =
            format!("[RUN #{run}] Client staircase pattern (per thread x {threads} threads):\n");
        for (number, step) in self.steps().iter().enumerate() {
            let _ = write!(
                text,
                "  Step {number}: {:3}s - {:3}s : {:3} clients  {}",
                step.begin,
                step.end,
                step.clients,
                "█".repeat(bar(step.clients, clients))
            );
            text.push_str(if step.clients >= clients {
                "  (max)\n"
            } else {
                "\n"
            });
        }
        let all = u64::from(clients) * u64::from(threads);
        let _ = writeln!(
            text,
            "  Total max connections: {clients} x {threads} = {all}"
        );
        let (needed, given) = (self.time_to_most(), self.test_time);
        let verdict = if needed <= given { "OK" } else { "too short" };
        let _ = writeln!(
            text,
            "  Minimum time to reach max: {needed}s (test_time: {given}s {verdict})\n"
        );
        text
    }
}

/// Blocks of the bar of a step, in proportion to the most clients, rounded up.
fn bar(clients: u32, most: u32) -> usize {
    let blocks = (u64::from(clients) * BAR).div_ceil(u64::from(most.max(1)));
    usize::try_from(blocks.min(BAR)).unwrap_or(0)
}

const BAR: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(start: u32, step: u32, duration: u64, clients: u32, test_time: u64) -> StaircasePlan {
        StaircasePlan {
            staircase: Staircase {
                start,
                step,
                duration,
            },
            clients,
            threads: 2,
            test_time,
        }
    }

    fn clients(plan: &StaircasePlan) -> Vec<(u64, u64, u32)> {
        let steps = plan.steps();
        let steps = steps.iter();
        steps
            .map(|step| (step.begin, step.end, step.clients))
            .collect()
    }

    #[test]
    fn steps_end_with_the_most_clients_or_the_test() {
        assert_eq!(
            clients(&plan(2, 3, 5, 6, 30)),
            [(0, 5, 2), (5, 10, 5), (10, 30, 6)]
        );
        assert_eq!(clients(&plan(1, 1, 4, 10, 6)), [(0, 4, 1), (4, 6, 2)]);
        assert_eq!(clients(&plan(1, 1, 3, 10, 6)), [(0, 3, 1), (3, 6, 2)]);
    }

    #[test]
    fn clients_of_a_second_are_those_of_its_step() {
        let plan = plan(2, 3, 5, 6, 30);
        let totals = [0, 4, 5, 9, 10, 29].map(|second| plan.active(second).total);
        assert_eq!(totals, [4, 4, 10, 10, 12, 12]);
        assert_eq!(plan.time_to_most(), 10);
    }

    #[test]
    fn a_test_that_ends_before_the_top_says_so() {
        let text = plan(1, 1, 4, 10, 6).render(3);
        assert!(text.starts_with("[RUN #3] Client staircase pattern (per thread x 2 threads):\n"));
        assert!(
            text.contains("reach max: 36s (test_time: 6s too short)"),
            "{text}"
        );
    }
}
