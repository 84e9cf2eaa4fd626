//! Descriptors: every connection is an open file, and a process may have only so many.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::ServerConfig;
use crate::limit::ConnectionLimits;

/// A limit on open files that is too low for what the server is told to allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{connections} connections and the server itself need {needed} open files, but the system allows this \
     process no more than {allowed}: raise the hard limit (ulimit -Hn), or give --max-connections \
     {possible}"
)]
pub struct TooFewFiles {
    connections: u64,
    needed: u64,
    allowed: u64,
    possible: u64,
}

/// Raises the limit of this process as far as it may go.
///
/// # Errors
/// When that is too low for the number of connections that `config` names. Without such a number the
/// server starts, and says so when files run out.
pub(super) fn take_all(config: &ServerConfig) -> Result<(), TooFewFiles> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // Where it is refused, what is allowed now is what counts.
    let _ = setrlimit(Resource::Nofile, raised);
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    check(&config.connections, own(config), allowed)
}

fn check(limits: &ConnectionLimits, own: u64, allowed: u64) -> Result<(), TooFewFiles> {
    let Some(connections) = limits.max else {
        return Ok(());
    };
    // Whoever is told that there is no place for him has a socket until he is.
    let needed = connections.saturating_add(own);
    if needed <= allowed {
        return Ok(());
    }
    Err(TooFewFiles {
        connections,
        needed,
        allowed,
        possible: allowed.saturating_sub(own),
    })
}

/// Files that the server needs for itself: those that are open already, its ports, what each worker and
/// the acceptors poll and wait with, and some for connections that are turned away.
fn own(config: &ServerConfig) -> u64 {
    let open = fs::read_dir("/proc/self/fd").map_or(USUALLY_OPEN, |entries| entries.count() as u64);
    open + PORTS_AND_ACCEPTORS + PER_WORKER * config.workers as u64 + IN_PASSING
}

/// The standard streams and the signal handler's, where the system does not tell.
const USUALLY_OPEN: u64 = 10;
/// Six ports, a runtime (three), and a timer for each port.
const PORTS_AND_ACCEPTORS: u64 = 16;
/// A runtime (three) and a timer (two).
const PER_WORKER: u64 = 6;
/// Sockets of connections that are turned away, and a file of rows.
const IN_PASSING: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_named_number_of_connections_can_be_too_many() {
        let mut limits = ConnectionLimits::default();
        assert_eq!(check(&limits, 40, 64), Ok(()));
        limits.max = Some(24);
        assert_eq!(check(&limits, 40, 64), Ok(()));
        limits.max = Some(25);
        let error = check(&limits, 40, 64).unwrap_err();
        assert_eq!(
            error.to_string(),
            "25 connections and the server itself need 65 open files, but the system allows this process \
             no more than 64: raise the hard limit (ulimit -Hn), or give --max-connections 24"
        );
    }
}
