//! How late a reply is meant to be: latency rules and the laws they draw from, their changes over time, the queue before
//! them, freezes, and cuts of connections.

mod cut;
mod distribution;
mod freeze;
mod gauss;
mod law;
mod occasions;
mod pattern;
mod queue;
mod rules;
mod selector;
mod shape;
mod text;

pub use cut::{Cut, CutKind};
pub use distribution::Distribution;
pub use freeze::{Freeze, Freezes};
pub use law::{
    Empirical, Exponential, LawError, Lognormal, Mixture, Normal, Pareto, Replay, Uniform, Unit,
};
pub use occasions::Occasions;
pub use pattern::KeyPattern;
pub use queue::Queue;
pub(crate) use queue::{Passage, Station};
pub use rules::{LatencyRules, Rule, TooManyRules};
pub use selector::{Selector, What};
pub use shape::{Change, Course, Shape};
pub use text::{ParseError, Problem};
