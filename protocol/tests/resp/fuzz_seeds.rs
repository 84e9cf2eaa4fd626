//! The bodies of the fuzz targets over their seed corpora, on any toolchain.

use std::fs;
use std::path::Path;

use kvlab_protocol::fuzzing::resp::{resp_reply, resp_request, resp_round_trip};

#[test]
fn seeds_of_resp_request_hold() {
    run("resp_request", resp_request);
}

#[test]
fn seeds_of_resp_reply_hold() {
    run("resp_reply", resp_reply);
}

#[test]
fn seeds_of_resp_round_trip_hold() {
    run("resp_round_trip", resp_round_trip);
}

fn run(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/seeds")
        .join(target);
    let mut seeds = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let seed = fs::read(entry.unwrap().path()).unwrap();
        body(&seed);
        // Broken variants of every seed: cut short, and with one byte changed.
        for at in 0..seed.len().min(200) {
            body(&seed[..at]);
            let mut changed = seed.clone();
            changed[at] = changed[at].wrapping_add(1);
            body(&changed);
        }
        seeds += 1;
    }
    assert!(seeds >= 10, "{} has only {seeds} seeds", folder.display());
}
