//! The real shell: one thread and one current-thread runtime per worker.
//!
//! The calling thread starts the workers, lets them begin together once all are set up, and adds
//! up what they send once per interval. Nothing is shared between the workers while they run.

mod cpu;
mod kernel;
mod shell;
mod tls;
mod transport;
mod turns;

use std::io;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use kvlab_timing::{Clock, Stamp, Waiter, WaiterConfig, WallClock, set_timer_slack_1ns};
use tokio::runtime::LocalOptions;
use tokio::sync::watch;
use tokio::task::spawn_local;

pub(super) use self::cpu::CpuTime;
use self::kernel::Stamping;
use self::shell::Shell;
use self::tls::Securing;
use self::transport::Connector;
use self::turns::Turns;
use super::collector::{Collector, Leftover};
use super::recorder::Part;
use super::worker::Worker;
use super::{Control, Observer, RunError, RunResult, shares};
use crate::driver::Driver;
use crate::driver::aerospike::AerospikeDriver;
use crate::driver::redis::RedisDriver;
use crate::driver::redis_cluster::RedisClusterDriver;
use crate::keyspace::{KeySpace, Share};
use crate::record::Tally;
use crate::settings::{Polling, Settings, Target};
use crate::values::ValueBlock;

/// What a worker tells the calling thread.
#[derive(Debug)]
pub(super) enum Message {
    /// Set-up is over: this many connections are up, or it failed.
    Ready { connections: Option<u64> },
    /// An interval is over.
    Part { thread: usize, part: Box<Part> },
    /// The worker is finished.
    Finished {
        thread: usize,
        leftover: Box<Leftover>,
    },
    /// The thread ends, in whichever way.
    Ended,
}

/// What the calling thread tells the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Wait,
    Begin(Stamp),
    GiveUp,
}

/// Runs checked settings.
pub(super) fn run(
    settings: &Settings,
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<RunResult, RunError> {
    let stamping = Stamping::prepare(settings.kernel_stamps, &settings.target)?;
    let securing = settings.tls.as_ref().map(Securing::prepare).transpose()?;
    let connector = Connector::new(stamping.is_on(), securing);
    let block = ValueBlock::new(&settings.values, settings.seed);
    settings.target.rewind();
    let (signal, signals) = watch::channel(Signal::Wait);
    let (messages, inbox) = mpsc::channel();
    let begun = Clock::real().now();
    thread::scope(|scope| {
        let mut returns = Vec::new();
        let mut threads = Vec::new();
        for (number, share) in shares(settings).into_iter().enumerate() {
            let (back, returned) = mpsc::channel();
            returns.push(back);
            let seat = Seat {
                settings,
                share,
                block: block.clone(),
                control: control.clone(),
                number,
                messages: messages.clone(),
                returned,
                signals: signals.clone(),
                connector: connector.clone(),
                begun,
            };
            let alarm = Alarm(messages.clone());
            let thread = thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn_scoped(scope, move || {
                    let _alarm = alarm;
                    seat.run()
                });
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    signal.send_replace(Signal::GiveUp);
                    return Err(RunError::Worker(error));
                }
            }
        }
        drop(messages);
        let host = Host {
            signal: &signal,
            inbox: &inbox,
            returns: &returns,
            stamping: &stamping,
        };
        let result = host.collect(settings, observer);
        for thread in threads {
            match thread.join() {
                Ok(ended) => ended?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        result
    })
}

/// Tells the calling thread when a worker's thread ends, by a panic too, so that it never waits
/// for one that is gone.
struct Alarm(Sender<Message>);

impl Drop for Alarm {
    fn drop(&mut self) {
        // The calling thread may have given up already.
        let _ = self.0.send(Message::Ended);
    }
}

/// The calling thread's side.
struct Host<'a> {
    signal: &'a watch::Sender<Signal>,
    inbox: &'a Receiver<Message>,
    returns: &'a [Sender<Tally>],
    stamping: &'a Stamping,
}

impl Host<'_> {
    fn collect(
        &self,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<RunResult, RunError> {
        let mut collector = Collector::new(settings);
        collector.kernel_stamps(self.stamping.is_on(), self.stamping.missing());
        let mut leftovers: Vec<Option<Leftover>> = Vec::new();
        leftovers.resize_with(self.returns.len(), || None);
        // Threads whose set-up is awaited; `None` when the load has begun or was given up.
        let mut awaited = Some(self.returns.len());
        let mut up = 0;
        // Ends when every worker has dropped its sender.
        for message in self.inbox {
            match message {
                Message::Ready {
                    connections: Some(connections),
                } => {
                    up += connections;
                    awaited = awaited.map(|threads| threads - 1);
                    if awaited == Some(0) {
                        awaited = None;
                        if up == 0 {
                            self.signal.send_replace(Signal::GiveUp);
                            continue;
                        }
                        observer.started(up);
                        let (start, late) = start(settings.start_at_unix_ns);
                        if let Some(late) = late {
                            collector.started_late(late);
                        }
                        self.signal.send_replace(Signal::Begin(start));
                    }
                }
                // One thread that cannot take part ends the run for all.
                Message::Ready { connections: None } | Message::Ended => {
                    if awaited.take().is_some() {
                        self.signal.send_replace(Signal::GiveUp);
                    }
                }
                Message::Part { thread, part } => {
                    let tally = collector.add(thread, *part, observer);
                    // A worker that has ended needs it no more.
                    let _ = self.returns[thread].send(tally);
                }
                Message::Finished { thread, leftover } => {
                    collector.finished(thread, observer);
                    leftovers[thread] = Some(*leftover);
                }
            }
        }
        collector.finish(settings, leftovers.into_iter().flatten().collect())
    }
}

/// All that one worker thread needs.
struct Seat<'a> {
    settings: &'a Settings,
    share: Share,
    block: ValueBlock,
    control: Control,
    number: usize,
    messages: Sender<Message>,
    returned: Receiver<Tally>,
    signals: watch::Receiver<Signal>,
    connector: Connector,
    /// When the set-up of all threads begins.
    begun: Stamp,
}

impl Seat<'_> {
    fn run(self) -> io::Result<()> {
        let settings = self.settings;
        match &settings.target {
            Target::Redis(target) => {
                let (keys, values) = (KeySpace::new(&settings.keys), &settings.values);
                if target.cluster {
                    self.run_with(RedisClusterDriver::new(target, &keys, values))
                } else {
                    self.run_with(RedisDriver::new(target, &keys, values))
                }
            }
            Target::Aerospike(target) => {
                let driver = AerospikeDriver::new(target, settings.timeout);
                self.run_with(match settings.tls {
                    Some(_) => driver.over_tls(),
                    None => driver,
                })
            }
        }
    }

    fn run_with<D: Driver + 'static>(mut self, driver: D) -> io::Result<()> {
        // Where the kernel refuses, waits are a little coarser.
        let _ = set_timer_slack_1ns();
        let turns = Turns::new(Clock::real());
        let (wake, sleep) = (turns.clone(), turns.clone());
        // A local runtime wakes a task of its own thread without a call to the kernel.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .on_thread_unpark(move || wake.wake())
            .on_thread_park(move || sleep.sleep())
            .build_local(LocalOptions::default())?;
        let settings = self.settings;
        let worker = Worker::new(settings, driver, self.share, self.block.clone(), self.begun);
        let shell = Shell::new(
            worker,
            self.control.clone(),
            self.number,
            self.messages.clone(),
            self.returned,
            self.connector,
            turns,
        );
        let messages = self.messages.clone();
        let played = {
            let shell = &shell;
            let signals = &mut self.signals;
            runtime.block_on(async move {
                let config = if settings.spin {
                    WaiterConfig::default()
                } else {
                    WaiterConfig::cheap()
                };
                let pacer = match settings.polling {
                    Polling::Sleep => {
                        let waiter = Waiter::new(Clock::real(), config)?;
                        spawn_local(Rc::clone(shell).pace(waiter))
                    }
                    Polling::Spin => spawn_local(Rc::clone(shell).pace_spinning()),
                };
                let pumper = spawn_local(Rc::clone(shell).pump_on_demand());
                shell.pump();
                shell.set_up().await;
                let connections =
                    shell.with(|worker, _| worker.is_ready().then(|| worker.connections()));
                let _ = messages.send(Message::Ready { connections });
                // The calling thread outlives the workers, so an error cannot come.
                let signal = signals.wait_for(|signal| *signal != Signal::Wait).await;
                match signal.map(|signal| *signal) {
                    Ok(Signal::Begin(start)) => {
                        shell.cpu.borrow_mut().begin(start);
                        shell.with(|worker, now| worker.begin(now, start));
                    }
                    _ => shell.with(|worker, now| worker.stop(now)),
                }
                shell.finished().await;
                let _ = pacer.await;
                let _ = pumper.await;
                io::Result::Ok(())
            })
        };
        // Dropping the tasks closes what sockets are left.
        drop(runtime);
        played?;
        let cpu = shell.cpu.borrow().result();
        let worker = shell
            .into_worker()
            .ok_or_else(|| io::Error::other("a task outlived its runtime"))?;
        let leftover = Box::new(Leftover {
            remains: worker.into_remains(),
            cpu,
        });
        let _ = self.messages.send(Message::Finished {
            thread: self.number,
            leftover,
        });
        Ok(())
    }
}

/// When the load begins, and by how much that is later than asked. The calendar is converted once,
/// now: if it is set after this, the load still begins when it would have.
fn start(at_unix_ns: Option<u64>) -> (Stamp, Option<Duration>) {
    let clock = Clock::real();
    let wanted = at_unix_ns.map(|unix_ns| WallClock::real(clock).stamp_at(unix_ns));
    let soonest = clock.now().add_nanos(START_LEAD_NS);
    let start = wanted.unwrap_or(soonest).max(soonest);
    let late_ns = wanted.map_or(0, |wanted| start.saturating_since(wanted));
    (start, (late_ns > 0).then(|| Duration::from_nanos(late_ns)))
}

/// From the moment all workers are set up to the start of the load: time to wake them all.
const START_LEAD_NS: u64 = 2_000_000;
