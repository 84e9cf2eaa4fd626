//! What is sent: from the traffic of a [`Plan`] to operations of the engine.
//!
//! ```text
//! --ratio 1:10                 SET key value, then GET key ten times, and so on
//! --command A --command-ratio 2 --command B    A A B A A B …
//! __monitor_line@__            the lines of the capture in their order, or drawn
//! ```

use kvlab_protocol::resp::request::{DATA_PLACEHOLDER, KEY_PLACEHOLDER};

use super::Name;
use super::command::{keys_in, name_of};
use super::model::RowKind;
use super::options::Breakdown;
use super::pattern::Pattern;
use super::plan::{Plan, Request, SetGet, Step, Traffic};
use super::recorder::RowPlan;
use super::translate::Lack;
use crate::settings::{KeyPattern, MAX_CLASSES, MixOrder, RedisOperation};

impl Plan {
    /// The operations of a run, and the row of each.
    ///
    /// # Errors
    /// The first thing asked for that the engine cannot do.
    pub(super) fn classes(&self) -> Result<Classes, Lack> {
        match &self.traffic {
            Traffic::SetGet(both) => self.set_and_get(both),
            Traffic::Commands(steps) => self.rotation(steps),
            Traffic::Scan { arguments, .. } => Ok(scan(arguments)),
        }
    }

    fn set_and_get(&self, both: &SetGet) -> Result<Classes, Lack> {
        if both.wait.is_some() {
            return Err(Lack::new(Name::WaitRatio, "WAIT between SETs"));
        }
        let mut classes = Classes::default();
        let set = self.set_arguments()?;
        classes.add(
            RowKind::Set,
            set,
            both.ratio.first,
            self.key_pattern(both.patterns.set),
        );
        let (get, weight) = self.get_arguments(both)?;
        classes.add(
            RowKind::Get,
            get,
            weight,
            self.key_pattern(both.patterns.get),
        );
        Ok(classes)
    }

    /// `SET`, with a time to live `SETEX`, with an offset `SETRANGE`, as the original writes.
    fn set_arguments(&self) -> Result<Vec<Vec<u8>>, Lack> {
        let values = &self.values;
        Ok(match values.expiry {
            Some(range) if range.least == range.most => words(&[
                "SETEX",
                KEY_PLACEHOLDER,
                &range.most.to_string(),
                DATA_PLACEHOLDER,
            ]),
            Some(_) => {
                return Err(Lack::new(
                    Name::ExpiryRange,
                    "a time to live that differs from value to value",
                ));
            }
            None if values.offset > 0 => words(&[
                "SETRANGE",
                KEY_PLACEHOLDER,
                &values.offset.to_string(),
                DATA_PLACEHOLDER,
            ]),
            None => words(&["SET", KEY_PLACEHOLDER, DATA_PLACEHOLDER]),
        })
    }

    /// `GET`, with an offset `GETRANGE`, for several keys `MGET`, and how often in a row.
    fn get_arguments(&self, both: &SetGet) -> Result<(Vec<Vec<u8>>, u32), Lack> {
        let reads = both.ratio.second;
        if both.keys_per_get > 1 {
            if both.patterns.get != Pattern::Random {
                return Err(Lack::new(
                    Name::MultiKeyGet,
                    "another key pattern than R for MGET",
                ));
            }
            let keys = usize::try_from(both.keys_per_get).unwrap_or(usize::MAX);
            let mut get = words(&["MGET"]);
            get.extend(std::iter::repeat_n(
                KEY_PLACEHOLDER.as_bytes().to_vec(),
                keys,
            ));
            // The ratio counts keys: so many MGETs as are needed for them.
            return Ok((get, reads.div_ceil(both.keys_per_get)));
        }
        let offset = self.values.offset;
        let get = if offset > 0 {
            words(&["GETRANGE", KEY_PLACEHOLDER, &offset.to_string(), "-1"])
        } else {
            words(&["GET", KEY_PLACEHOLDER])
        };
        Ok((get, reads))
    }

    /// The commands in their order. A replay takes the next commands of its file each time its turn
    /// comes, so the rotation is written out until the file is through.
    fn rotation(&self, steps: &[Step]) -> Result<Classes, Lack> {
        if let [
            Step {
                request:
                    Request::Replay {
                        commands,
                        random: true,
                    },
                ..
            },
        ] = steps
        {
            return self.drawn(commands);
        }
        let mut classes = Classes::default();
        let mut replayed = 0_usize;
        let too_many = || {
            Lack::new(
                Name::Command,
                format!("a rotation of more than {MAX_CLASSES} commands, replayed ones included,"),
            )
        };
        loop {
            let mut through = true;
            for step in steps {
                let pattern = self.key_pattern(step.pattern);
                match &step.request {
                    Request::Arguments(arguments) => {
                        if keys_in(arguments) > 1 && step.pattern != Pattern::Random {
                            return Err(Lack::new(
                                Name::CommandKeyPattern,
                                "another pattern than R for a command with several keys",
                            ));
                        }
                        let kind = RowKind::Command(step.name.clone());
                        classes.add(kind, arguments.clone(), step.ratio, pattern);
                    }
                    Request::Replay { random: true, .. } => {
                        return Err(Lack::new(
                            Name::MonitorPattern,
                            "a random replay beside other commands",
                        ));
                    }
                    Request::Replay { commands, .. } => {
                        for _ in 0..step.ratio {
                            let Some(arguments) = commands.get(replayed % commands.len()) else {
                                break;
                            };
                            classes.add_replayed(arguments, pattern);
                            replayed += 1;
                            if classes.operations.len() > MAX_CLASSES {
                                return Err(too_many());
                            }
                        }
                        through &= replayed.is_multiple_of(commands.len());
                    }
                }
            }
            if classes.operations.len() > MAX_CLASSES {
                return Err(too_many());
            }
            if through {
                return Ok(classes);
            }
        }
    }

    /// Commands of a capture, each as likely as any other.
    fn drawn(&self, commands: &[Vec<Vec<u8>>]) -> Result<Classes, Lack> {
        let mut classes = Classes {
            order: MixOrder::Random,
            ..Classes::default()
        };
        for arguments in commands {
            classes.add_replayed(arguments, self.key_pattern(Pattern::Random));
        }
        if classes.operations.len() > MAX_CLASSES {
            return Err(Lack::new(
                Name::MonitorInput,
                format!("a random replay of more than {MAX_CLASSES} commands"),
            ));
        }
        Ok(classes)
    }
}

/// The operations, with the row of each.
#[derive(Clone, Debug)]
pub(super) struct Classes {
    pub(super) operations: Vec<RedisOperation>,
    kinds: Vec<RowKind>,
    pub(super) order: MixOrder,
}

impl Default for Classes {
    fn default() -> Self {
        Self {
            operations: Vec::new(),
            kinds: Vec::new(),
            order: MixOrder::Cycle,
        }
    }
}

impl Classes {
    /// Adds an operation, unless it is never sent.
    fn add(&mut self, kind: RowKind, arguments: Vec<Vec<u8>>, weight: u32, pattern: KeyPattern) {
        if weight == 0 {
            return;
        }
        self.operations.push(RedisOperation {
            // Reports of the engine itself need names that differ.
            name: format!("{}#{}", kind.name(), self.operations.len() + 1),
            weight,
            arguments,
            pattern: Some(pattern),
        });
        self.kinds.push(kind);
    }

    /// Adds a command of a capture under its own name.
    fn add_replayed(&mut self, arguments: &[Vec<u8>], pattern: KeyPattern) {
        let kind = RowKind::Command(name_of(arguments));
        self.add(kind, arguments.to_vec(), 1, pattern);
    }

    pub(super) fn rows(&self, breakdown: Breakdown) -> RowPlan {
        match breakdown {
            _ if !self.kinds.iter().any(RowKind::is_command) => RowPlan::standard(&self.kinds),
            Breakdown::Command => RowPlan::by_command(&self.kinds),
            Breakdown::Line => RowPlan::by_line(&self.kinds),
        }
    }
}

/// A scan that begins, and one that goes on; the driver settles which of them is sent.
fn scan(arguments: &[Vec<u8>]) -> Classes {
    let mut classes = Classes::default();
    let kind = |name: &str| RowKind::Command(name.to_owned());
    let pattern = KeyPattern::Uniform;
    classes.add(kind("SCAN 0"), arguments.to_vec(), 1, pattern);
    classes.add(kind("SCAN <cursor>"), arguments.to_vec(), 1, pattern);
    classes
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}
