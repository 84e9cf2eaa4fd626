//! How exactly a delay is met, with bounds that a busy machine can keep.

use std::thread;
use std::time::Duration;

use kvlab_mock_server::MockServer;
use kvlab_timing::Clock;

use crate::wire::Client;

/// Ten connections in a closed loop for a second. No reply leaves early; half of them leave within
/// half a millisecond, ten times what a quiet machine shows.
#[test]
fn a_constant_millisecond_is_a_millisecond() {
    let server = MockServer::builder()
        .latency("constant(1ms)")
        .record_rows(true)
        .start()
        .unwrap();
    let address = server.redis_addr().unwrap();
    let clock = Clock::real();
    let end = clock.now() + Duration::from_secs(1);
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                let mut client = Client::connect(address);
                while clock.now() < end {
                    client.ask("GET k");
                }
            });
        }
    });
    let truth = server.stop();
    assert!(
        truth.rows.len() >= 500,
        "only {} requests",
        truth.rows.len()
    );
    for row in &truth.rows {
        assert_eq!(row.wanted_ns, 1_000_000);
        assert!(
            row.written.since(row.read) >= 1_000_000,
            "a reply left early"
        );
    }
    let stats = &truth.stats;
    let (sojourn, error) = (
        stats.all.sojourn.value_at_quantile(0.5),
        stats.all.injection_error.value_at_quantile(0.5),
    );
    assert!(sojourn < 1_500_000, "median sojourn {sojourn} ns");
    assert!(error < 500_000, "median injection error {error} ns");
}
