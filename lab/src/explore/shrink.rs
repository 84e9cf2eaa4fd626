//! Making a scenario that fails as small as it can be while it still fails in the same way.
//!
//! Delta debugging over a [`Plan`]: of all plans that are a step plainer, the first that still fails
//! is taken, and so on until none does. What fails otherwise, or is no longer legal, is no step.

use kvlab_bench_client::Control;

use super::plan::Plan;
use super::trial::{Broken, Depth, Outcome, trial};
use crate::runner::client::Client;

/// A scenario that fails, made small.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The scenario.
    pub plan: Plan,
    /// How it fails.
    pub broken: Broken,
    /// Scenarios that were tried for it.
    pub tried: u32,
}

/// Shrinks `plan`, which failed with this client by `broken`. Ends early when `control` stops it.
#[must_use]
pub fn shrink(client: &dyn Client, plan: Plan, broken: Broken, control: &Control) -> Shrunk {
    let mut shrunk = Shrunk {
        plan,
        broken,
        tried: 0,
    };
    // What shows only when a scenario is run again has to be run again here.
    let depth = match shrunk.broken.what {
        "repeat" | "workers" => Depth::Again,
        _ => Depth::Once,
    };
    let attempt = |plan: &Plan| trial(client, "shrunk", &plan.to_string(), depth, control);
    shrink_by(&mut shrunk, &attempt);
    shrunk
}

fn shrink_by(shrunk: &mut Shrunk, attempt: &dyn Fn(&Plan) -> Outcome) {
    'steps: loop {
        for plan in shrunk.plan.plainer() {
            if shrunk.tried == MOST_TRIED {
                return;
            }
            shrunk.tried += 1;
            match attempt(&plan) {
                Outcome::Broken(broken) if broken.what == shrunk.broken.what => {
                    (shrunk.plan, shrunk.broken) = (plan, broken);
                    continue 'steps;
                }
                Outcome::Stopped => return,
                _ => {}
            }
        }
        return;
    }
}

/// Bound of the scenarios that are tried to make one smaller.
pub const MOST_TRIED: u32 = 5_000;

#[cfg(test)]
mod tests {
    use super::super::draw;
    use super::*;

    /// Fails whenever a text has all of `parts`.
    fn fails_with(parts: &'static [&'static str]) -> impl Fn(&Plan) -> Outcome {
        move |plan| {
            let text = plan.to_string();
            if parts.iter().all(|part| text.contains(part)) {
                Outcome::Broken(Broken {
                    what: "planted",
                    text,
                    part: String::new(),
                })
            } else {
                Outcome::Exact(super::super::trial::Tally::default())
            }
        }
    }

    #[test]
    fn a_failure_shrinks_to_what_it_needs() {
        let parts = &["pipeline-mode = 'batch'", "freeze = "];
        let attempt = fails_with(parts);
        let found = (0..500)
            .map(|place| draw::scenario(3, place))
            .find_map(|plan| match attempt(&plan) {
                Outcome::Broken(broken) => Some((plan, broken)),
                _ => None,
            });
        let (plan, broken) = found.unwrap();
        let mut shrunk = Shrunk {
            plan,
            broken,
            tried: 0,
        };
        let before = shrunk.plan.keys();
        shrink_by(&mut shrunk, &attempt);
        let text = shrunk.plan.to_string();
        // What is needed by every scenario stays, and the two keys that make it fail.
        assert!(
            shrunk.plan.keys() <= 8 && shrunk.plan.keys() < before,
            "{text}"
        );
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        assert!(text.contains("requests = 1\n"), "{text}");
        assert!(shrunk.tried < MOST_TRIED, "{}", shrunk.tried);
    }
}
