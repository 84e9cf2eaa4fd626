//! How late a reply is meant to be: latency rules and the laws they draw from, freezes, and cuts of
//! connections.

mod cut;
mod distribution;
mod freeze;
mod gauss;
mod law;
mod occasions;
mod pattern;
mod rules;
mod selector;
mod text;

pub use cut::{Cut, CutKind};
pub use distribution::Distribution;
pub use freeze::{Freeze, Freezes};
pub use law::{Exponential, LawError, Lognormal, Mixture, Normal, Pareto, Uniform};
pub use occasions::Occasions;
pub use pattern::KeyPattern;
pub use rules::{LatencyRules, Rule, TooManyRules};
pub use selector::{Selector, What};
pub use text::{ParseError, Problem};
