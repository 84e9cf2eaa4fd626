//! Attempts to connect as the estimators see them.

use kvlab_timing::Stamp;

use super::{LimitForm, SLOW_NS};
use crate::record::{Cause, ConnectKind, ConnectRow};

/// An attempt that the server decided about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Attempt {
    /// When the server saw it: half a round trip after its begin, or before its end if the kernel
    /// had to repeat it. The moment at which the client noticed would be later, by all that
    /// it was busy with other connections.
    pub(super) at: Stamp,
    /// When the client noticed that it was connected; the server saw it before.
    pub(super) noticed: Stamp,
    pub(super) verdict: Verdict,
    pub(super) ended: Option<Stamp>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// It got a reply; `asked` is when it could first have got one.
    Served { asked: Stamp, reply: Stamp },
    /// It was turned away; whether with words about the number of connections.
    Away { form: LimitForm },
    /// Neither was seen.
    Unknown,
}

impl Attempt {
    fn of(row: &ConnectRow, leg_ns: u64) -> Option<Self> {
        let away = |form| Verdict::Away { form };
        let verdict = match (row.cause, row.first_reply) {
            (Some(Cause::Refused), _) => away(LimitForm::Refuse),
            (Some(Cause::ResetBeforeReply), _) => away(LimitForm::Reset),
            (Some(Cause::ClosedBeforeReply), _) => away(LimitForm::Close),
            (Some(Cause::ErrorLine(_)), _) => away(LimitForm::ErrorLine),
            (_, Some(reply)) => Verdict::Served {
                asked: row.first_sent?.max(row.secured.or(row.connected)?),
                reply,
            },
            _ => Verdict::Unknown,
        };
        let at = match (row.cause, row.connected) {
            (Some(Cause::Refused), _) => row.begun,
            (_, Some(connected)) if row.tcp_ns() >= Some(SLOW_NS) => connected.sub_nanos(leg_ns),
            (_, Some(_)) => row.begun.add_nanos(leg_ns),
            (_, None) => return None,
        };
        Some(Self {
            at,
            noticed: row.connected.unwrap_or(at),
            verdict,
            ended: row.ended,
        })
    }

    pub(super) fn is_served(&self) -> bool {
        matches!(self.verdict, Verdict::Served { .. })
    }
}

/// The attempts of load connections in the order in which the server saw them. Of those of one
/// moment the served ones come first: a server that turns some away served the others before.
pub(super) fn attempts(rows: &[ConnectRow]) -> Vec<Attempt> {
    let loads = || rows.iter().filter(|row| row.kind == ConnectKind::Load);
    // Neither a connect call nor a reply is faster than a round trip; a busy client sees either later.
    let connects = loads().filter_map(ConnectRow::tcp_ns).min();
    let replies = loads().filter_map(ConnectRow::first_reply_ns).min();
    let leg_ns = connects.into_iter().chain(replies).min().unwrap_or(0) / 2;
    let mut attempts: Vec<Attempt> = loads().filter_map(|row| Attempt::of(row, leg_ns)).collect();
    attempts.sort_by_key(|attempt| (attempt.at, !attempt.is_served()));
    attempts
}
