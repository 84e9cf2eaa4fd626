//! Notices in words.

use std::time::Duration;

use super::nanos;
use super::number::{counted, ms, percent};
use crate::record::Notice;

/// A word for programs that names the kind of a notice.
pub(super) fn kind(notice: &Notice) -> &'static str {
    match notice {
        Notice::FellBehind { .. } => "fell_behind",
        Notice::Busy { .. } => "busy",
        Notice::LagGrew { .. } => "lag_grew",
        Notice::StartedLate { .. } => "started_late",
        Notice::TimeoutsExcluded { .. } => "timeouts_excluded",
        Notice::ConnectionsMissing { .. } => "connections_missing",
        Notice::LimitInLatencies => "limit_in_latencies",
        Notice::ServerLost(_) => "server_lost",
        Notice::NoKernelStamps { .. } => "no_kernel_stamps",
        Notice::StampsMissing { .. } => "stamps_missing",
        Notice::StampsAstray { .. } => "stamps_astray",
        Notice::Clamped { .. } => "clamped",
    }
}

/// A notice as a sentence for people.
#[must_use]
pub fn sentence(notice: &Notice) -> String {
    match notice {
        Notice::FellBehind {
            late_p50,
            late_p99,
            late_max,
            response_p99,
        } => format!(
            "the client fell behind its schedule: it sent {} ms late at p50, {} ms at p99 and {} \
             ms at most, with a response time of {} ms at p99; the response times are partly its \
             own",
            millis(*late_p50),
            millis(*late_p99),
            millis(*late_max),
            millis(*response_p99),
        ),
        Notice::Busy { thread, cpu_share } => format!(
            "thread {thread} used {} of a core: the client may be the limit, not the server",
            percent(*cpu_share)
        ),
        Notice::LagGrew { first, last } => format!(
            "the schedule lag grew throughout the run, from {} ms in its first quarter to {} ms in \
             its last: more was due than could be sent, and the response times depend on how long \
             the run was",
            millis(*first),
            millis(*last),
        ),
        Notice::StartedLate { by } => format!(
            "the load began {} ms later than --start-at asked, because the set-up took so long",
            millis(*by)
        ),
        Notice::TimeoutsExcluded { count } => format!(
            "{} timed out and {} not in the latencies, whose tails are therefore too good",
            counted(*count, "request"),
            if *count == 1 { "is" } else { "are" },
        ),
        Notice::ConnectionsMissing { wanted, up } => {
            format!(
                "ran with {up} of {wanted} connections: the others were not up when the load began"
            )
        }
        Notice::LimitInLatencies => "the server delayed new connections, and the latencies of their \
                                     first requests hold the delay; with --connect-probe the set-up \
                                     takes it"
            .to_owned(),
        Notice::ServerLost(loss) => format!(
            "the connection to {} was lost for good during the run: {}",
            loss.address, loss.error
        ),
        Notice::NoKernelStamps { reason } => {
            format!("no network latency, because the kernel gives no receive stamps: {reason}")
        }
        Notice::StampsMissing { count, of } => format!(
            "{count} of {of} replies came without a receive stamp of the kernel and are not in the \
             network latency"
        ),
        Notice::StampsAstray { count } => format!(
            "{} of the kernel lay outside of send and read: was the calendar clock set?",
            counted(*count, "receive stamp")
        ),
        Notice::Clamped { count } => format!(
            "{} above one hour {} in the histograms as one hour",
            counted(*count, "latency sample"),
            if *count == 1 { "stands" } else { "stand" },
        ),
    }
}

fn millis(duration: Duration) -> String {
    ms(nanos(duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_hold_the_numbers() {
        let notice = Notice::FellBehind {
            late_p50: Duration::from_micros(10),
            late_p99: Duration::from_micros(2_500),
            late_max: Duration::from_millis(7),
            response_p99: Duration::from_millis(5),
        };
        let text = sentence(&notice);
        for number in ["0.010", "2.500", "7.000", "5.000"] {
            assert!(text.contains(number), "{text}");
        }
        let busy = Notice::Busy {
            thread: 3,
            cpu_share: 0.953,
        };
        assert!(sentence(&busy).starts_with("thread 3 used 95.3 % of a core"));
        let one = Notice::TimeoutsExcluded { count: 1 };
        assert!(sentence(&one).starts_with("1 request timed out and is not"));
    }
}
