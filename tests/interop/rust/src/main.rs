//! Real work against the mock server through the Rust clients, every value checked.
//!
//! Arguments: the Redis port and the Aerospike port. Prints one line for each crate, with the
//! version that was used; the first wrong value ends the program with a panic that names it.

mod aerospike_crate;
mod fred_crate;
mod redis_crate;

use std::error::Error;
use std::process::ExitCode;

/// What every part returns: a client's own error is as final as a wrong value.
type Outcome = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [redis_port, aerospike_port] = arguments.as_slice() else {
        eprintln!("usage: kvlab-interop REDIS_PORT AEROSPIKE_PORT");
        return ExitCode::from(2);
    };
    match run(redis_port, aerospike_port) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kvlab-interop: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(redis_port: &str, aerospike_port: &str) -> Outcome {
    let redis_port = redis_port.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    redis_crate::blocking(redis_port)?;
    runtime.block_on(redis_crate::multiplexed(redis_port))?;
    report("redis", "blocking in RESP2 and RESP3, multiplexed");
    runtime.block_on(fred_crate::run(redis_port))?;
    report("fred", "RESP2 and RESP3");
    runtime.block_on(aerospike_crate::run(aerospike_port.parse()?))?;
    report("aerospike", "records, policies, operate, batches");
    Ok(())
}

fn report(package: &str, what: &str) {
    println!("  {package} (Rust) {}: {what}", locked_version(package));
}

/// The version of a package as Cargo.lock has it.
fn locked_version(package: &str) -> &'static str {
    let heading = format!("name = \"{package}\"");
    let mut lines = include_str!("../Cargo.lock")
        .lines()
        .skip_while(|line| *line != heading);
    lines
        .nth(1)
        .and_then(|line| line.strip_prefix("version = "))
        .map_or("of unknown version", |version| version.trim_matches('"'))
}
