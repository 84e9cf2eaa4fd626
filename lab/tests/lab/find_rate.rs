//! The search for the largest rate, against a queue whose response times have a formula.

use std::cell::RefCell;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use kvlab::runner::client::Own;
use kvlab::runner::virtual_time;
use kvlab::truth::queue::Queue;
use kvlab_bench_client::engine::Observer;
use kvlab_bench_client::record::Interval;
use kvlab_bench_client::search::{Answer, End, Objective, Plan, Search, Step, Trial, Watch};
use kvlab_bench_client::settings::{Arrivals, Load, RedisTarget, Stop, Target};
use kvlab_bench_client::{Control, Settings};
use kvlab_mock_server::ServerConfig;
use kvlab_timing::Rate;

const LEG_NS: u64 = 20_000;
const SERVERS: u32 = 3;

/// A watch that can be asked after its box is gone.
#[derive(Clone)]
struct Shared(Rc<RefCell<Watch>>);

impl Observer for Shared {
    fn interval(&mut self, interval: &Interval) {
        self.0.borrow_mut().interval(interval);
    }
}

/// Poisson arrivals on more connections than are ever in use, so that the queue is the server's.
fn trial(server: &ServerConfig, objectives: &[Objective], rate: Rate, seed: u64) -> Trial {
    let address = "127.0.0.1:1".parse().unwrap();
    let mut settings = Settings::new(Target::Redis(RedisTarget::new(address, 1, 10)));
    settings.connections = NonZeroU32::new(300).unwrap();
    settings.load = Load::Open {
        rate,
        arrivals: Arrivals::Poisson,
    };
    let length = Duration::from_secs_f64(12_000.0 / rate.as_f64());
    settings.stop = Stop {
        duration: Some(length),
        requests: None,
    };
    settings.warmup = length / 10;
    settings.interval = length / 20;
    settings.seed = seed;
    let mut server = server.clone();
    server.seed = seed;
    let watch = Shared(Rc::new(RefCell::new(Watch::new(objectives))));
    let evidence = virtual_time::run_watched(
        &Own,
        server,
        settings,
        LEG_NS,
        &Control::new(),
        Box::new(watch.clone()),
    )
    .unwrap();
    let watch = watch.0.borrow().clone();
    watch.finish(&evidence.summary)
}

fn search(server: &ServerConfig, objective: Objective, seed: u64) -> Answer {
    let mut plan = Plan::new(vec![objective], Rate::per_second(1_000).unwrap());
    plan.precision = 0.08;
    let mut search = Search::new(plan);
    loop {
        match search.next() {
            Step::Done(answer) => return answer,
            Step::Try(rate) => {
                let seed = seed * 1_000 + u64::from(search.trials());
                let trial = trial(server, &[objective], rate, seed);
                search.record(rate, trial);
            }
        }
    }
}

/// Three servers of 1 ms exponential service: the search, which knows nothing of that, encloses the
/// rate at which the formula puts p99 at 8 ms in at least nine of ten runs.
#[test]
fn the_rate_of_the_formula_lies_within_the_answer_in_nine_of_ten_runs() {
    let queue = Queue {
        servers: SERVERS,
        mean_service: 0.001,
    };
    let objective: Objective = "p99<8ms".parse().unwrap();
    let in_server = (objective.limit - Duration::from_nanos(2 * LEG_NS)).as_secs_f64();
    let exact = queue
        .largest_rate(objective.share_beyond(), in_server)
        .unwrap();
    let server = ServerConfig {
        queue: Some("servers=3,service=exponential(mean=1ms)".parse().unwrap()),
        ..ServerConfig::default()
    };
    let answers: Vec<Answer> = (1..=10)
        .map(|seed| search(&server, objective, seed))
        .collect();
    let inside = answers.iter().filter(|answer| {
        let (Some(met), Some(broken)) = (answer.met, answer.broken) else {
            return false;
        };
        met.as_f64() <= exact && exact <= broken.as_f64()
    });
    assert!(inside.count() >= 9, "{exact} in {answers:#?}");
    for answer in &answers {
        assert_eq!(answer.end, End::Found);
        // A trial has some 120 requests beyond p99, so it cannot tell rates apart that are closer.
        let (met, broken) = (answer.met.unwrap(), answer.broken.unwrap());
        assert!(broken.as_f64() / met.as_f64() < 1.2, "{answer:?}");
    }
}
