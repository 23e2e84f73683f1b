//! `search`: decides a key whose values repeat, by Wing and Gong's search with Lowe's cache.
//!
//! Events are in a list by time, starts before ends of the same moment. The search takes any operation that has started
//! before the first end in the list and that the register allows, and goes back where none is left. A configuration, which
//! is the set of operations taken and the value of the register, is visited once. A read that the register allows is
//! taken at once: it changes nothing, so no other choice can be better. The problem is NP-complete, so the budget counts.

use kingsnake_history::budget::{Budget, StopReason};
use kingsnake_history::verdict::{Counterexample, Stuck};
use rustc_hash::FxHashSet;

use crate::operations::{INITIAL, Key, NONE, Operation};
use crate::rules::Rules;
use crate::{KeyOutcome, timeline};

/// Number of steps between two looks at the clock.
const STEPS: u64 = 4096;
/// Approximate size of a configuration in the cache.
const ENTRY_BYTES: u64 = 48;

/// The place of an event in the list.
type Place = usize;

/// The start or the end of an operation.
#[derive(Clone, Copy)]
struct Endpoint {
    op: u32,
    is_start: bool,
    /// The event of the same operation that belongs to it; [`END`] if it never ends.
    other: Place,
}

/// The place after the last event.
const END: Place = usize::MAX;

/// An operation that was taken, or left out for good.
struct Taken {
    start: Place,
    /// The value before it.
    before: u32,
    /// Whether there was no choice.
    is_forced: bool,
    /// Whether it did not happen.
    is_left_out: bool,
}

struct Search<'a> {
    key: &'a Key<'a>,
    ops: &'a [Operation],
    events: Vec<Endpoint>,
    next: Vec<Place>,
    previous: Vec<Place>,
    first: Place,
    /// The operation before this one that never ends and does the same: it is taken first.
    twin: Vec<u32>,
    is_taken: Vec<bool>,
    names: Vec<u128>,
    /// The name of the set of operations taken.
    set: u128,
    state: u32,
    taken: Vec<Taken>,
    seen: FxHashSet<(u128, u32)>,
    /// The last end that blocked the search.
    stuck_at: Place,
}

/// Decides a key; also returns how many configurations were visited.
pub(crate) fn decide<R: Rules>(key: &Key<'_>, budget: &Budget) -> (KeyOutcome, u64) {
    let ops = useful(key);
    let mut search = Search::new(key, &ops);
    let found = search.run::<R>(budget);
    let n_seen = search.seen.len() as u64;
    let outcome = match found {
        Err(reason) => KeyOutcome::Unknown(reason),
        Ok(true) => {
            let order: Vec<u32> = search
                .taken
                .iter()
                .filter(|taken| !taken.is_left_out)
                .map(|taken| search.events[taken.start].op)
                .collect();
            KeyOutcome::Ordered(timeline::moments(&ops, &order))
        }
        Ok(false) => {
            let last = ops[search.events[search.stuck_at].op as usize].txn;
            KeyOutcome::Violated(Counterexample::Stuck(Stuck {
                key: key.key,
                last,
                possible: Vec::new(),
                concurrent: Vec::new(),
            }))
        }
    };
    (outcome, n_seen)
}

/// The operations that can matter: one of unknown end matters if another can see what it wrote.
fn useful(key: &Key<'_>) -> Vec<Operation> {
    let mut is_wanted = vec![false; key.n_values];
    let mut has_refusals = false;
    for op in key.ops {
        has_refusals |= op.has_refusals();
        for read in [op.read, op.read_too].into_iter().filter(|&it| it != NONE) {
            is_wanted[read as usize] = true;
        }
    }
    let is_wanted = |write: u32| has_refusals || is_wanted[write as usize];
    let matters =
        |op: &&Operation| !op.is_unknown || !op.is_broken && !op.is_read() && is_wanted(op.write);
    key.ops.iter().filter(matters).copied().collect()
}

impl<'a> Search<'a> {
    fn new(key: &'a Key<'a>, ops: &'a [Operation]) -> Self {
        let mut times: Vec<(i64, bool, u32)> = Vec::with_capacity(2 * ops.len());
        for (at, op) in ops.iter().enumerate() {
            times.push((op.begin, false, at as u32));
            if !op.is_unknown || op.end < i64::MAX {
                times.push((op.end, true, at as u32));
            }
        }
        times.sort_unstable();
        let mut starts = vec![END; ops.len()];
        let mut events: Vec<Endpoint> = Vec::with_capacity(times.len());
        for (place, &(_, is_end, op)) in times.iter().enumerate() {
            let mut other = END;
            if is_end {
                other = starts[op as usize];
                events[other].other = place;
            } else {
                starts[op as usize] = place;
            }
            events.push(Endpoint {
                op,
                is_start: !is_end,
                other,
            });
        }
        let n_events = events.len();
        Search {
            key,
            ops,
            next: (0..n_events)
                .map(|place| if place + 1 < n_events { place + 1 } else { END })
                .collect(),
            previous: (0..n_events)
                .map(|place| place.checked_sub(1).unwrap_or(END))
                .collect(),
            first: if n_events == 0 { END } else { 0 },
            twin: twins(ops, &events),
            is_taken: vec![false; ops.len()],
            names: names(ops.len()),
            events,
            set: 0,
            state: INITIAL,
            taken: Vec::new(),
            seen: FxHashSet::default(),
            stuck_at: 0,
        }
    }

    /// Whether there is an order; then it is in `taken`.
    fn run<R: Rules>(&mut self, budget: &Budget) -> Result<bool, StopReason> {
        let mut at = self.first;
        let mut n_steps = 0_u64;
        let mut reserved = 1 << 16;
        loop {
            n_steps += 1;
            if n_steps.is_multiple_of(STEPS) {
                budget.check()?;
            }
            if self.seen.len() >= reserved {
                reserved *= 2;
                budget.reserve("the cache of configurations", reserved as u64 * ENTRY_BYTES)?;
            }
            if at == END {
                return Ok(true);
            }
            let event = self.events[at];
            if !event.is_start && self.ops[event.op as usize].is_unknown {
                at = self.leave_out(event.other);
                continue;
            }
            if !event.is_start {
                self.stuck_at = self.stuck_at.max(at);
                match self.go_back() {
                    None => return Ok(false),
                    Some(after) => at = after,
                }
                continue;
            }
            at = if self.take::<R>(at) {
                self.first
            } else {
                self.next[at]
            };
        }
    }

    /// Takes an operation if the register allows it and it leads to something new.
    fn take<R: Rules>(&mut self, start: Place) -> bool {
        let at = self.events[start].op as usize;
        let op = &self.ops[at];
        let is_allowed =
            R::allows(self.state, op) && !self.key.is_refused(op, self.state) && !op.is_broken;
        let twin = self.twin[at];
        if !is_allowed || twin != NONE && !self.is_taken[twin as usize] {
            return false;
        }
        let is_forced = op.is_read();
        let set = self.set ^ self.names[at];
        let state = if is_forced { self.state } else { op.write };
        if !is_forced && !self.seen.insert(R::cached(set, state)) {
            return false;
        }
        self.settle(start, state, is_forced, false);
        true
    }

    /// Takes an operation of unknown end, whose time is over, for one that did not happen. It was tried before.
    fn leave_out(&mut self, start: Place) -> Place {
        self.settle(start, self.state, true, true);
        self.first
    }

    fn settle(&mut self, start: Place, state: u32, is_forced: bool, is_left_out: bool) {
        let at = self.events[start].op as usize;
        self.taken.push(Taken {
            start,
            before: self.state,
            is_forced,
            is_left_out,
        });
        self.is_taken[at] = true;
        self.set ^= self.names[at];
        self.state = state;
        self.unlink(start);
        let end = self.events[start].other;
        if end != END {
            self.unlink(end);
        }
    }

    /// Undoes the last choice; returns where to continue.
    fn go_back(&mut self) -> Option<Place> {
        loop {
            let last = self.taken.pop()?;
            let at = self.events[last.start].op as usize;
            self.is_taken[at] = false;
            self.set ^= self.names[at];
            self.state = last.before;
            let end = self.events[last.start].other;
            if end != END {
                self.link(end);
            }
            self.link(last.start);
            if !last.is_forced {
                return Some(self.next[last.start]);
            }
        }
    }

    fn unlink(&mut self, place: Place) {
        let (before, after) = (self.previous[place], self.next[place]);
        if before == END {
            self.first = after;
        } else {
            self.next[before] = after;
        }
        if after != END {
            self.previous[after] = before;
        }
    }

    fn link(&mut self, place: Place) {
        let (before, after) = (self.previous[place], self.next[place]);
        if before == END {
            self.first = place;
        } else {
            self.next[before] = place;
        }
        if after != END {
            self.previous[after] = place;
        }
    }
}

/// Of operations that never end and do the same, each but the first has the one that started before it.
fn twins(ops: &[Operation], events: &[Endpoint]) -> Vec<u32> {
    let mut last = rustc_hash::FxHashMap::default();
    let mut twins = vec![NONE; ops.len()];
    for event in events.iter().filter(|event| event.is_start) {
        let op = &ops[event.op as usize];
        if op.is_unknown
            && op.end == i64::MAX
            && !op.has_refusals()
            && let Some(before) = last.insert((op.read, op.write), event.op)
        {
            twins[event.op as usize] = before;
        }
    }
    twins
}

/// Random names, so that the exclusive or of a set's names tells it from any other (Zobrist 1970). Two sets of the same
/// name are as likely as two equal numbers of 128 bits, and a violation is checked again without names.
fn names(n_ops: usize) -> Vec<u128> {
    let mut rng = kingsnake_history::rng::Rng::new(0x6c69_6e65_6172);
    let name = |_| u128::from(rng.number()) << 64 | u128::from(rng.number());
    (0..n_ops).map(name).collect()
}
