//! Pairs Jepsen's events: an invocation and the next completion of its process make one transaction.
//!
//! A process runs one operation at a time. Where a file breaks that, the process counts as several sessions, none of
//! which overlaps itself, so that no order is claimed that was not there.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use kingsnake_history::model::{CompareOutcome, HistoryBuilder, Query, Status, Token};
use rustc_hash::FxHashMap;

use super::jepsen::{Action, ClientEvent, Content, EventKind, Events, MicroOp};
use super::jepsen_predicates;
use crate::cursor::Input;
use crate::error::{InputProblem, ReadError};

/// How many open invocations of one process are compared with a completion. A sound history has one.
const MOST_WAITING: usize = 64;

/// A transaction: its invocation, its completion, or both, as indices of events.
#[derive(Clone, Copy)]
struct Txn {
    invoke: Option<usize>,
    completion: Option<usize>,
}

impl Txn {
    fn start(&self) -> usize {
        self.invoke.or(self.completion).unwrap_or(0)
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
    let all = &events.all;
    let txns = pair(events);
    let clock = choose_clock(all);
    let by_index = all.iter().all(|event| event.index.get().is_some());
    let is_list = is_list_append(events);
    if !is_list {
        builder.initial_everywhere(Token::Nil);
    }
    events.declare(input, builder)?;
    let feed = Feed {
        input,
        events,
        is_list,
        queries: events.queries(),
    };
    let mut lanes = Lanes::default();
    builder.reserve_ops(events.steps.len());
    let mut polled = input.polled();
    for txn in &txns {
        polled.step()?;
        let last = &all[txn.completion.or(txn.invoke).unwrap_or(0)];
        let name = Token::Int(if by_index {
            last.index.get().unwrap_or(0)
        } else {
            last.number
        });
        let status = match txn.completion.map(|index| all[index].kind) {
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
        let begin = txn.invoke.and_then(|index| moment(clock, &all[index]));
        let commit = txn.completion.filter(|_| is_over);
        let commit = commit.and_then(|index| moment(clock, &all[index]));
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
    let mut txns: Vec<Txn> = Vec::with_capacity(events.all.len().div_ceil(2));
    let mut open: FxHashMap<Option<i64>, Waiting> = FxHashMap::default();
    for (index, event) in events.all.iter().enumerate() {
        let waiting = open.entry(event.process).or_default();
        if event.kind == EventKind::Invoke {
            waiting.push(txns.len());
            txns.push(Txn {
                invoke: Some(index),
                completion: None,
            });
            continue;
        }
        let fits = |txn: usize| {
            let invoke = txns[txn].invoke.map(|invoke| &events.all[invoke]);
            invoke.is_some_and(|invoke| completes(events, invoke, event))
        };
        match waiting.take(fits) {
            Some(txn) => txns[txn].completion = Some(index),
            None => txns.push(Txn {
                invoke: None,
                completion: Some(index),
            }),
        }
    }
    txns
}

/// Whether a completion has the steps of an invocation, but for what the reads returned.
fn completes(events: &Events, invoke: &ClientEvent, completion: &ClientEvent) -> bool {
    let (asked, done) = (events.steps(invoke), events.steps(completion));
    let same = |(a, b): (&MicroOp, &MicroOp)| {
        a.action == b.action && a.key == b.key && (a.action.is_read() || a.content == b.content)
    };
    !completion.has_steps || (asked.len() == done.len() && asked.iter().zip(done).all(same))
}

/// Invocations give real time: by `:time` where it runs, else by `:index`, else by their order in the file.
fn choose_clock(all: &[ClientEvent]) -> Clock {
    if !all.iter().any(|event| event.kind == EventKind::Invoke) {
        return Clock::None;
    }
    let has_time = all.iter().all(|event| event.time.get().is_some());
    let runs = all.iter().any(|event| event.time != all[0].time);
    if has_time && runs {
        Clock::Time
    } else if all.iter().all(|event| event.index.get().is_some()) {
        Clock::Index
    } else {
        Clock::Order
    }
}

fn moment(clock: Clock, event: &ClientEvent) -> Option<i64> {
    match clock {
        Clock::None => None,
        Clock::Time => event.time.get(),
        Clock::Index => event.index.get(),
        Clock::Order => Some(event.number),
    }
}

fn is_list_append(events: &Events) -> bool {
    events.steps.iter().any(|step| {
        step.action == Action::Append
            || (step.action == Action::Read && matches!(step.content, Content::List(..)))
    })
}

/// The lanes of one process: after which event each is free again. A lane that is never free is not kept. A sound history has
/// one lane a process, which is kept without an allocation.
#[derive(Default)]
struct ProcessLanes {
    first_free_after: Option<(usize, usize)>,
    free_after: BinaryHeap<Reverse<(usize, usize)>>,
    n_lanes: usize,
}

impl ProcessLanes {
    /// A lane that is free when a transaction starts.
    fn take(&mut self, start: usize, end: Option<usize>) -> usize {
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
        txn: &Txn,
        process: Option<i64>,
        is_over: bool,
        builder: &mut HistoryBuilder,
    ) -> Token {
        let Some(process) = process else {
            // Nobody says who ran it, so it follows nothing.
            self.n_alone += 1;
            return builder.text(&format!("no process {}", self.n_alone));
        };
        let end = txn.completion.filter(|_| is_over);
        let lane = self
            .processes
            .entry(process)
            .or_default()
            .take(txn.start(), end);
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
}

impl Feed<'_> {
    fn steps(
        &self,
        txn: &Txn,
        status: Status,
        builder: &mut HistoryBuilder,
    ) -> Result<(), ReadError> {
        let (input, events, is_list) = (self.input, self.events, self.is_list);
        let all = &events.all;
        let completion = txn.completion.map(|index| &all[index]);
        let source = completion.filter(|event| event.has_steps);
        let Some(event) = source.or(txn.invoke.map(|index| &all[index])) else {
            return Ok(());
        };
        for step in events.steps(event) {
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
                    let rows = &events.items[first as usize..end as usize];
                    jepsen_predicates::feed(&self.queries[place as usize], rows, builder);
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
                    let items = &events.items[first as usize..end as usize];
                    builder.read_list(step.key, items.iter().copied());
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
