//! Pairs Jepsen's events: an invocation and the next completion of its process make one transaction.
//!
//! A process runs one operation at a time. Where a file breaks that, the process counts as several sessions, none of
//! which overlaps itself, so that no order is claimed that was not there.

use kingsnake_history::model::{HistoryBuilder, Status, Token};

use super::events::{EventId, EventKind, Events, MicroOp, numbered};
use super::feed::JepsenFeed;
use super::processes::{Lanes, Processes, Waiting};
use super::survey::{LogClock, Survey};
use crate::cursor::Input;
use crate::error::{InputProblem, ReadError};

/// A transaction: its invocation, its completion, or both.
#[derive(Clone, Copy)]
pub(super) enum Txn {
    Invoked(EventId),
    Completed(EventId),
    Both(EventId, EventId),
}

impl Txn {
    pub(super) fn invoke(self) -> Option<EventId> {
        match self {
            Txn::Invoked(invoke) | Txn::Both(invoke, _) => Some(invoke),
            Txn::Completed(_) => None,
        }
    }

    pub(super) fn completion(self) -> Option<EventId> {
        match self {
            Txn::Completed(completion) | Txn::Both(_, completion) => Some(completion),
            Txn::Invoked(_) => None,
        }
    }

    fn first(self) -> EventId {
        match self {
            Txn::Invoked(it) | Txn::Completed(it) | Txn::Both(it, _) => it,
        }
    }

    fn last(self) -> EventId {
        match self {
            Txn::Invoked(it) | Txn::Completed(it) | Txn::Both(_, it) => it,
        }
    }
}

/// Number of transactions looked up at once.
const AHEAD: usize = 32;

/// Makes a history of the events.
pub(super) fn build(
    input: Input<'_>,
    events: &Events,
    builder: &mut HistoryBuilder,
    warnings: &mut Vec<String>,
) -> Result<(), ReadError> {
    let txns = pair(events);
    let survey = Survey::of(events);
    let clock = survey.clock();
    if !survey.has_lists {
        builder.initial_everywhere(Token::Nil);
    }
    events.declare(input, builder)?;
    let mut feed = JepsenFeed::new(input, events, survey.has_lists);
    let mut lanes = Lanes::default();
    builder.reserve_ops(survey.n_steps);
    builder.reserve_txns(txns.len(), survey.n_writes);
    let mut polled = input.polled();
    for (place, &(txn, process)) in txns.iter().enumerate() {
        polled.step()?;
        if place % AHEAD == 0 {
            touch(events, &txns[place..txns.len().min(place + AHEAD)]);
        }
        let last = events.event(txn.last());
        let name = Token::Int(if survey.has_index {
            last.index.get().unwrap_or(0)
        } else {
            events.number(txn.last())
        });
        let status = match txn.completion().map(|id| events.event(id).kind) {
            Some(EventKind::Ok) => Status::Committed,
            Some(EventKind::Fail) => Status::Aborted,
            _ => Status::Unknown,
        };
        let is_over = status != Status::Unknown;
        let span = (txn.first(), txn.completion().filter(|_| is_over));
        let session = lanes.session(process, last.process, span, builder);
        builder
            .begin(session, name, status)
            .map_err(|error| input.error_in_line(last.at, error))?;
        let begin = txn.invoke().and_then(|id| moment(clock, events, id));
        let commit = txn.completion().filter(|_| is_over);
        let commit = commit.and_then(|id| moment(clock, events, id));
        if let (Some(begin), Some(commit)) = (begin, commit)
            && commit < begin
        {
            let words =
                format!("the operation completes at {commit}, before it is invoked at {begin}");
            return Err(input.error_in_line(last.at, InputProblem::Contradiction(words)));
        }
        if begin.is_some() || commit.is_some() {
            builder.times(begin, commit);
        }
        feed.steps(txn, status, builder)?;
    }
    if lanes.n_overlapping > 0 {
        warnings.push(format!(
            "{} operations overlap another of their process; the process counts as several sessions",
            lanes.n_overlapping
        ));
    }
    Ok(())
}

/// Loads the completions of some transactions and their steps, all at once: where many clients run side by side, each stands far
/// from its invocation, and waiting for one after the other would take longer than all the rest.
fn touch(events: &Events, txns: &[(Txn, u32)]) {
    let mut touched = 0;
    for (txn, _) in txns {
        touched ^= events.event(txn.last()).steps.0;
    }
    for (txn, _) in txns {
        touched ^= events.steps(txn.last()).len() as u32;
        touched ^= events
            .steps(txn.last())
            .first()
            .map_or(0, |it| it.action as u32);
    }
    std::hint::black_box(touched);
}

/// The transactions, in order of their first events, each with the number of its process.
fn pair(events: &Events) -> Vec<(Txn, u32)> {
    let mut txns: Vec<(Txn, u32)> = Vec::with_capacity(events.n_events().div_ceil(2));
    let mut processes = Processes::default();
    let mut waiting = Waiting::default();
    for (id, event) in numbered(&events.parts) {
        let process = processes.number(event.process);
        if event.kind == EventKind::Invoke {
            waiting.push(process, txns.len() as u32);
            txns.push((Txn::Invoked(id), process));
            continue;
        }
        let fits = |txn: u32| completes(events, txns[txn as usize].0.first(), id);
        match waiting.take(process, fits) {
            Some(txn) => {
                let (txn, _) = &mut txns[txn as usize];
                *txn = Txn::Both(txn.first(), id);
            }
            None => txns.push((Txn::Completed(id), process)),
        }
    }
    txns
}

/// Whether a completion has the steps of an invocation, but for what the reads returned.
fn completes(events: &Events, invoke: EventId, completion: EventId) -> bool {
    let (asked, done) = (events.steps(invoke), events.steps(completion));
    let same = |(a, b): (&MicroOp, &MicroOp)| {
        a.action == b.action && a.key == b.key && (a.action.is_read() || a.content == b.content)
    };
    let repeats = || asked.len() == done.len() && asked.iter().zip(done).all(same);
    !events.event(completion).has_steps || repeats()
}

fn moment(clock: LogClock, events: &Events, id: EventId) -> Option<i64> {
    match clock {
        LogClock::None => None,
        LogClock::Time => events.event(id).time.get(),
        LogClock::Index => events.event(id).index.get(),
        LogClock::Order => Some(events.number(id)),
    }
}
