//! The oracle where the clock counts: tries every order of begins and commits, and gives each a true time.
//!
//! Straight from the definitions in docs/theory.md: a moment's true time lies in a window around what was recorded, and true
//! times never go backwards along the order. The earliest true time that is left is as good as any, so the clock need
//! only move on when it must. What can still follow depends on who has begun, who has committed, what the store holds and how
//! late it is; a state that led nowhere is not tried again.

use std::collections::HashSet;

use super::{Search, Set, Store};
use kingsnake_history::level::{Model, RealTime, Snapshots, Spec, Times};
use kingsnake_history::model::{History, TxnId};

/// The state of a search.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    begun: Set,
    committed: Set,
    store: Store,
    /// The true time of the last moment, in half nanoseconds.
    now: i128,
}

/// From when to when a moment can have been, in half nanoseconds.
type Window = (i128, i128);

pub(super) struct Timed<'h> {
    search: Search<'h>,
    /// When each transaction can have begun and committed; where it is all at once, both are when.
    windows: Vec<[Window; 2]>,
    dead: HashSet<State>,
}

impl<'h> Timed<'h> {
    pub(super) fn new(
        history: &'h History,
        spec: Spec,
        real_time: RealTime,
        txns: Vec<TxnId>,
    ) -> Self {
        let windows = txns.iter().map(|&txn| match spec.model {
            Model::Ser => [between(history, real_time, txn); 2],
            _ => begin_and_commit(history, real_time, txn),
        });
        Timed {
            windows: windows.collect(),
            search: Search::new(history, spec, txns),
            dead: HashSet::new(),
        }
    }

    pub(super) fn holds(&mut self) -> bool {
        let start = State {
            begun: 0,
            committed: 0,
            store: self.search.stores[0].clone(),
            now: i128::MIN,
        };
        self.extend(&start)
    }

    fn extend(&mut self, state: &State) -> bool {
        let open = state.begun & !state.committed;
        if open == 0 && self.is_complete(state) {
            return true;
        }
        if self.dead.contains(state) {
            return false;
        }
        for txn in 0..self.search.txns.len() {
            let bit = 1 << txn;
            let found = if open & bit != 0 {
                self.commit(state, txn)
                    .is_some_and(|next| self.extend(&next))
            } else if state.begun & bit == 0 {
                self.begin(state, txn)
                    .is_some_and(|next| match self.search.model {
                        Model::Ser => self
                            .commit(&next, txn)
                            .is_some_and(|next| self.extend(&next)),
                        _ => self.extend(&next),
                    })
            } else {
                false
            };
            if found {
                return true;
            }
        }
        self.dead.insert(state.clone());
        false
    }

    fn is_complete(&self, state: &State) -> bool {
        let must = self.search.committed;
        state.committed & must == must && self.search.is_installed(&state.store, state.committed)
    }

    /// The clock after a moment, unless the moment's time has passed.
    fn tick(&self, state: &State, txn: usize, moment: usize) -> Option<i128> {
        let (from, to) = self.windows[txn][moment];
        let now = state.now.max(from);
        (now <= to).then_some(now)
    }

    fn begin(&mut self, state: &State, txn: usize) -> Option<State> {
        let now = self.tick(state, txn, 0)?;
        let search = &mut self.search;
        let open = state.begun & !state.committed;
        let earlier = search.before[txn] & search.committed & !state.committed;
        let overtaken = (0..search.txns.len())
            .any(|other| state.begun & (1 << other) != 0 && search.before[other] & (1 << txn) != 0);
        let conflicts = match search.model {
            Model::Ser | Model::Si => search.conflicts[txn],
            _ => 0,
        };
        let overlaps = open & (conflicts | search.before[txn]) != 0;
        if earlier != 0 || overtaken || overlaps || !search.reads_from(&state.store, txn) {
            return None;
        }
        Some(State {
            begun: state.begun | 1 << txn,
            now,
            ..state.clone()
        })
    }

    fn commit(&mut self, state: &State, txn: usize) -> Option<State> {
        let now = self.tick(state, txn, 1)?;
        let mut store = state.store.clone();
        self.search.install(&mut store, txn);
        Some(State {
            committed: state.committed | 1 << txn,
            store,
            now,
            ..*state
        })
    }
}

/// The true begin and the true commit are both in here.
fn between(history: &History, real_time: RealTime, txn: TxnId) -> Window {
    let (begin, commit) = recorded(history, txn);
    let drift = i128::from(real_time.drift);
    let from = begin.map_or(i128::MIN, |time| 2 * time - drift);
    let to = commit.map_or(i128::MAX, |time| 2 * time + drift);
    (from, to)
}

fn begin_and_commit(history: &History, real_time: RealTime, txn: TxnId) -> [Window; 2] {
    let (begin, commit) = recorded(history, txn);
    let drift = i128::from(real_time.drift);
    let mut windows = [between(history, real_time, txn); 2];
    if real_time.times == Times::Exact {
        for (window, time) in windows.iter_mut().zip([begin, commit]) {
            *window = time.map_or(*window, |time| (2 * time - drift, 2 * time + drift));
        }
    }
    // What is read may be a state from long before the true begin.
    if real_time.snapshots == Snapshots::Older {
        windows[0].0 = i128::MIN;
    }
    windows
}

fn recorded(history: &History, txn: TxnId) -> (Option<i128>, Option<i128>) {
    let interval = history.interval(txn);
    let begin = Some(interval.begin).filter(|&time| time > i64::MIN);
    let commit = Some(interval.commit).filter(|&time| time < i64::MAX);
    (begin.map(i128::from), commit.map(i128::from))
}
