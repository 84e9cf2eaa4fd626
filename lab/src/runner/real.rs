//! Server and client in one process, on sockets of the loopback address and the machine's clock.

use std::time::Duration;

use kvlab_bench_client::settings::{Arrivals, Load, Stop, Target, TlsSettings, Trust};
use kvlab_bench_client::{Control, RunError, Settings};
use kvlab_mock_server::latency::Distribution;
use kvlab_mock_server::{MockServer, ServerConfig};
use kvlab_timing::Rate;

use super::client::{Client, Own};
use super::{Evidence, PartError, Pools, ServerFacts, Tier, aim, connections_by_thread};
use crate::noise::{Floor, ProcessorTime};
use crate::truth::Pair;
use crate::truth::join::{Network, join};

/// Runs one client against a server of its own, until its end or until `control` stops it.
///
/// # Errors
/// When the server does not start or the client has no result.
pub fn run(
    config: ServerConfig,
    settings: Settings,
    control: &Control,
) -> Result<Evidence, PartError> {
    run_by(&Own, config, settings, control)
}

/// The same with another client.
///
/// # Errors
/// As [`run`].
pub fn run_by(
    client: &dyn Client,
    config: ServerConfig,
    settings: Settings,
    control: &Control,
) -> Result<Evidence, PartError> {
    run_filled(client, config, None, settings, control)
}

/// The same against a server that another load has filled before, if there is one.
///
/// # Errors
/// As [`run`], of either load.
pub fn run_filled(
    client: &dyn Client,
    config: ServerConfig,
    filling: Option<Settings>,
    mut settings: Settings,
    control: &Control,
) -> Result<Evidence, PartError> {
    let server = MockServer::start(config)?;
    let address = match settings.target {
        Target::Redis(_) => server.redis_addr().or(server.redis_tls_addr()),
        Target::Aerospike(_) => server.aerospike_addr().or(server.aerospike_tls_addr()),
    };
    let address = address.ok_or(PartError::NoPort)?;
    aim(&mut settings, address);
    settings.tls = trust(&server)?;
    let shared = server.shared();
    let facts = ServerFacts::new(&shared.config, shared.started);
    let control = control.for_another_server();
    if let Some(mut filling) = filling {
        aim(&mut filling, address);
        filling.tls.clone_from(&settings.tls);
        client.run(&filling, &control)?;
    }
    let before = ProcessorTime::now();
    let result = client.run(&settings, &control);
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
        counts: truth.stats.counts,
        lives: None,
        summary: result.summary,
        settings,
        server: facts,
    })
}

/// TLS to a server that speaks nothing else, with a certificate that it made for the run.
fn trust(server: &MockServer) -> Result<Option<TlsSettings>, PartError> {
    let Some(ca_pem) = server.ca_pem() else {
        return Ok(None);
    };
    let trusted = TlsSettings::new("localhost")
        .and_then(|tls| Ok(tls.trusting(Trust::from_pem(ca_pem.as_bytes())?)));
    Ok(Some(
        trusted.map_err(|error| RunError::NoTls(error.to_string()))?,
    ))
}

/// Runs one client between two measurements of the floor.
///
/// # Errors
/// As [`run`].
pub fn run_with_floor(
    config: &ServerConfig,
    settings: &Settings,
    control: &Control,
) -> Result<(Evidence, Floor), PartError> {
    run_with_floor_by(&Own, config, settings, control)
}

/// The same with another client, which runs for the floor too.
///
/// # Errors
/// As [`run`].
pub fn run_with_floor_by(
    client: &dyn Client,
    config: &ServerConfig,
    settings: &Settings,
    control: &Control,
) -> Result<(Evidence, Floor), PartError> {
    let floor = |kind| floor_run(client, config, settings, control, kind);
    let in_step = matches!(settings.load, Load::Closed) && marches_in_step(config);
    let step = || in_step.then(|| floor(FloorKind::InStep)).transpose();
    let (before, step_before) = (floor(FloorKind::Open)?, step()?);
    let evidence = run_by(client, config.clone(), settings.clone(), control)?;
    let (step_after, after) = (step()?, floor(FloorKind::Open)?);
    let mut floor = Floor::between(&before, &after);
    if let (Some(before), Some(after)) = (step_before, step_after) {
        floor = floor.with_step(Floor::between(&before, &after));
    }
    Ok((evidence, floor))
}

/// How the requests of a floor run come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FloorKind {
    /// By a timetable.
    Open,
    /// In a closed loop whose connections march in step.
    InStep,
}

/// Measures what the machine adds to a request by itself: the same client and connections against a
/// server without delay.
///
/// The floor is that of an open loop: an open loop keeps its rate, a closed one gets about the rate
/// that will come out. The connections of a closed loop whose delays are all alike march in step,
/// send together and are answered together; what that adds to a request they show without delay,
/// too, and its service time is judged by a closed loop's floor beside the open one's.
fn floor_run(
    client: &dyn Client,
    config: &ServerConfig,
    settings: &Settings,
    control: &Control,
    kind: FloorKind,
) -> Result<Vec<Pair>, PartError> {
    let mut settings = settings.clone();
    if matches!(settings.load, Load::Closed) && kind == FloorKind::Open {
        // A closed loop sleeps until a reply wakes it; a pacer that spins between close deadlines
        // would never sleep and measure a floor that the run cannot reach.
        settings.spin = false;
        settings.load = Load::Open {
            rate: closed_rate(config, &settings),
            arrivals: Arrivals::Uniform,
        };
    }
    settings.stop = Stop {
        duration: Some(FLOOR_LENGTH),
        requests: None,
    };
    settings.warmup = FLOOR_WARM_UP;
    let config = config.clone().without_delays();
    Ok(run_by(client, config, settings, control)?.joined.pairs)
}

/// Whether all requests get the same delay.
fn marches_in_step(config: &ServerConfig) -> bool {
    match config.latency.rules() {
        [] => true,
        [rule] => matches!(rule.law, Distribution::None | Distribution::Constant { .. }),
        _ => false,
    }
}

/// About the rate that a closed loop reaches against the injected delays.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an estimate within fixed bounds"
)]
fn closed_rate(config: &ServerConfig, settings: &Settings) -> Rate {
    let rules = config.latency.rules();
    let means: f64 = rules.iter().map(|rule| rule.law.mean_ns()).sum();
    let mean_ns = means / rules.len().max(1) as f64;
    let slots = f64::from(settings.connections.get()) * f64::from(settings.pipeline.depth.get());
    let per_second = (slots * 1e9 / (mean_ns + ROUND_TRIP_NS)) as u64;
    let per_second = per_second.clamp(FLOOR_RATES.0, FLOOR_RATES.1);
    // Never 0, so this cannot fail.
    Rate::per_second(per_second).unwrap_or(Rate::MIN)
}

const FLOOR_LENGTH: Duration = Duration::from_millis(800);
const FLOOR_WARM_UP: Duration = Duration::from_millis(200);
/// What a round trip takes without delay, about.
const ROUND_TRIP_NS: f64 = 120_000.0;
/// Bounds of the floor's rate: enough samples, and no load that makes a floor of its own.
const FLOOR_RATES: (u64, u64) = (500, 50_000);
