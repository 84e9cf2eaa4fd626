//! Server and client in one process, on sockets of the loopback address and the machine's clock.

use std::time::Duration;

use kvlab_bench_client::engine::Silent;
use kvlab_bench_client::settings::{Stop, Target};
use kvlab_bench_client::{Control, Settings};
use kvlab_mock_server::latency::LatencyRules;
use kvlab_mock_server::{MockServer, ServerConfig};

use super::{Evidence, PartError, Pools, ServerFacts, Tier, aim, connections_by_thread};
use crate::noise::{Floor, ProcessorTime};
use crate::truth::join::{Network, join};

/// Runs one client against a server of its own.
///
/// # Errors
/// When the server does not start or the client has no result.
pub fn run(config: ServerConfig, mut settings: Settings) -> Result<Evidence, PartError> {
    let server = MockServer::start(config)?;
    let address = match settings.target {
        Target::Redis(_) => server.redis_addr(),
        Target::Aerospike(_) => server.aerospike_addr(),
    };
    aim(&mut settings, address.ok_or(PartError::NoPort)?);
    let shared = server.shared();
    let facts = ServerFacts::new(&shared.config, shared.started);
    let before = ProcessorTime::now();
    let result = kvlab_bench_client::run(&settings, &Control::new(), &mut Silent);
    let after = ProcessorTime::now();
    let truth = server.stop();
    let result = result?;
    Ok(Evidence {
        tier: Tier::Real,
        pools: Pools::from_rows(&result.rows, &connections_by_thread(&result.summary)),
        machine: before
            .zip(after)
            .map(|(before, after)| after.since(&before)),
        joined: join(result.rows, truth.rows, Network::Lossy),
        summary: result.summary,
        settings,
        server: facts,
    })
}

/// Measures what the machine adds to a request by itself: the same client, connections, loop and rate
/// against a server without delay.
///
/// # Errors
/// As [`run`].
pub fn floor(config: &ServerConfig, settings: &Settings) -> Result<Floor, PartError> {
    let mut settings = settings.clone();
    settings.stop = Stop {
        duration: Some(FLOOR_LENGTH),
        requests: None,
    };
    settings.warmup = FLOOR_WARM_UP;
    let mut config = config.clone();
    config.latency = LatencyRules::default();
    config.freeze = None;
    Ok(Floor::of(&run(config, settings)?.joined.pairs))
}

const FLOOR_LENGTH: Duration = Duration::from_millis(1_000);
const FLOOR_WARM_UP: Duration = Duration::from_millis(200);
