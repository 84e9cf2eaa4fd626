//! A certificate: how far the latencies of a run can be off, as found out by runs of the same load
//! against a server whose every answer time is known.
//!
//! The load generator itself cannot make one; it carries and prints it.

/// How far the latencies of a run can be off.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Certificate {
    /// The quantiles of the run's latencies, with what is known of each.
    pub quantiles: Vec<CertifiedQuantile>,
    /// Why none of them has a bound, if something spoilt all.
    pub refused: Option<String>,
    /// The runs against the known server, in their order.
    pub runs: Vec<CalibrationRun>,
}

/// A quantile of a run with what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct CertifiedQuantile {
    /// Which latency.
    pub latency: CertifiedLatency,
    /// The quantile, 0 to 1.
    pub q: f64,
    /// Its title for people.
    pub title: &'static str,
    /// What the run measured, in nanoseconds.
    pub reported_ns: u64,
    /// The bound, or why there is none.
    pub bound: Result<Bound, String>,
}

/// Where the true quantile lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The server's own time: what was measured less what client and machine added, in
    /// nanoseconds.
    pub server_ns: u64,
    /// How far the truth may lie from it, in nanoseconds.
    pub half_width_ns: u64,
}

impl Bound {
    /// The least that the truth may be, in nanoseconds.
    #[must_use]
    pub fn low_ns(self) -> u64 {
        self.server_ns.saturating_sub(self.half_width_ns)
    }

    /// The most that the truth may be, in nanoseconds.
    #[must_use]
    pub fn high_ns(self) -> u64 {
        self.server_ns.saturating_add(self.half_width_ns)
    }
}

/// A latency that a certificate speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CertifiedLatency {
    /// From the intended start to the reply.
    Response,
    /// From the send to the reply.
    Service,
    /// From the send to the kernel's receive stamp.
    Network,
}

impl CertifiedLatency {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Service => "service",
            Self::Network => "network",
        }
    }
}

/// One run against the known server.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationRun {
    /// Whether it came before the measured run.
    pub before: bool,
    /// The law of the server's delays.
    pub law: String,
    /// Answered requests.
    pub requests: u64,
    /// Answered requests per second.
    pub per_second: f64,
    /// What was added to the server's time at p50, p90 and p99 of the single requests' difference, in
    /// nanoseconds.
    pub added_ns: [u64; 3],
}
