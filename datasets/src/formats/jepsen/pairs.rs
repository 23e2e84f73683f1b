//! Pairs Jepsen's events: an invocation and the next completion of its process make one transaction.
//!
//! A process runs one operation at a time. Where a file breaks that, the process counts as several sessions, none of
//! which overlaps itself, so that no order is claimed that was not there.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use kingsnake_history::model::{CompareOutcome, HistoryBuilder, ListPlace, Query, Status, Token};
use rustc_hash::FxHashMap;

use super::events::{Action, Content, EventId, EventKind, Events, MicroOp, numbered};
use super::predicates;
use crate::cursor::Input;
use crate::error::{InputProblem, ReadError};

/// How many open invocations of one process are compared with a completion. A sound history has one.
const MOST_WAITING: usize = 64;

/// A transaction: its invocation, its completion, or both.
#[derive(Clone, Copy)]
enum Txn {
    Invoked(EventId),
    Completed(EventId),
    Both(EventId, EventId),
}

impl Txn {
    fn invoke(self) -> Option<EventId> {
        match self {
            Txn::Invoked(invoke) | Txn::Both(invoke, _) => Some(invoke),
            Txn::Completed(_) => None,
        }
    }

    fn completion(self) -> Option<EventId> {
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

/// Where real time comes from.
#[derive(Clone, Copy)]
enum Clock {
    None,
    Time,
    Index,
    Order,
}

/// Makes a history of the events.
pub(super) fn build(
    input: Input<'_>,
    events: &Events,
    builder: &mut HistoryBuilder,
    warnings: &mut Vec<String>,
) -> Result<(), ReadError> {
    let txns = pair(events);
    let clock = choose_clock(events);
    let by_index = events.all().all(|event| event.index.get().is_some());
    let is_list = is_list_append(events);
    if !is_list {
        builder.initial_everywhere(Token::Nil);
    }
    events.declare(input, builder)?;
    let mut feed = Feed {
        input,
        events,
        is_list,
        queries: events.queries(),
        placed: vec![FxHashMap::default(); events.parts.len()],
    };
    let mut lanes = Lanes::default();
    builder.reserve_ops(events.parts.iter().map(|part| part.steps.len()).sum());
    let mut polled = input.polled();
    for &txn in &txns {
        polled.step()?;
        let last = events.event(txn.last());
        let name = Token::Int(if by_index {
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
        let session_name = lanes.session(txn, last.process, is_over, builder);
        let session = builder.session(session_name);
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

/// The invocations of one process that have not completed. A sound history has one, which is kept without an allocation.
#[derive(Default)]
struct Waiting {
    first: Option<usize>,
    rest: VecDeque<usize>,
}

impl Waiting {
    fn push(&mut self, txn: usize) {
        match self.first {
            None => self.first = Some(txn),
            Some(_) => self.rest.push_back(txn),
        }
    }

    /// Removes the first that fits, or the first of all.
    fn take(&mut self, fits: impl Fn(usize) -> bool) -> Option<usize> {
        let first = self.first?;
        if !self.rest.is_empty() && !fits(first) {
            let others = self.rest.iter().take(MOST_WAITING - 1);
            if let Some(place) = others.copied().position(&fits) {
                return self.rest.remove(place);
            }
        }
        self.first = self.rest.pop_front();
        Some(first)
    }
}

/// The transactions, in order of their first events.
fn pair(events: &Events) -> Vec<Txn> {
    let mut txns: Vec<Txn> = Vec::with_capacity(events.n_events().div_ceil(2));
    let mut open: FxHashMap<Option<i64>, Waiting> = FxHashMap::default();
    for (id, event) in numbered(&events.parts) {
        let waiting = open.entry(event.process).or_default();
        if event.kind == EventKind::Invoke {
            waiting.push(txns.len());
            txns.push(Txn::Invoked(id));
            continue;
        }
        let fits = |txn: usize| completes(events, txns[txn].first(), id);
        match waiting.take(fits) {
            Some(txn) => txns[txn] = Txn::Both(txns[txn].first(), id),
            None => txns.push(Txn::Completed(id)),
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

/// Invocations give real time: by `:time` where it runs, else by `:index`, else by their order in the file.
fn choose_clock(events: &Events) -> Clock {
    let all = || events.all();
    if !all().any(|event| event.kind == EventKind::Invoke) {
        return Clock::None;
    }
    let has_time = all().all(|event| event.time.get().is_some());
    let first = all().next().map(|event| event.time);
    let runs = all().any(|event| Some(event.time) != first);
    if has_time && runs {
        Clock::Time
    } else if all().all(|event| event.index.get().is_some()) {
        Clock::Index
    } else {
        Clock::Order
    }
}

fn moment(clock: Clock, events: &Events, id: EventId) -> Option<i64> {
    match clock {
        Clock::None => None,
        Clock::Time => events.event(id).time.get(),
        Clock::Index => events.event(id).index.get(),
        Clock::Order => Some(events.number(id)),
    }
}

fn is_list_append(events: &Events) -> bool {
    events.all_steps().any(|step| {
        step.action == Action::Append
            || (step.action == Action::Read && matches!(step.content, Content::List(..)))
    })
}

/// The lanes of one process: after which event each is free again. A lane that is never free is not kept. A sound history has
/// one lane a process, which is kept without an allocation.
#[derive(Default)]
struct ProcessLanes {
    first_free_after: Option<(EventId, usize)>,
    free_after: BinaryHeap<Reverse<(EventId, usize)>>,
    n_lanes: usize,
}

impl ProcessLanes {
    /// A lane that is free when a transaction starts.
    fn take(&mut self, start: EventId, end: Option<EventId>) -> usize {
        let free = match (self.first_free_after, self.free_after.peek()) {
            (Some(first), Some(&Reverse(other))) => Some(first.min(other)),
            (first, other) => first.or(other.map(|it| it.0)),
        };
        let lane = match free {
            Some((after, lane)) if after < start => {
                if self.first_free_after == free {
                    self.first_free_after = None;
                } else {
                    self.free_after.pop();
                }
                lane
            }
            _ => {
                self.n_lanes += 1;
                self.n_lanes - 1
            }
        };
        if let Some(end) = end {
            if self.first_free_after.is_none() {
                self.first_free_after = Some((end, lane));
            } else {
                self.free_after.push(Reverse((end, lane)));
            }
        }
        lane
    }
}

/// Splits processes that overlap themselves.
#[derive(Default)]
struct Lanes {
    processes: FxHashMap<i64, ProcessLanes>,
    n_overlapping: usize,
    n_alone: usize,
}

impl Lanes {
    /// The session of the next transaction; transactions come in order of their first events.
    fn session(
        &mut self,
        txn: Txn,
        process: Option<i64>,
        is_over: bool,
        builder: &mut HistoryBuilder,
    ) -> Token {
        let Some(process) = process else {
            // Nobody says who ran it, so it follows nothing.
            self.n_alone += 1;
            return builder.text(&format!("no process {}", self.n_alone));
        };
        let end = txn.completion().filter(|_| is_over);
        let lane = self
            .processes
            .entry(process)
            .or_default()
            .take(txn.first(), end);
        if lane == 0 {
            return Token::Int(process);
        }
        self.n_overlapping += 1;
        builder.text(&format!("{process} (lane {})", lane + 1))
    }
}

/// What the steps of a transaction are fed by.
struct Feed<'a> {
    input: Input<'a>,
    events: &'a Events,
    is_list: bool,
    /// What predicates ask.
    queries: Vec<Query>,
    /// Where the builder keeps the lists of each part, by their first items: lists that begin with each other have the same.
    placed: Vec<FxHashMap<u32, ListPlace>>,
}

impl Feed<'_> {
    fn steps(
        &mut self,
        txn: Txn,
        status: Status,
        builder: &mut HistoryBuilder,
    ) -> Result<(), ReadError> {
        let (input, events, is_list) = (self.input, self.events, self.is_list);
        let completion = txn.completion();
        let source = completion.filter(|&id| events.event(id).has_steps);
        let Some(id) = source.or(txn.invoke()) else {
            return Ok(());
        };
        let event = events.event(id);
        let items = &events.part(id).items;
        for step in events.steps(id) {
            let keeps_read = match status {
                Status::Committed => source.is_some(),
                Status::Unknown => source.is_some() && step.content != Content::Nil,
                Status::Aborted => false,
            };
            if step.action.is_read() && !keeps_read {
                continue;
            }
            match (step.action, step.content) {
                (Action::Predicate, Content::List(first, end)) => {
                    let (Token::Int(place), false) = (step.key, is_list) else {
                        let words = "a predicate in a history of lists".to_owned();
                        return Err(input.error_in_line(event.at, InputProblem::Unsupported(words)));
                    };
                    let rows = &items[first as usize..end as usize];
                    predicates::feed(&self.queries[place as usize], rows, builder);
                }
                (Action::Insert, Content::One(value)) => {
                    builder.insert(step.key, value);
                }
                (Action::Delete, _) => {
                    builder.delete(step.key, Token::Nil);
                }
                (Action::Read, Content::Nil) if is_list => builder.read_list(step.key, []),
                (Action::Read, Content::Nil) => {
                    builder.read(step.key, Token::Nil);
                }
                (Action::Read, Content::List(first, end)) => {
                    let items = &items[first as usize..end as usize];
                    let placed = &mut self.placed[id.part as usize];
                    read_list(step.key, first, items, placed, builder);
                }
                (Action::Read, Content::One(_)) if is_list => {
                    let words = format!(
                        "key {} is read as a single value in a history of lists",
                        builder.show(step.key)
                    );
                    return Err(input.error_in_line(event.at, InputProblem::Unsupported(words)));
                }
                (Action::Read, Content::One(value)) => {
                    builder.read(step.key, value);
                }
                (Action::Append, Content::One(value)) => {
                    builder.append(step.key, value);
                }
                (Action::Write, Content::One(value)) => {
                    builder.write(step.key, value);
                }
                (Action::Cas, Content::Pair(expected, new)) => {
                    if status == Status::Aborted {
                        builder.failed_compare_and_set(step.key, expected, new);
                    } else {
                        builder.compare_and_set(step.key, expected, new, CompareOutcome::Applied);
                    }
                }
                // Nothing was seen, such as what a predicate read returned.
                (_, Content::Pair(..) | Content::Unwritten)
                | (Action::Cas | Action::Predicate, _) => {}
                (Action::Write | Action::Append | Action::Insert, _) => {
                    builder.write(step.key, Token::Nil);
                }
            }
        }
        Ok(())
    }
}

/// Adds the read of a list whose first item stands at `first` in its part.
fn read_list(
    key: Token,
    first: u32,
    items: &[Token],
    placed: &mut FxHashMap<u32, ListPlace>,
    builder: &mut HistoryBuilder,
) {
    if items.is_empty() {
        builder.read_list(key, []);
        return;
    }
    let place = builder.read_list_like(key, items, placed.get(&first).copied());
    placed.insert(first, place);
}
