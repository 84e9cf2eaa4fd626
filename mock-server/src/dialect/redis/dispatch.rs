//! From a request to a running command, with the checks of a real server in their order: does the
//! command exist, does it have its arguments, may this client run it, is it queued in a
//! transaction, is the server paused.

use super::acl;
use super::call::{Call, Outcome};
use super::fault::Fault;
use super::row::flag;
use super::table::{Command, Passage};
use crate::dialect::Flow;

/// What a request names.
#[derive(Debug, Clone, Copy)]
pub enum Named {
    /// A command, or a subcommand.
    Command(&'static Command),
    /// A command with an unknown subcommand.
    UnknownSubcommand(&'static Command),
    /// Nothing that exists.
    Unknown,
}

impl Named {
    /// Whether it is the command of this name, which is no container.
    #[inline]
    #[must_use]
    pub fn is(self, name: &[u8]) -> bool {
        match self {
            Self::Command(command) => {
                !command.is_container()
                    && !command.is_subcommand
                    && command.name.as_bytes().eq_ignore_ascii_case(name)
            }
            _ => false,
        }
    }
}

/// Runs the command of `call`, or queues it, or refuses it.
pub fn dispatch(call: &mut Call<'_, '_>) -> Outcome {
    let command = call.command;
    let is_full = call.state().is_over_memory() && !make_room(call);
    if let Some(fault) = refusal(call, command, is_full) {
        return Err(reject(call, command.ordinal, fault));
    }
    let pause = &call.state().pause;
    if pause.is_set()
        && let Some(until) = pause.until(call.context.now, may_write(call, command))
    {
        return Ok(Flow::Park { until: Some(until) });
    }
    if let Some(transaction) = &mut call.peer.transaction
        && !command.row.runs_in_transaction()
    {
        transaction.queued.push((command, call.args.to_owned()));
        transaction.may_write |= is_write(command);
        let queued = transaction.queued.len();
        call.context.client.details().multi = Some(queued);
        return call.simple("QUEUED");
    }
    let gate = &call.context.shared.gate;
    let _pass = match command.passage {
        Passage::Free => None,
        Passage::Shared => Some(gate.shared(call.context.worker)),
        Passage::SharedUpTo(args) if call.args.len() <= args => {
            Some(gate.shared(call.context.worker))
        }
        Passage::SharedUpTo(_) | Passage::Exclusive => Some(gate.exclusive()),
    };
    run(call)
}

/// Runs the command of `call`, which passed all checks and holds what it needs.
pub fn run(call: &mut Call<'_, '_>) -> Outcome {
    let outcome = (call.command.row.run)(call);
    let lane = call.state().counters.lane(call.context.worker);
    let calls = lane.calls(call.command.ordinal);
    match &outcome {
        Ok(Flow::Park { .. }) => {}
        Ok(_) => {
            lane.commands.add(1);
            calls.calls.add(1);
        }
        Err(fault) => {
            lane.commands.add(1);
            calls.calls.add(1);
            calls.failed.add(1);
            call.state().counters.count_error(fault.code());
        }
    }
    outcome
}

/// The error for a request that names no command.
pub fn unknown(call_args: kvlab_protocol::resp::Args<'_>, named: Named) -> Fault {
    match named {
        Named::UnknownSubcommand(container) => {
            Fault::unknown_subcommand(container.name, call_args.arg(1))
        }
        _ => Fault::unknown_command(call_args.name(), call_args.from(1).iter()),
    }
}

/// Why the command may not run, if it may not.
fn refusal(call: &mut Call<'_, '_>, command: &'static Command, is_full: bool) -> Option<Fault> {
    if !command.row.accepts(call.args.len()) {
        return Some(Fault::wrong_arity(command.name));
    }
    if call.peer.has_to_log_in() && command.row.flags & flag::NO_AUTH == 0 {
        return Some(Fault::NO_AUTH);
    }
    if let Some(blocked) = &call.state().blocked {
        let who = (call.state().version, call.peer.user.name());
        let fault = blocked.refuses_permission(command, who);
        if fault.is_some() {
            call.context.limited.blocked = true;
            return fault;
        }
    }
    if call.peer.transaction.is_some() && command.row.flags & flag::NO_MULTI != 0 {
        return Some(Fault::new("ERR Command not allowed inside a transaction"));
    }
    if !call.peer.user.is_unrestricted()
        && let Err(denial) = acl::permit(call)
    {
        let (version, user) = (call.state().version, call.peer.user.name());
        return Some(Fault::denied(version, user, command.name, denial));
    }
    if is_full && may_take_memory(call, command) {
        call.context.limited.out_of_memory += 1;
        return Some(Fault::OUT_OF_MEMORY);
    }
    None
}

/// Evicts what may go; whether memory is within its limit then.
#[cold]
fn make_room(call: &mut Call<'_, '_>) -> bool {
    let context = &mut *call.context;
    let evictor = &context.shared.redis.evictor;
    let (evicted, has_room) = evictor.evict(context.shared, context.worker, context.now);
    context.limited.evicted += evicted;
    has_room
}

/// Whether the command is refused when there is no memory: it may need some, or it is EXEC and one of
/// its commands may, or it would be queued, which needs some too.
fn may_take_memory(call: &Call<'_, '_>, command: &Command) -> bool {
    let takes = |command: &Command| command.row.flags & flag::DENYOOM != 0;
    takes(command)
        || call.peer.transaction.as_ref().is_some_and(|transaction| {
            if command.row.flags & flag::RUNS_OTHERS != 0 {
                transaction.queued.iter().any(|(queued, _)| takes(queued))
            } else {
                !command.row.runs_in_transaction()
            }
        })
}

fn reject(call: &mut Call<'_, '_>, ordinal: u16, fault: Fault) -> Fault {
    let state = call.state();
    state
        .counters
        .lane(call.context.worker)
        .calls(ordinal)
        .rejected
        .add(1);
    if call.command.row.flags & flag::RUNS_OTHERS != 0 {
        // An EXEC that cannot even start takes its transaction down with it.
        call.peer.discard(state);
        call.context.client.details().multi = None;
        let mut text = b"EXECABORT Transaction discarded because of: ".to_vec();
        text.extend_from_slice(fault.text().strip_prefix(b"ERR ").unwrap_or(fault.text()));
        let fault = Fault::from_bytes(text);
        state.counters.count_error(fault.code());
        return fault;
    }
    if let Some(transaction) = &mut call.peer.transaction {
        transaction.broken = true;
    }
    state.counters.count_error(fault.code());
    fault
}

#[inline]
fn is_write(command: &Command) -> bool {
    command.row.flags & (flag::WRITE | flag::MAY_REPLICATE) != 0
}

/// Whether a pause of writes holds the command.
#[inline]
fn may_write(call: &Call<'_, '_>, command: &Command) -> bool {
    is_write(command)
        || (command.row.flags & flag::RUNS_OTHERS != 0
            && call
                .peer
                .transaction
                .as_ref()
                .is_some_and(|transaction| transaction.may_write))
}
