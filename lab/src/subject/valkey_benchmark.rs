//! valkey-benchmark: the options and the report of redis-benchmark, from which it descends. Newer
//! ones can hold a rate (`--rps`), which they do by pausing before a request, not by a timetable.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

use super::process::Finished;
use super::{Load, Reported, Shape, Subject, redis_benchmark};

/// valkey-benchmark.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValkeyBenchmark;

impl Subject for ValkeyBenchmark {
    fn name(&self) -> &'static str {
        "valkey-benchmark"
    }

    fn standard(&self, load: &Load) -> Result<Vec<String>, String> {
        Ok(redis_benchmark::standard(load))
    }

    fn shape(&self, arguments: &[OsString]) -> Result<Shape, String> {
        redis_benchmark::shape(arguments)
    }

    fn command_line(&self, arguments: &[OsString], at: SocketAddr, _: &Path) -> Vec<OsString> {
        redis_benchmark::command_line(arguments, at)
    }

    fn read(&self, finished: &Finished, _: &Path) -> Result<Reported, String> {
        redis_benchmark::read(&finished.stdout)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reading;
    use super::*;
    use crate::truth::Quantile;

    #[test]
    fn its_report_is_read() {
        let report = include_str!("../../tests/data/tools/valkey-benchmark/custom.stdout");
        let reported = redis_benchmark::read(report).unwrap();
        assert_eq!(reported.count, Some(500));
        let p99 = reported.quantiles[&Quantile::P99];
        assert_eq!(p99, Reading::exact(1_119_000));
        assert_eq!(reported.max_ns, Some(1_343_000));
        assert_eq!(reported.rate_per_second, Some(124_999.99));
    }
}
