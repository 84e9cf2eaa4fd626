//! `kvlab grade [options] TOOL [options of the tool]` and `kvlab grade --all`.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kvlab_bench_client::Control;
use kvlab_bench_client::frontend::{ExitStatus, SignalWatch};
use kvlab_timing::duration;

use super::output;
use crate::grade::mock::{Mock, MockTexts};
use crate::grade::run::{Floors, GradeError, Job};
use crate::grade::scenario::{Aim, Scenario};
use crate::grade::text::{Form, Grading};
use crate::grade::{self, Progress, Sheet, Tool, json, text};
use crate::noise::Machine;
use crate::subject::process::End;
use crate::subject::{self, Load, Subject};
use crate::verdict::Verdict;

/// Options of `kvlab grade`.
#[derive(Args, Clone, Debug)]
#[command(after_help = TOOLS)]
pub struct GradeArgs {
    /// The tool, then its own options, passed on as they are; without options it gets the load of
    /// the scenario
    #[arg(
        value_name = "TOOL",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub tool: Vec<OsString>,

    /// Every tool that is found, side by side, in every standard scenario
    #[arg(long)]
    pub all: bool,

    /// A standard scenario: constant, bimodal, freeze, pipelined, long-freeze, connection-loss; with --all that one
    /// alone, else constant unless a timing of the server is given
    #[arg(long, value_name = "NAME")]
    pub scenario: Option<String>,

    /// A latency rule of the server, as for 'kvlab serve'; may be repeated
    #[arg(long, value_name = "RULE", conflicts_with_all = ["all", "scenario"])]
    pub latency: Vec<String>,

    /// A freeze of the server, as for 'kvlab serve'; may be repeated
    #[arg(long, value_name = "FREEZE", conflicts_with_all = ["all", "scenario"])]
    pub freeze: Vec<String>,

    /// A queue of the server, as for 'kvlab serve': servers=1,service=constant(100us)
    #[arg(long, value_name = "QUEUE", conflicts_with_all = ["all", "scenario"])]
    pub queue: Option<String>,

    /// A moment at which the server ends connections, as for 'kvlab serve'; may be repeated
    #[arg(long, value_name = "CUT", conflicts_with_all = ["all", "scenario"])]
    pub cut: Vec<String>,

    /// Standard scenarios of about half the length
    #[arg(long)]
    pub quick: bool,

    /// A tool that runs longer is killed and counts as hung
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time_limit)]
    pub time_limit: Duration,

    /// How often a run on a machine that was too noisy is tried again [default: 3, with --all 1]
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,

    /// Seed of the server
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// Write the report as JSON to FILE; - is stdout, and the text then goes to stderr
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Print the tables as Markdown
    #[arg(long)]
    pub markdown: bool,

    /// Say nothing while it runs
    #[arg(long, short)]
    pub quiet: bool,
}

const TOOLS: &str = "\
Tools: kvlab, kvlab-aerospike (our own, as processes), redis-benchmark, valkey-benchmark,
memtier_benchmark, asbench; looked for on the PATH. The address of the server and the form of the
report are set by the grading and refused among the tool's options.

The exit status is that of the verdict: 0 for pass, 1 for fail, 3 for void. With --all it is the
verdict over our own tools alone.";

fn time_limit(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text).map_err(|error| error.to_string())?;
    match time {
        time if time.is_zero() => Err("longer than 0".to_owned()),
        time if time > MOST_TIME => Err("at most 1h".to_owned()),
        time => Ok(time),
    }
}

const MOST_TIME: Duration = Duration::from_secs(3600);

/// A complaint about the options.
struct Usage(String);

/// Grades; results go to `out`, everything else to `err`.
pub fn run(args: &GradeArgs, out: &mut dyn Write, err: &mut dyn Write) -> ExitStatus {
    let plan = match Plan::new(args) {
        Ok(plan) => plan,
        Err(Usage(message)) => {
            // Nobody is left to be told when stderr is closed.
            let _ = writeln!(err, "error: {message}");
            return ExitStatus::Usage;
        }
    };
    let control = Control::new();
    let _watch = match SignalWatch::start(control.clone()) {
        Ok(watch) => watch,
        Err(error) => {
            let _ = writeln!(err, "error: cannot watch for signals: {error}");
            return ExitStatus::Failed;
        }
    };
    let mut progress = Lines {
        err,
        is_quiet: args.quiet,
    };
    let graded = plan.carry_out(args, &control, &mut progress);
    let grading = match graded {
        Ok(grading) => grading,
        Err(error) => {
            let _ = writeln!(err, "error: {error}");
            return ExitStatus::Failed;
        }
    };
    let text = text_of(args, &grading);
    let json = || json::render(&grading);
    if let Err(error) = output::write(&text, json, args.json.as_deref(), out, err) {
        let _ = writeln!(err, "error: {error:#}");
        return ExitStatus::Failed;
    }
    if control.is_stopped() {
        return ExitStatus::Interrupted;
    }
    status(args, &grading)
}

/// What is to be done.
struct Plan {
    subjects: Vec<(&'static dyn Subject, PathBuf)>,
    scenarios: Vec<Scenario>,
    options: Option<Vec<OsString>>,
}

impl Plan {
    fn new(args: &GradeArgs) -> Result<Self, Usage> {
        if args.all {
            let subjects = subject::all().into_iter();
            return Ok(Self {
                subjects: subjects
                    .filter_map(|subject| Some((subject, subject.find()?)))
                    .collect(),
                scenarios: match &args.scenario {
                    Some(name) => vec![named(name, args.quick)?],
                    None => Scenario::standard(args.quick),
                },
                options: None,
            });
        }
        let (name, options) = args
            .tool
            .split_first()
            .ok_or_else(|| Usage("name a tool, or use --all".to_owned()))?;
        let name = name.to_string_lossy();
        let names: Vec<&str> = subject::all()
            .iter()
            .map(|subject| subject.name())
            .collect();
        let subject = subject::named(&name).ok_or_else(|| {
            Usage(format!(
                "unknown tool '{name}', expected {}",
                names.join(", ")
            ))
        })?;
        let program = subject
            .find()
            .ok_or_else(|| Usage(format!("{} is not on the PATH", subject.name())))?;
        let shape = subject
            .shape(options)
            .map_err(|error| Usage(format!("{}: {error}", subject.name())))?;
        let rate = match options.is_empty() {
            true => None,
            false => shape.rate,
        };
        let scenario = scenario(args, rate, !options.is_empty())?;
        Ok(Self {
            subjects: vec![(subject, program)],
            scenarios: vec![scenario],
            options: (!options.is_empty()).then(|| options.to_vec()),
        })
    }

    fn carry_out(
        &self,
        args: &GradeArgs,
        control: &Control,
        progress: &mut dyn Progress,
    ) -> Result<Grading, GradeError> {
        let tools = self.subjects.iter().map(|(subject, program)| Tool {
            name: subject.name(),
            version: subject.version(program),
        });
        let mut grading = Grading {
            command: command(args),
            tools: tools.collect(),
            machine: Machine::measure(),
            sheets: Vec::new(),
        };
        let retries = args.retries.unwrap_or(if args.all { 1 } else { 3 });
        let mut floors = Floors::default();
        for scenario in &self.scenarios {
            let mut rows = Vec::new();
            for (subject, program) in &self.subjects {
                let job = Job {
                    program,
                    scenario,
                    options: self.options.as_deref(),
                    time_limit: args.time_limit,
                };
                let graded = grade::grade(*subject, &job, &mut floors, retries, control, progress)?;
                if control.is_stopped() {
                    break;
                }
                rows.push(graded);
            }
            grading.sheets.push(Sheet {
                name: scenario.name.clone(),
                about: scenario.about.clone(),
                server: scenario.mock.to_string(),
                rows,
            });
            if control.is_stopped() {
                break;
            }
        }
        Ok(grading)
    }
}

fn named(name: &str, is_quick: bool) -> Result<Scenario, Usage> {
    Scenario::named(name, is_quick).ok_or_else(|| {
        let names = Scenario::names().join(", ");
        Usage(format!("unknown scenario '{name}', expected {names}"))
    })
}

/// The server and load of a single tool. With options of its own, the tool's load is what they ask
/// for, and what its report is held against follows from whether they ask for a rate.
fn scenario(args: &GradeArgs, rate: Option<f64>, has_options: bool) -> Result<Scenario, Usage> {
    let lists = [&args.latency, &args.freeze, &args.cut];
    let is_own = args.queue.is_some() || lists.iter().any(|list| !list.is_empty());
    let base = args.scenario.as_deref().unwrap_or("constant");
    let mut scenario = named(base, args.quick)?;
    if is_own {
        let texts = MockTexts {
            latency: &args.latency,
            queue: args.queue.as_deref(),
            freezes: &args.freeze,
            cuts: &args.cut,
        };
        let mock = Mock::parse(&texts, args.seed);
        scenario.mock = mock.map_err(|error| Usage(error.to_string()))?;
        scenario.name = "own".to_owned();
        scenario.about = "the server that was asked for".to_owned();
    }
    scenario.mock.seed = args.seed;
    if has_options {
        scenario.aim = match (rate, scenario.aim) {
            (Some(rate), _) => Aim::Timetable { rate },
            // A tool without a rate in a scenario with one is held against that one.
            (None, aim) => aim,
        };
        scenario.load = Load { ..scenario.load };
    }
    Ok(scenario)
}

/// The command, as it would be typed again.
fn command(args: &GradeArgs) -> String {
    let mut words = vec!["kvlab grade".to_owned()];
    if args.all {
        words.push("--all".to_owned());
    }
    if args.quick {
        words.push("--quick".to_owned());
    }
    if let Some(name) = &args.scenario {
        words.push(format!("--scenario {name}"));
    }
    let lists = [
        ("--latency", &args.latency),
        ("--freeze", &args.freeze),
        ("--cut", &args.cut),
    ];
    for (name, texts) in lists {
        words.extend(texts.iter().map(|text| format!("{name} '{text}'")));
    }
    words.extend(args.queue.iter().map(|queue| format!("--queue '{queue}'")));
    words.extend(
        args.tool
            .iter()
            .map(|word| word.to_string_lossy().into_owned()),
    );
    words.join(" ")
}

/// With `--all`, other tools are what they are: only ours decide.
fn status(args: &GradeArgs, grading: &Grading) -> ExitStatus {
    let rows = grading.sheets.iter().flat_map(|sheet| &sheet.rows);
    let judged = rows.filter(|row| !args.all || row.tool.starts_with("kvlab"));
    let worst = judged
        .map(|row| match (row.verdict, row.end) {
            (_, Some(End::Hung | End::Signalled(_))) => Verdict::Fail,
            (verdict, _) => verdict.unwrap_or_default(),
        })
        .max();
    match worst.unwrap_or_default() {
        Verdict::Pass => ExitStatus::Done,
        Verdict::Fail => ExitStatus::Failed,
        Verdict::Void => ExitStatus::Void,
    }
}

fn text_of(args: &GradeArgs, grading: &Grading) -> String {
    match (args.markdown, args.all) {
        (true, _) => text::render(grading, Form::Markdown),
        (false, true) => text::render(grading, Form::Text),
        (false, false) => text::render_tool(grading),
    }
}

/// Progress as lines.
struct Lines<'a> {
    err: &'a mut dyn Write,
    is_quiet: bool,
}

impl Progress for Lines<'_> {
    fn say(&mut self, line: &str) {
        if !self.is_quiet {
            let _ = writeln!(self.err, "{line}");
        }
    }
}
