//! The client as a part that can be exchanged.
//!
//! The lab judges what a client hands over: its summary and its rows. To show that the judgement
//! would notice a client that measures wrongly, tests put another one in its place: the project's
//! own whose result is bent before it is handed over ([`Bent`]).

use kvlab_bench_client::engine::Silent;
use kvlab_bench_client::{Control, RunError, RunResult, Settings};

/// A load generator that the lab runs on sockets.
pub trait Client {
    /// Runs the load until its end or until `control` stops it.
    ///
    /// # Errors
    /// When there is no result.
    fn run(&self, settings: &Settings, control: &Control) -> Result<RunResult, RunError>;

    /// What it makes of a result that its workers had under virtual time, where the lab itself moves
    /// the clock.
    fn hand_over(&self, result: RunResult) -> RunResult {
        result
    }
}

/// The project's own load generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own;

impl Client for Own {
    fn run(&self, settings: &Settings, control: &Control) -> Result<RunResult, RunError> {
        kvlab_bench_client::run(settings, control, &mut Silent)
    }
}

/// The project's own load generator with a bias planted into what it hands over, to test those who
/// judge it.
#[derive(Clone, Copy, Debug)]
pub struct Bent<F>(pub F);

impl<F: Fn(RunResult) -> RunResult> Client for Bent<F> {
    fn run(&self, settings: &Settings, control: &Control) -> Result<RunResult, RunError> {
        Own.run(settings, control).map(&self.0)
    }

    fn hand_over(&self, result: RunResult) -> RunResult {
        (self.0)(result)
    }
}
