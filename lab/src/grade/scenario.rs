//! The standard scenarios: a timing model of the server and a load that every tool is asked for.
//!
//! No mode boundary lies on a quantile that is reported: 0.7 % of slow answers, 7.5 % of the time in
//! freezes, 36 % in the long one (67 % where it is quick).

use std::time::Duration;

use super::mock::{Mock, MockTexts};
use crate::subject::Load;

/// A server and a load.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What it shows.
    pub about: String,
    /// The server.
    pub mock: Mock,
    /// The load.
    pub load: Load,
    /// What a report is held against.
    pub aim: Aim,
}

/// What a report is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aim {
    /// The server's own sojourn times of the same run.
    Sojourn,
    /// The timetable of so many requests a second; a tool that keeps no rate is held against it all
    /// the same, over the time that it ran.
    Timetable {
        /// Requests per second.
        rate: f64,
    },
}

/// A standard scenario as written.
struct Standard {
    name: &'static str,
    about: &'static str,
    latency: &'static [&'static str],
    queue: Option<&'static str>,
    freezes: &'static [&'static str],
    cuts: &'static [&'static str],
    load: Load,
    /// Length in seconds when it is to be quick; as many requests less.
    quick_s: u64,
}

impl Scenario {
    /// The names of the standard scenarios.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        STANDARD.iter().map(|standard| standard.name).collect()
    }

    /// The standard scenarios; `is_quick` makes them about half as long.
    #[must_use]
    pub fn standard(is_quick: bool) -> Vec<Self> {
        let all = STANDARD.iter();
        all.filter_map(|standard| standard.resolve(is_quick))
            .collect()
    }

    /// A standard scenario by name.
    #[must_use]
    pub fn named(name: &str, is_quick: bool) -> Option<Self> {
        let standard = STANDARD.iter().find(|standard| standard.name == name)?;
        standard.resolve(is_quick)
    }
}

impl Standard {
    /// `None` for texts that cannot be read, which a test excludes.
    fn resolve(&self, is_quick: bool) -> Option<Scenario> {
        let owned = |texts: &[&str]| -> Vec<String> {
            let texts = texts.iter();
            texts.map(|text| (*text).to_owned()).collect()
        };
        let texts = MockTexts {
            latency: &owned(self.latency),
            queue: self.queue,
            freezes: &owned(self.freezes),
            cuts: &owned(self.cuts),
        };
        let mut load = self.load;
        if is_quick {
            load.requests /= 2;
            load.duration = Duration::from_secs(self.quick_s);
        }
        Some(Scenario {
            name: self.name.to_owned(),
            about: self.about.to_owned(),
            mock: Mock::parse(&texts, SEED).ok()?,
            load,
            aim: match load.rate {
                Some(rate) => Aim::Timetable {
                    rate: f64::from(rate),
                },
                None => Aim::Sojourn,
            },
        })
    }
}

/// A closed loop of ten connections; about 8,500 requests a second at 1 ms.
const CLOSED: Load = Load {
    connections: 10,
    depth: 1,
    rate: None,
    requests: 24_000,
    duration: Duration::from_secs(3),
};

/// A thousand requests a second; a tool without a rate sends as many as fit between the freezes.
const OPEN: Load = Load {
    rate: Some(1_000),
    requests: 60_000,
    duration: Duration::from_secs(8),
    ..CLOSED
};

const STANDARD: [Standard; 6] = [
    Standard {
        name: "constant",
        about: "every answer after 1 ms; 10 connections, closed loop",
        latency: &["constant(1ms)"],
        queue: None,
        freezes: &[],
        cuts: &[],
        load: CLOSED,
        quick_s: 2,
    },
    Standard {
        name: "bimodal",
        about: "1 ms, but 50 ms for 0.7 %; 10 connections, closed loop",
        latency: &["mixture(99.3%:constant(1ms),0.7%:constant(50ms))"],
        queue: None,
        freezes: &[],
        cuts: &[],
        load: CLOSED,
        quick_s: 2,
    },
    Standard {
        name: "freeze",
        about: "1 ms, and a stop of 150 ms each 2 s; 1,000 a second over 10 connections",
        latency: &["constant(1ms)"],
        queue: None,
        freezes: &["every=2s,for=150ms,first=1s"],
        cuts: &[],
        load: OPEN,
        quick_s: 4,
    },
    Standard {
        name: "pipelined",
        about: "one server that takes 0.1 ms for each; one connection, 16 in flight, closed loop",
        latency: &[],
        queue: Some("servers=1,service=constant(100us)"),
        freezes: &[],
        cuts: &[],
        load: Load {
            connections: 1,
            depth: 16,
            ..CLOSED
        },
        quick_s: 2,
    },
    Standard {
        name: "long-freeze",
        about: "1 ms, and one stop of 4 s; 1,000 a second over 10 connections",
        latency: &["constant(1ms)"],
        queue: None,
        freezes: &["at=1s,for=4s"],
        cuts: &[],
        load: Load {
            requests: 60_000,
            duration: Duration::from_secs(11),
            ..OPEN
        },
        quick_s: 6,
    },
    Standard {
        name: "connection-loss",
        about: "1 ms, and all connections closed once; 10 connections, closed loop",
        latency: &["constant(1ms)"],
        queue: None,
        freezes: &[],
        cuts: &["at=1s"],
        load: CLOSED,
        quick_s: 2,
    },
];

const SEED: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_standard_scenario_can_be_read() {
        for is_quick in [false, true] {
            let scenarios = Scenario::standard(is_quick);
            let names: Vec<&str> = scenarios.iter().map(|one| one.name.as_str()).collect();
            assert_eq!(names, Scenario::names());
        }
        assert!(Scenario::named("nothing", false).is_none());
    }

    #[test]
    fn no_mode_boundary_lies_on_a_reported_quantile() {
        // Shares of slow answers must differ from 50, 10, 1 and 0.1 % by a fifth at least.
        for slow in [0.7, 7.5, 400.0 / 11.0, 400.0 / 6.0] {
            for reported in [50.0, 10.0, 1.0, 0.1] {
                let ratio: f64 = slow / reported;
                assert!(!(0.8..=1.2).contains(&ratio), "{slow} % at {reported} %");
            }
        }
    }
}
