//! The processes of a log: their numbers, the operations that each waits for, and the sessions that they count as.
//!
//! A log may have as many processes as operations, so what is usual (one open operation, one session) takes a few bytes a
//! process, and the rest stands in maps.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use kingsnake_history::model::{HistoryBuilder, SessionId, Token};
use rustc_hash::FxHashMap;

use super::events::EventId;

/// How many open invocations of one process are compared with a completion. A sound history has one.
const MOST_WAITING: usize = 64;

/// Names of processes below this are numbered without hashing.
const SMALL: i64 = 1 << 20;

/// Numbers processes in the order in which they are met.
#[derive(Default)]
pub(super) struct Processes {
    n_known: u32,
    small: Vec<Option<u32>>,
    others: FxHashMap<Option<i64>, u32>,
}

impl Processes {
    pub(super) fn number(&mut self, process: Option<i64>) -> u32 {
        let n_known = &mut self.n_known;
        let next = || {
            *n_known += 1;
            *n_known - 1
        };
        let Some(small @ 0..SMALL) = process else {
            return *self.others.entry(process).or_insert_with(next);
        };
        let small = small as usize;
        if small >= self.small.len() {
            self.small.resize((2 * small).max(64), None);
        }
        *self.small[small].get_or_insert_with(next)
    }
}

/// The invocations of each process that have not completed.
#[derive(Default)]
pub(super) struct Waiting {
    first: Vec<Option<u32>>,
    rest: FxHashMap<u32, VecDeque<u32>>,
}

impl Waiting {
    pub(super) fn push(&mut self, process: u32, txn: u32) {
        let place = process as usize;
        if place >= self.first.len() {
            self.first.resize((2 * place).max(64), None);
        }
        match &mut self.first[place] {
            first @ None => *first = Some(txn),
            Some(_) => self.rest.entry(process).or_default().push_back(txn),
        }
    }

    /// Removes the first of a process that fits, or the first of all.
    pub(super) fn take(&mut self, process: u32, fits: impl Fn(u32) -> bool) -> Option<u32> {
        let waiting = self.first.get_mut(process as usize)?;
        let first = (*waiting)?;
        let rest = self.rest.get_mut(&process).filter(|it| !it.is_empty());
        let Some(rest) = rest else {
            *waiting = None;
            return Some(first);
        };
        if !fits(first) {
            let others = rest.iter().take(MOST_WAITING - 1);
            if let Some(place) = others.copied().position(&fits) {
                return rest.remove(place);
            }
        }
        *waiting = rest.pop_front();
        Some(first)
    }
}

/// A lane of a process and after which event it is free again.
type Free = (EventId, u32);

/// The lanes of one process. One that is never free again is not kept.
#[derive(Clone, Copy, Default)]
struct ProcessLanes {
    /// A lane that will be free; the others are in [`Lanes::more`].
    free: Option<Free>,
    n_lanes: u32,
    /// The session of the first lane.
    session: Option<SessionId>,
}

/// Splits processes that overlap themselves.
#[derive(Default)]
pub(super) struct Lanes {
    processes: Vec<ProcessLanes>,
    more: FxHashMap<u32, BinaryHeap<Reverse<Free>>>,
    pub(super) n_overlapping: usize,
    n_alone: usize,
}

impl Lanes {
    /// The session of the next transaction; transactions come in order of their first events. A process is given by its number
    /// and its name, the transaction by its first event and its end.
    pub(super) fn session(
        &mut self,
        process: u32,
        name: Option<i64>,
        span: (EventId, Option<EventId>),
        builder: &mut HistoryBuilder,
    ) -> SessionId {
        let Some(name) = name else {
            // The process is unknown, so it follows nothing.
            self.n_alone += 1;
            let alone = builder.text(&format!("unnamed {}", self.n_alone));
            return builder.session(alone);
        };
        let place = process as usize;
        if place >= self.processes.len() {
            let size = (2 * place).max(64);
            self.processes.resize(size, ProcessLanes::default());
        }
        let lane = self.take(process, span);
        if lane > 0 {
            self.n_overlapping += 1;
            let own = builder.text(&format!("{name} (lane {})", lane + 1));
            return builder.session(own);
        }
        let session = &mut self.processes[place].session;
        *session.get_or_insert_with(|| builder.session(Token::Int(name)))
    }

    /// A lane of a process that is free when a transaction starts.
    fn take(&mut self, process: u32, (start, end): (EventId, Option<EventId>)) -> u32 {
        let lanes = &mut self.processes[process as usize];
        let more = self.more.get_mut(&process);
        let other = more.as_ref().and_then(|it| it.peek()).map(|it| it.0);
        let free = match (lanes.free, other) {
            (Some(first), Some(other)) => Some(first.min(other)),
            (first, other) => first.or(other),
        };
        let lane = match free {
            Some((after, lane)) if after < start => {
                if lanes.free == free {
                    lanes.free = None;
                } else if let Some(more) = more {
                    more.pop();
                }
                lane
            }
            _ => {
                lanes.n_lanes += 1;
                lanes.n_lanes - 1
            }
        };
        if let Some(end) = end {
            if lanes.free.is_none() {
                lanes.free = Some((end, lane));
            } else {
                let more = self.more.entry(process).or_default();
                more.push(Reverse((end, lane)));
            }
        }
        lane
    }
}
