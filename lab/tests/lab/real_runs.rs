//! Short runs on sockets and the machine's clock. How quiet the machine is does not matter here: only
//! what holds on any machine is demanded.

use kvlab::check::judge;
use kvlab::runner::real;
use kvlab::verdict::{Kind, Verdict};
use kvlab_bench_client::Control;

use super::support::scenario;

fn assert_proofs_hold(text: &str) {
    let scenario = scenario(text);
    for part in &scenario.parts {
        let evidence = real::run(
            scenario.server_for(part),
            part.settings.clone(),
            &Control::new(),
        )
        .unwrap_or_else(|error| panic!("{}: {error}", part.name));
        let judgement = judge(&evidence, &part.expect, None);
        let broken: Vec<_> = judgement
            .findings
            .iter()
            .filter(|finding| finding.kind == Kind::Proof && finding.verdict != Verdict::Pass)
            .collect();
        assert!(broken.is_empty(), "{}: {broken:#?}", part.name);
        assert!(
            judgement.accounting.answered > 100,
            "{:?}",
            judgement.accounting
        );
    }
}

#[test]
fn every_request_on_sockets_is_paired_and_accounted_for() {
    assert_proofs_hold(
        "[server]\nlatency = 'constant(1ms)'\nworkers = 2\n\
         [[client]]\nname = 'a'\ntarget = 'redis'\nconnections = 10\nduration = '300ms'\n\
         [[client]]\nname = 'b'\ntarget = 'redis'\nconnections = 4\npipeline = 16\nthreads = 2\n\
         rate = 3000\narrivals = 'poisson'\nwarmup = '50ms'\nduration = '300ms'\n\
         [[client]]\nname = 'c'\ntarget = 'aerospike/test/x'\nconnections = 10\nduration = '300ms'\n\
         [[client]]\nname = 'd'\ntarget = 'aerospike/test/x'\nconnections = 6\nthreads = 2\n\
         rate = 1500\nduration = '300ms'\n",
    );
}

#[test]
fn freezes_on_sockets_keep_the_rule_and_the_timetable() {
    assert_proofs_hold(
        "[server]\nlatency = 'uniform(200us,2ms)'\nfreeze = 'every=200ms,for=60ms'\n\
         [[client]]\nname = 'a'\ntarget = 'redis'\nconnections = 3\npipeline = 32\nrate = 2000\n\
         duration = '600ms'\n\
         [[client]]\nname = 'b'\ntarget = 'aerospike/test/x'\nconnections = 3\nrate = 1000\n\
         duration = '600ms'\n",
    );
}

#[test]
fn the_floor_has_a_sample_for_each_request() {
    let scenario = scenario(
        "[server]\nlatency = 'constant(1ms)'\n\
         [[client]]\ntarget = 'redis'\nconnections = 5\nrate = 1000\nduration = '200ms'\n",
    );
    let part = &scenario.parts[0];
    let config = scenario.server_for(part);
    let (evidence, floor) = real::run_with_floor(&config, &part.settings, &Control::new()).unwrap();
    assert_eq!(evidence.summary.due, 200);
    // 800 ms each, before and after.
    assert_eq!(floor.samples(), 1600);
    // Two system calls each way take time on any machine.
    assert!(floor.median_ns() > 1_000, "{}", floor.median_ns());
}

#[test]
fn every_timing_model_on_sockets_keeps_the_rule() {
    assert_proofs_hold(
        "[server]\nworkers = 2\nlatency = 'uniform(200us,2ms)'\n\
         shape = ['ramp(at=100ms,over=300ms,factor=2)', 'spike(at=200ms,for=50ms,add=1ms)']\n\
         queue = 'servers=2,service=exponential(mean=300us)'\n\
         freeze = ['every=200ms,for=40ms', 'at=130ms,for=90ms,connection=2']\n\
         [[client]]\nname = 'a'\ntarget = 'redis'\nconnections = 4\npipeline = 8\nrate = 2000\n\
         duration = '500ms'\n\
         [[client]]\nname = 'b'\ntarget = 'aerospike/test/x'\nconnections = 6\nthreads = 2\n\
         duration = '500ms'\n",
    );
}

#[test]
fn cuts_on_sockets_take_what_was_under_way_and_nothing_else() {
    assert_proofs_hold(
        "[server]\nworkers = 2\nlatency = 'uniform(200us,4ms)'\ncut = 'every=150ms'\n\
         [expect]\nfailed = 100000\n\
         [[client]]\nname = 'a'\ntarget = 'redis'\nconnections = 4\npipeline = 8\nrate = 1000\n\
         duration = '600ms'\n\
         [[client]]\nname = 'b'\ntarget = 'aerospike/test/x'\nconnections = 4\n\
         duration = '600ms'\n",
    );
    assert_proofs_hold(
        "[server]\nlatency = 'uniform(200us,4ms)'\ncut = 'every=150ms,how=reset'\n\
         [expect]\nfailed = 100000\n\
         [[client]]\ntarget = 'redis'\nconnections = 4\nduration = '600ms'\n",
    );
}
