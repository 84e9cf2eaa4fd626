//! Reports: what people and programs read of a run.
//!
//! | Report | For | Written |
//! |---|---|---|
//! | [`Live`] | people, while the run goes on | a line per interval |
//! | [`Text`] | people | at the end |
//! | [`Html`] | people | at the end |
//! | [`Json`] | programs | at the end |
//! | [`Csv`] | programs, spreadsheets | a row per interval and class |
//! | [`HdrLog`] | HdrHistogram tools | a line per interval, class and kind of latency |
//!
//! All of them take their numbers from [`Interval`] and [`Summary`] alone and compute nothing but
//! sums and rates of them, so they cannot disagree.

pub(crate) mod certificate;
mod connections;
mod csv;
mod found_rate;
mod hdr_log;
pub mod html;
mod json;
mod live;
mod notice;
mod number;
mod quantile;
mod table;
mod text;

#[cfg(test)]
mod sample;

use std::io;
use std::time::Duration;

pub use self::csv::Csv;
pub use self::found_rate::FoundRate;
pub use self::hdr_log::HdrLog;
pub use self::html::Html;
pub use self::json::{Json, SCHEMA_VERSION};
pub use self::live::Live;
pub use self::notice::sentence;
pub use self::quantile::{QUANTILES, Quantile, Support};
pub use self::text::Text;

use kvlab_timing::WallClock;

use crate::host::Host;
use crate::record::{ClassTally, Interval, Latency, Summary, Tally};
use crate::settings::Settings;

/// Something that writes down a run.
pub trait Report {
    /// One interval is over.
    ///
    /// # Errors
    /// What the writer behind it says.
    fn interval(&mut self, interval: &Interval) -> io::Result<()>;

    /// The run is over; everything is written out when this returns.
    ///
    /// # Errors
    /// What the writer behind it says.
    fn finish(&mut self, summary: &Summary) -> io::Result<()>;
}

/// What is known before the run begins.
#[derive(Clone, Debug)]
pub struct Head {
    /// Name and version of the program.
    pub program: String,
    /// The server as shown to people: a URL without user and password.
    pub target: String,
    /// What the run does.
    pub settings: Settings,
    /// The machine.
    pub host: Host,
    /// Calendar time of stamps.
    pub wall: WallClock,
}

impl Head {
    /// Names of the classes of the mix.
    #[must_use]
    pub fn classes(&self) -> Vec<String> {
        let classes = self.settings.target.classes().into_iter();
        classes.map(|class| class.name).collect()
    }
}

/// The classes of a tally added up.
fn all_classes(tally: &Tally) -> ClassTally {
    let mut failed = Latency::default();
    for class in &tally.classes {
        failed.merge(&class.failed);
    }
    ClassTally {
        outcomes: tally.outcomes(),
        errors: tally.errors(),
        keys_found: tally.classes.iter().map(|class| class.keys_found).sum(),
        keys_missing: tally.classes.iter().map(|class| class.keys_missing).sum(),
        retries: tally.classes.iter().map(|class| class.retries).sum(),
        moved: tally.classes.iter().map(|class| class.moved).sum(),
        asked: tally.classes.iter().map(|class| class.asked).sum(),
        bytes_out: tally.classes.iter().map(|class| class.bytes_out).sum(),
        bytes_in: tally.classes.iter().map(|class| class.bytes_in).sum(),
        service: tally.service(),
        response: tally.response(),
        network: tally.network(),
        failed,
    }
}

/// A duration in nanoseconds; more than 584 years read as that.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
