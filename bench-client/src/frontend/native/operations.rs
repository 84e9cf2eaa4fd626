//! Options of the operations: what is sent, in the terms of the protocol.

use std::num::NonZeroU32;
use std::str::FromStr;

use clap::{Args, ValueEnum};

use super::quantity::Call;
use super::url::{Place, TargetUrl};
use super::{Addresses, UsageError};
use crate::settings::{
    AerospikeOperation, AerospikeTarget, AerospikeVerb, MixOrder, RedisOperation, RedisTarget,
    RespVersion, Retries, Settings, Target,
};

/// What is sent, in the terms of the protocol.
#[derive(Args, Clone, Debug)]
#[group(skip)]
#[command(next_help_heading = "Operations")]
pub struct OperationArgs {
    /// Weights of SET and GET (Aerospike: put and get) [default: 1:10]
    #[arg(long, value_name = "SET:GET")]
    pub ratio: Option<Ratio>,

    /// RESP: a command instead of SET and GET, as in 'HSET __key__ f __data__'; __key__ and
    /// __data__ are filled in. Repeat for a mix, with a weight in front, as in '3:INCR __key__'
    #[arg(long, value_name = "[WEIGHT:]COMMAND")]
    pub command: Vec<String>,

    /// Aerospike: an operation instead of put and get: put, get, exists, remove, touch, operate or
    /// batch-read(N). Repeat, or part with commas, for a mix, as in 9:get,1:put
    #[arg(long, value_name = "[WEIGHT:]NAME", value_delimiter = ',')]
    pub operation: Vec<String>,

    /// Order in which the operations of a mix follow each other [default: random]
    #[arg(long, value_name = "ORDER", value_enum)]
    pub mix: Option<MixArg>,

    /// RESP: version of the protocol; 3 sends HELLO 3 [default: 2]
    #[arg(long, value_name = "2|3", value_parser = resp_version)]
    pub resp: Option<RespVersion>,

    /// Aerospike: bin that holds the value [default: b]
    #[arg(long, value_name = "NAME")]
    pub bin: Option<String>,

    /// Aerospike: time to live of written records in seconds; 0 is the namespace's default
    /// [default: 0]
    #[arg(long, value_name = "SECONDS")]
    pub ttl: Option<u32>,

    /// Aerospike: store the key itself with the record
    #[arg(long)]
    pub send_key: bool,

    /// Aerospike: attempts of an operation after a first one that failed [default: 0]
    #[arg(long, value_name = "N")]
    pub retries: Option<u8>,
}

/// Weights of writes and reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Of SET, or put.
    pub write: u32,
    /// Of GET, or get.
    pub read: u32,
}

/// Order in which the operations of a mix follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MixArg {
    /// Drawn by weight from the seeded stream
    Random,
    /// A fixed cycle, each operation as often in a row as its weight says
    Cycle,
}

impl OperationArgs {
    /// The target that URL and options describe.
    pub(super) fn target(
        &self,
        url: &TargetUrl,
        addresses: &Addresses,
    ) -> Result<Target, UsageError> {
        match &url.place {
            Place::Redis { database } => {
                self.refuse("aerospike://", self.aerospike_only())?;
                let mut target = RedisTarget::new(addresses.first, 0, 0);
                target.database = *database;
                target.version = self.resp.unwrap_or_default();
                target.operations = self.redis_operations()?;
                Ok(Target::Redis(target))
            }
            Place::Aerospike { namespace, set } => {
                self.refuse("redis://", self.redis_only())?;
                let mut target = AerospikeTarget::new(addresses.first, namespace, set, 0, 0);
                target.seeds = addresses.all();
                target.operations = self.aerospike_operations()?;
                if let Some(bin) = &self.bin {
                    target.bin = bin_name(bin)?;
                }
                target.ttl = self.ttl.unwrap_or(target.ttl);
                target.send_key = self.send_key;
                if let Some(most) = self.retries {
                    target.retries = Retries { most };
                }
                Ok(Target::Aerospike(target))
            }
        }
    }

    /// Writes what is common to both protocols into the settings.
    pub(super) fn apply(&self, settings: &mut Settings) {
        settings.mix = match self.mix {
            None | Some(MixArg::Random) => MixOrder::Random,
            Some(MixArg::Cycle) => MixOrder::Cycle,
        };
    }

    fn redis_only(&self) -> Option<&'static str> {
        [
            (!self.command.is_empty(), "--command"),
            (self.resp.is_some(), "--resp"),
        ]
        .into_iter()
        .find_map(|(given, option)| given.then_some(option))
    }

    fn aerospike_only(&self) -> Option<&'static str> {
        [
            (!self.operation.is_empty(), "--operation"),
            (self.bin.is_some(), "--bin"),
            (self.ttl.is_some(), "--ttl"),
            (self.send_key, "--send-key"),
            (self.retries.is_some(), "--retries"),
        ]
        .into_iter()
        .find_map(|(given, option)| given.then_some(option))
    }

    fn refuse(&self, scheme: &str, option: Option<&'static str>) -> Result<(), UsageError> {
        option.map_or(Ok(()), |option| {
            Err(UsageError::new(
                option,
                format!("a URL of the form {scheme}…"),
                "another protocol",
            ))
        })
    }

    fn ratio_beside(&self, option: &'static str) -> Result<(), UsageError> {
        match self.ratio {
            None => Ok(()),
            Some(_) => Err(UsageError::new(
                "--ratio",
                format!("either --ratio or {option}"),
                "both",
            )),
        }
    }

    fn redis_operations(&self) -> Result<Vec<RedisOperation>, UsageError> {
        if self.command.is_empty() {
            let Ratio { write, read } = self.ratio.unwrap_or(DEFAULT_RATIO);
            let mut operations = vec![RedisOperation::set(write), RedisOperation::get(read)];
            operations.retain(|operation| operation.weight > 0);
            return Ok(operations);
        }
        self.ratio_beside("--command")?;
        let mut operations = Vec::new();
        for text in &self.command {
            let (weight, command) = weighted("--command", text)?;
            operations.push(RedisOperation::parse(command, weight)?);
        }
        number_twins(operations.iter_mut().map(|operation| &mut operation.name));
        Ok(operations)
    }

    fn aerospike_operations(&self) -> Result<Vec<AerospikeOperation>, UsageError> {
        if self.operation.is_empty() {
            let Ratio { write, read } = self.ratio.unwrap_or(DEFAULT_RATIO);
            let mut operations = vec![
                AerospikeOperation::new(AerospikeVerb::Put, write),
                AerospikeOperation::new(AerospikeVerb::Get, read),
            ];
            operations.retain(|operation| operation.weight > 0);
            return Ok(operations);
        }
        self.ratio_beside("--operation")?;
        let mut operations = Vec::new();
        for text in &self.operation {
            let (weight, name) = weighted("--operation", text)?;
            let verb =
                verb(name).map_err(|expected| UsageError::new("--operation", expected, name))?;
            operations.push(AerospikeOperation::new(verb, weight));
        }
        number_twins(operations.iter_mut().map(|operation| &mut operation.name));
        Ok(operations)
    }
}

/// Splits `3:INCR __key__` into weight and rest; without a number in front the weight is 1.
fn weighted<'a>(option: &'static str, text: &'a str) -> Result<(u32, &'a str), UsageError> {
    match text.split_once(':') {
        Some((weight, rest))
            if !weight.is_empty() && weight.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            let weight = weight
                .parse()
                .map_err(|_| UsageError::new(option, "a weight below 2^32", weight))?;
            Ok((weight, rest.trim_start()))
        }
        _ => Ok((1, text.trim())),
    }
}

fn verb(text: &str) -> Result<AerospikeVerb, String> {
    let call = Call::parse(text)?;
    let plain = |verb| call.arguments([]).map(|[]| verb);
    match call.name {
        "put" => plain(AerospikeVerb::Put),
        "get" => plain(AerospikeVerb::Get),
        "exists" => plain(AerospikeVerb::Exists),
        "remove" => plain(AerospikeVerb::Remove),
        "touch" => plain(AerospikeVerb::Touch),
        "operate" => plain(AerospikeVerb::Operate),
        "batch-read" | "batch" => {
            let [records] = call.arguments(["records"])?;
            let records = records.map_or(Ok(DEFAULT_BATCH), str::parse);
            records
                .ok()
                .filter(|records| records.get() <= MAX_BATCH)
                .map(AerospikeVerb::BatchRead)
                .ok_or_else(|| format!("a batch of 1 to {MAX_BATCH} records"))
        }
        _ => Err("put, get, exists, remove, touch, operate or batch-read(N)".to_owned()),
    }
}

fn bin_name(name: &str) -> Result<String, UsageError> {
    if (1..=MAX_BIN_NAME).contains(&name.len()) {
        Ok(name.to_owned())
    } else {
        Err(UsageError::new(
            "--bin",
            format!("a name of 1 to {MAX_BIN_NAME} bytes"),
            format_args!("{name:?}"),
        ))
    }
}

/// Gives operations of equal names a number, so that every line of a report has its own name.
fn number_twins<'a>(names: impl Iterator<Item = &'a mut String>) {
    let mut seen: Vec<(String, u32)> = Vec::new();
    for name in names {
        match seen.iter_mut().find(|(other, _)| other == name) {
            Some((_, times)) => {
                *times += 1;
                *name = format!("{name}#{times}");
            }
            None => seen.push((name.clone(), 1)),
        }
    }
}

fn resp_version(text: &str) -> Result<RespVersion, String> {
    match text {
        "2" => Ok(RespVersion::Two),
        "3" => Ok(RespVersion::Three),
        _ => Err("expected 2 or 3".to_owned()),
    }
}

impl FromStr for Ratio {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected two whole numbers, as in 1:10, found {text:?}");
        let (write, read) = text.split_once(':').ok_or_else(wrong)?;
        let ratio = Self {
            write: write.parse().map_err(|_| wrong())?,
            read: read.parse().map_err(|_| wrong())?,
        };
        if ratio.write == 0 && ratio.read == 0 {
            return Err("expected at least one number above 0".to_owned());
        }
        Ok(ratio)
    }
}

/// Ratio without `--ratio`, as with memtier_benchmark.
const DEFAULT_RATIO: Ratio = Ratio { write: 1, read: 10 };
/// Records of a `batch-read` without a number.
const DEFAULT_BATCH: NonZeroU32 = match NonZeroU32::new(10) {
    Some(records) => records,
    None => NonZeroU32::MIN,
};
/// Bound of the records of one batch: the default bound of a server.
const MAX_BATCH: u32 = 5_000;
/// Bound of a bin name in bytes, as on the wire.
const MAX_BIN_NAME: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_two_numbers() {
        assert_eq!("1:10".parse(), Ok(Ratio { write: 1, read: 10 }));
        assert_eq!("0:1".parse(), Ok(Ratio { write: 0, read: 1 }));
        for text in ["", "1", "0:0", "1:2:3", "-1:1", "a:b"] {
            assert!(text.parse::<Ratio>().is_err(), "{text}");
        }
    }

    #[test]
    fn weights_stand_in_front() {
        assert_eq!(
            weighted("--command", "3:INCR __key__"),
            Ok((3, "INCR __key__"))
        );
        assert_eq!(weighted("--command", "SET a:b 1"), Ok((1, "SET a:b 1")));
        assert_eq!(weighted("--command", ":x"), Ok((1, ":x")));
        assert!(weighted("--command", "4294967296:GET x").is_err());
    }

    #[test]
    fn verbs_are_read() {
        let ten = NonZeroU32::new(10).unwrap();
        let table = [
            ("put", AerospikeVerb::Put),
            ("get", AerospikeVerb::Get),
            ("exists", AerospikeVerb::Exists),
            ("remove", AerospikeVerb::Remove),
            ("touch", AerospikeVerb::Touch),
            ("operate", AerospikeVerb::Operate),
            ("batch-read", AerospikeVerb::BatchRead(ten)),
            ("batch(10)", AerospikeVerb::BatchRead(ten)),
        ];
        for (text, expected) in table {
            assert_eq!(verb(text), Ok(expected), "{text}");
        }
        for text in ["", "scan", "get(1)", "batch-read(0)", "batch-read(5001)"] {
            assert!(verb(text).is_err(), "{text}");
        }
    }

    #[test]
    fn operations_of_one_name_are_numbered() {
        let mut names: Vec<String> = ["HSET", "GET", "HSET", "HSET"].map(str::to_owned).into();
        number_twins(names.iter_mut());
        assert_eq!(names, ["HSET", "GET", "HSET#2", "HSET#3"]);
    }
}
