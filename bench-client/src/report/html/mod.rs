//! One self-contained HTML page: curves, tables, and the settings and machine of the run.
//!
//! * [`page`]: the page around it all, tables, badges;
//! * [`chart`]: curves with axes, as inline SVG;
//! * [`axis`], [`tail`]: where values and percentiles lie;
//! * [`deviation`]: errors with their tolerance bands;
//! * [`units`]: numbers for people;
//! * [`Html`]: the page of a run;
//! * [`Runs`]: the page of several runs of the same load.
//!
//! The lab builds its pages of the same pieces.

pub mod axis;
mod certificate;
pub mod chart;
pub mod deviation;
pub mod page;
mod progress;
mod result;
mod runs;
pub mod tail;
pub mod units;

pub use self::result::Html;
pub use self::runs::{RunPart, Runs};
