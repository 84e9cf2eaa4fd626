//! What is sent: from the traffic of a [`Plan`] to operations of the engine.
//!
//! ```text
//! --ratio 1:10                 SET key value, then GET key ten times, and so on
//! --wait-ratio 10:1            WAIT at the start and between the SETs
//! --command A --command-ratio 2 --command B    A A B A A B …
//! __monitor_line@__            the lines of the capture in their order, or drawn
//! ```

use kvlab_protocol::resp::request::{DATA_PLACEHOLDER, KEY_PLACEHOLDER, NUMBER_PLACEHOLDER};

use super::Name;
use super::command::name_of;
use super::model::RowKind;
use super::number::Range;
use super::options::Breakdown;
use super::plan::{Plan, Request, SetGet, Step, Traffic, Wait};
use super::recorder::RowPlan;
use super::translate::Lack;
use crate::settings::{
    Between, KeyPattern, MAX_CLASSES, NumberLaw, RedisOperation, Rotation, RotationRequest,
    RotationStep, StepKind,
};

impl Plan {
    /// What is sent, and the row of each.
    ///
    /// # Errors
    /// More rows than can be counted apart.
    pub(super) fn classes(&self) -> Result<Classes, Lack> {
        let classes = match &self.traffic {
            Traffic::SetGet(both) => self.set_and_get(both),
            Traffic::Commands(steps) => self.commands(steps),
            Traffic::Scan { arguments, .. } => scan(arguments),
        };
        if classes.kinds.len() > MAX_CLASSES {
            return Err(Lack::new(
                Name::Command,
                format!("a table of more than {MAX_CLASSES} rows"),
            ));
        }
        Ok(classes)
    }

    fn set_and_get(&self, both: &SetGet) -> Classes {
        let mut classes = Classes::default();
        let ratio = both.ratio;
        if ratio.first > 0 {
            let (arguments, numbers) = self.set_arguments();
            let set = RotationRequest {
                operation: classes.row(RowKind::Set),
                arguments,
                pattern: Some(self.set_pattern()),
                goes_on: false,
                numbers,
            };
            classes.send(set, ratio.first);
        }
        if ratio.second > 0 {
            let operation = classes.row(RowKind::Get);
            let pattern = self.key_pattern(both.patterns.get);
            // The ratio counts keys: the last MGET of a round may have fewer.
            let each = both.keys_per_get.max(1);
            let whole = ratio.second / each;
            for (keys, times) in [(each, whole), (ratio.second % each, 1)] {
                if keys > 0 && times > 0 {
                    let get = RotationRequest {
                        operation,
                        arguments: self.get_arguments(both, keys),
                        pattern: Some(pattern),
                        goes_on: whole > 0 && keys < each,
                        numbers: Vec::new(),
                    };
                    classes.send(get, times);
                }
            }
        }
        if let Some(wait) = both.wait.filter(|wait| wait.ratio.second > 0) {
            classes.wait(wait);
        }
        classes
    }

    /// `SET`, with a time to live `SETEX`, with an offset `SETRANGE`, as the original writes.
    fn set_arguments(&self) -> (Vec<Vec<u8>>, Vec<NumberLaw>) {
        let values = &self.values;
        let no_expiry = self.import.as_ref().is_some_and(|import| import.no_expiry);
        // Times to live of records are settled record by record.
        match values.expiry.filter(|_| !no_expiry) {
            Some(range) if range.least == range.most => {
                let seconds = range.most.to_string();
                let setex = ["SETEX", KEY_PLACEHOLDER, &seconds, DATA_PLACEHOLDER];
                (words(&setex), Vec::new())
            }
            Some(range) => {
                let setex = [
                    "SETEX",
                    KEY_PLACEHOLDER,
                    NUMBER_PLACEHOLDER,
                    DATA_PLACEHOLDER,
                ];
                (words(&setex), vec![uniform(range)])
            }
            None if values.offset > 0 => {
                let offset = values.offset.to_string();
                let setrange = ["SETRANGE", KEY_PLACEHOLDER, &offset, DATA_PLACEHOLDER];
                (words(&setrange), Vec::new())
            }
            None => {
                let set = ["SET", KEY_PLACEHOLDER, DATA_PLACEHOLDER];
                (words(&set), Vec::new())
            }
        }
    }

    /// `GET`, with an offset `GETRANGE`, with `--multi-key-get` `MGET`.
    fn get_arguments(&self, both: &SetGet, keys: u32) -> Vec<Vec<u8>> {
        if both.keys_per_get > 1 {
            let keys = std::iter::repeat_n(KEY_PLACEHOLDER, keys as usize);
            words(&["MGET"].into_iter().chain(keys).collect::<Vec<_>>())
        } else {
            get_words(self.values.offset)
        }
    }

    /// The commands in their order, each as often in a row as its ratio says. What is replayed is
    /// chosen when it is sent.
    fn commands(&self, steps: &[Step]) -> Classes {
        let mut classes = Classes {
            apart: self.output.breakdown == Breakdown::Line,
            ..Classes::default()
        };
        for step in steps.iter().filter(|step| step.ratio > 0) {
            if let Request::Arguments(arguments) = &step.request {
                let request = RotationRequest {
                    operation: classes.row(RowKind::Command(step.name.clone())),
                    arguments: arguments.clone(),
                    pattern: Some(self.key_pattern(step.pattern)),
                    goes_on: false,
                    numbers: Vec::new(),
                };
                classes.send(request, step.ratio);
            } else {
                // All replays are of one file; its commands stand once, behind the others.
                classes.steps.push(RotationStep {
                    what: match step.request {
                        Request::Replay { random: true, .. } => StepKind::ReplayAny,
                        _ => StepKind::ReplayNext,
                    },
                    times: step.ratio,
                });
            }
        }
        classes.replay_from = classes.requests.len();
        // Replayed commands of one name share a row, whatever the breakdown.
        classes.apart = false;
        let replay = steps.iter().find_map(|step| match &step.request {
            Request::Replay { commands, .. } => Some((commands, step.pattern)),
            Request::Arguments(_) => None,
        });
        if let Some((commands, pattern)) = replay {
            for arguments in commands.iter() {
                let operation = classes.row(RowKind::Command(name_of(arguments)));
                let keyed = super::command::keys_in(arguments) > 0;
                classes.requests.push(RotationRequest {
                    operation,
                    arguments: arguments.clone(),
                    // A stream of keys for each line would be memory for nothing.
                    pattern: keyed.then(|| self.key_pattern(pattern)),
                    goes_on: false,
                    numbers: Vec::new(),
                });
            }
        }
        classes
    }
}

/// What is sent, with the row of each.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    /// The rows; each is an operation of the engine.
    kinds: Vec<RowKind>,
    requests: Vec<RotationRequest>,
    steps: Vec<RotationStep>,
    replay_from: usize,
    between: Option<Between>,
    /// Each command has a row of its own, also where two have the same name.
    apart: bool,
}

impl Classes {
    /// The place of a row, which is added unless it is there.
    fn row(&mut self, kind: RowKind) -> usize {
        let known = self.kinds.iter().position(|known| *known == kind);
        match known {
            Some(place) if !self.apart => place,
            _ => {
                self.kinds.push(kind);
                self.kinds.len() - 1
            }
        }
    }

    /// Adds a request that is sent so often in a row.
    fn send(&mut self, request: RotationRequest, times: u32) {
        let what = StepKind::Request(self.requests.len());
        self.requests.push(request);
        self.replay_from = self.requests.len();
        self.steps.push(RotationStep { what, times });
    }

    /// Adds the `WAIT`s. As the original counts, there is one at the start, and one more whenever
    /// SETs over WAITs is more than the ratio, both quotients rounded down: with 10:1 after every
    /// eleventh SET.
    fn wait(&mut self, wait: Wait) {
        let sets = self.kinds.first() == Some(&RowKind::Set);
        let request = RotationRequest {
            operation: self.row(RowKind::Wait),
            arguments: words(&["WAIT", NUMBER_PLACEHOLDER, NUMBER_PLACEHOLDER]),
            pattern: None,
            goes_on: false,
            numbers: vec![
                uniform(wait.replicas),
                NumberLaw::Bell {
                    least: wait.timeout_ms.least,
                    most: wait.timeout_ms.most,
                },
            ],
        };
        self.between = Some(Between {
            request: self.requests.len(),
            counted: sets.then_some(0),
            quotient: u64::from(wait.ratio.first / wait.ratio.second.max(1)),
        });
        self.requests.push(request);
        self.replay_from = self.requests.len();
    }

    pub(super) fn rows(&self) -> RowPlan {
        if self.kinds.iter().any(RowKind::is_command) {
            RowPlan::by_line(&self.kinds)
        } else {
            RowPlan::standard(&self.kinds)
        }
    }

    /// For the engine: a request for each operation where that is all, else a rotation.
    pub(super) fn into_operations(self) -> (Vec<RedisOperation>, Option<Rotation>) {
        let mut operations: Vec<RedisOperation> = self
            .kinds
            .iter()
            .zip(1..)
            .map(|(kind, number)| RedisOperation {
                // Reports of the engine itself need names that differ.
                name: format!("{}#{number}", kind.name()),
                weight: 1,
                arguments: Vec::new(),
                pattern: None,
                numbers: Vec::new(),
            })
            .collect();
        let plain = self.between.is_none()
            && self.steps.len() == operations.len()
            && self.requests.len() == operations.len()
            && (0..)
                .zip(&self.requests)
                .all(|(place, request)| request.operation == place);
        if plain {
            for ((operation, request), step) in
                operations.iter_mut().zip(self.requests).zip(self.steps)
            {
                operation.weight = step.times;
                operation.arguments = request.arguments;
                operation.pattern = request.pattern;
                operation.numbers = request.numbers;
            }
            return (operations, None);
        }
        let rotation = Rotation {
            requests: self.requests.into(),
            steps: self.steps,
            replay_from: self.replay_from,
            between: self.between,
            ..Rotation::default()
        };
        (operations, Some(rotation))
    }
}

/// `GET`, with an offset `GETRANGE`.
pub(super) fn get_words(offset: u32) -> Vec<Vec<u8>> {
    if offset > 0 {
        words(&["GETRANGE", KEY_PLACEHOLDER, &offset.to_string(), "-1"])
    } else {
        words(&["GET", KEY_PLACEHOLDER])
    }
}

/// A scan that begins, and one that goes on; the driver settles which of them is sent.
fn scan(arguments: &[Vec<u8>]) -> Classes {
    let mut classes = Classes::default();
    for name in ["SCAN 0", "SCAN <cursor>"] {
        let request = RotationRequest {
            operation: classes.row(RowKind::Command(name.to_owned())),
            arguments: arguments.to_vec(),
            pattern: Some(KeyPattern::Uniform),
            goes_on: false,
            numbers: Vec::new(),
        };
        classes.send(request, 1);
    }
    classes
}

fn uniform(range: Range) -> NumberLaw {
    NumberLaw::Uniform {
        least: range.least,
        most: range.most,
    }
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}
