//! The loop over batches: add what arrived, prune, decide, and discard what is settled.

use std::sync::Arc;

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Silent;
use kingsnake_graph::decide::{Backend, Decision, Side};
use kingsnake_graph::prune::{Outcome, PruneOptions, PruneStats, Pruned, prune};
use kingsnake_graph::reach::Reach;
use kingsnake_graph::witness::witness;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::WatchError;
use crate::arrival::{Arrival, Horizon, KeyNumber, ValueName, WatchLevel};
use crate::frame::BatchFrame;
use crate::index::{Source, VersionIndex};
use crate::lists::ListRead;
use crate::rules::{Exact, WatchRules};
use crate::settle::Settling;
use crate::window::{Kept, KeptWindow};

/// What to watch for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WatchOptions {
    /// The level.
    pub level: WatchLevel,
    /// How far clocks may disagree, in the unit of the times.
    pub drift: i64,
    /// Values that mean the initial state of a key.
    pub initial: Vec<ValueName>,
    /// Whether an order of what is dropped is returned ([`Watcher::take_order`]). Then less is dropped: nothing that something
    /// kept may precede.
    pub keeps_order: bool,
}

/// The state after a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WatchState {
    /// No violation so far.
    Fine,
    /// Whatever arrives, the level is violated.
    Violated,
}

/// The sizes after a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchReport {
    /// The state.
    pub state: WatchState,
    /// Transactions that are kept.
    pub n_kept: usize,
    /// Of these, those that may have taken effect or not.
    pub n_open: usize,
    /// Constraints that a back end or the witness decided.
    pub n_constraints: usize,
    /// Transactions dropped so far.
    pub n_dropped: u64,
}

/// A point of the order of what was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedPoint {
    /// The caller's name of the transaction.
    pub id: u64,
    /// Whether it is the begin; at levels without snapshots there are only commits.
    pub is_begin: bool,
}

/// A pruned batch.
pub(crate) struct Solved {
    pub(crate) pruned: Pruned,
    pub(crate) reach: Arc<Reach>,
    /// The nodes in the order of one solution, where orders are kept.
    pub(crate) order: Vec<u32>,
    /// The edges that one solution chose.
    pub(crate) chosen: Vec<(u32, u32)>,
}

/// Checks batches at one level.
#[derive(Clone, Debug)]
pub struct Watcher<R = Exact> {
    pub(crate) options: WatchOptions,
    pub(crate) window: KeptWindow,
    pub(crate) rules: R,
    state: WatchState,
    n_constraints: usize,
    pub(crate) order: Vec<WatchedPoint>,
    /// Reads without a writer that no further arrival can explain.
    pub(crate) refused: Vec<(u64, u32)>,
}

impl Watcher {
    /// Nothing has arrived.
    pub fn new(options: WatchOptions) -> Self {
        Watcher::with_rules(options, Exact)
    }

    /// Everything that the next batches depend on, for storing.
    pub fn snapshot(&self) -> impl Serialize + '_ {
        (&self.options, &self.window, self.state)
    }

    /// A watcher from what [`Watcher::snapshot`] stored.
    pub fn restore<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (options, window, state) = Deserialize::deserialize(from)?;
        Ok(Watcher {
            options,
            window,
            rules: Exact,
            state,
            n_constraints: 0,
            order: Vec::new(),
            refused: Vec::new(),
        })
    }
}

impl<R: WatchRules> Watcher<R> {
    /// Nothing has arrived; for tests of the rules.
    pub fn with_rules(options: WatchOptions, rules: R) -> Self {
        let initial = Some(options.initial.clone());
        Watcher {
            options,
            window: KeptWindow {
                initial,
                ..KeptWindow::default()
            },
            rules,
            state: WatchState::Fine,
            n_constraints: 0,
            order: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// One more value that means the initial state of a key. The key must not have been written yet.
    pub fn initial(&mut self, key: KeyNumber, value: ValueName) {
        self.window.initial_of.entry(key).or_default().push(value);
    }

    /// Whether nothing that is kept uses a key, so that all there is to know of it is its stub.
    pub fn idle_keys(&self) -> impl Fn(KeyNumber) -> bool + use<R> {
        let ops = |it: &Kept| {
            let arrival = &it.arrival;
            let ops = arrival.reads.iter().chain(&arrival.writes);
            ops.map(|it| it.0).collect::<Vec<_>>()
        };
        let mut used: FxHashSet<KeyNumber> = self.window.kept.iter().flat_map(ops).collect();
        let unwritten = self.window.initial_of.keys();
        used.extend(self.window.lists.keys());
        used.extend(unwritten.filter(|&&it| self.window.stub(it).is_none()));
        move |key| !used.contains(&key)
    }

    /// Takes the stub of an idle key; the key's number is free.
    pub fn take_stub(&mut self, key: KeyNumber) -> Option<ValueName> {
        self.window.initial_of.remove(&key);
        self.window.take_stub(key)
    }

    /// Gives a key that nothing used yet the stub that was taken.
    pub fn set_stub(&mut self, key: KeyNumber, value: ValueName) {
        self.window.set_stub(key, value);
    }

    /// Forgets everything that arrived and goes on. From then on reads of what was forgotten are not judged: a violation is one,
    /// but some are missed. The last fence stays known.
    pub fn forget(&mut self, fence: Option<KeyNumber>) {
        let last_fence = fence.and_then(|key| Some((key, self.window.last_fence(key)?.1)));
        let old = std::mem::take(&mut self.window);
        self.window = KeptWindow {
            tails: old.tails,
            n_arrived: old.n_arrived,
            n_batches: old.n_batches,
            n_dropped: old.n_dropped + old.kept.len() as u64,
            ..KeptWindow::default()
        };
        if let Some((key, value)) = last_fence {
            self.window.set_stub(key, value);
        }
        self.state = WatchState::Fine;
        self.refused.clear();
    }

    /// Whether anything was discarded.
    pub fn is_partial(&self) -> bool {
        self.window.initial.is_none()
    }

    /// The order of what was dropped since the last call, if orders are kept. It continues the previous one.
    pub fn take_order(&mut self) -> Vec<WatchedPoint> {
        std::mem::take(&mut self.order)
    }

    /// For a violation, the reads that nothing explains, as the caller's name of the transaction and the key; none for a cycle.
    pub fn refused(&self) -> &[(u64, u32)] {
        &self.refused
    }

    /// The caller's names of the transactions that are kept.
    pub fn kept_ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.window.kept.iter().map(|it| it.arrival.id)
    }

    /// Approximate number of retained bytes.
    pub fn n_bytes(&self) -> usize {
        self.window.n_bytes()
    }

    /// The state.
    pub fn state(&self) -> WatchState {
        self.state
    }

    /// The caller's names of kept transactions that read a value which nothing has written yet, with the keys.
    pub fn pending(&self) -> Result<Vec<(u64, u32)>, WatchError> {
        let index = VersionIndex::new(&self.window)?;
        let missing = index
            .versions
            .iter()
            .filter(|it| it.source == Source::Missing);
        let id = |&at: &u32| self.window.kept[at as usize].arrival.id;
        let of = |it| index.readers(it).iter().map(id);
        let cut = index.lists.reads.iter().filter(|it| !it.is_whole);
        let missing = missing.flat_map(|it| of(it).map(|id| (id, it.key)));
        Ok(missing
            .chain(cut.map(|it| (id(&it.reader), it.key)))
            .collect())
    }

    /// Takes a batch, answers for everything that arrived so far, and drops what is settled given what can still arrive.
    pub fn batch(
        &mut self,
        arrivals: impl IntoIterator<Item = Arrival>,
        horizon: &Horizon,
        backend: &mut dyn Backend,
        budget: &Budget,
    ) -> Result<BatchReport, WatchError> {
        for arrival in arrivals {
            if !arrival.is_unknown || self.rules.counts_unknown() {
                let checks_lists = self.rules.checks_settled_lists();
                self.window.push(arrival, horizon.fence, checks_lists);
            }
        }
        if self.state == WatchState::Fine && !self.step(horizon, backend, budget)? {
            self.state = WatchState::Violated;
        }
        self.window.n_batches += 1;
        Ok(BatchReport {
            state: self.state,
            n_kept: self.window.kept.len(),
            n_open: self.window.kept.iter().filter(|it| it.is_open).count(),
            n_constraints: self.n_constraints,
            n_dropped: self.window.n_dropped,
        })
    }

    /// Whether the level may still hold.
    fn step(
        &mut self,
        horizon: &Horizon,
        backend: &mut dyn Backend,
        budget: &Budget,
    ) -> Result<bool, WatchError> {
        let mut index = VersionIndex::new(&self.window)?;
        match self.stale(&index) {
            None => return Ok(false),
            Some(without_effect) if !without_effect.is_empty() => {
                let is_gone = |at: usize| without_effect.contains(&(at as u32));
                let mut at = 0..;
                self.window.kept.retain(|_| !at.next().is_some_and(is_gone));
                index = VersionIndex::new(&self.window)?;
            }
            Some(_) => {}
        }
        self.count_observed(&index);
        let frame = self.frame(&index, None);
        let Some(mut solved) = solve(frame.problem.clone(), budget)? else {
            return Ok(false);
        };
        self.n_constraints = solved.pruned.constraints.len();
        let Some(sides) = decide(&solved.pruned, backend, budget)? else {
            return Ok(false);
        };
        if self.rules.fixes_choices() {
            let edges = solved.pruned.edges(&sides);
            solved.chosen = edges.iter().map(|it| (it.from, it.to)).collect();
        }
        if self.options.keeps_order {
            // Sides that a back end chose leave no cycle; if they did, the order is short, and replaying it says so.
            solved.order = solved.pruned.order(&sides).unwrap_or_default();
        }
        Settling::new(self, &index, &frame, &solved, horizon).run(budget)
    }

    pub(crate) fn frame(&self, index: &VersionIndex, supposed: Option<u32>) -> BatchFrame {
        let has_barrier = self.rules.has_barrier();
        BatchFrame::new(&self.window, index, &self.options, has_barrier, supposed)
    }

    /// Open transactions that cannot have taken effect, because they read what was dead when they arrived; `None` if a
    /// transaction that counts did, or one read what it wrote itself later.
    fn stale(&self, index: &VersionIndex) -> Option<Vec<u32>> {
        let mut without_effect = Vec::new();
        for &reader in &index.lists.broken {
            if !self.window.kept[reader as usize].is_open {
                return None;
            }
            without_effect.push(reader);
        }
        for version in &index.versions {
            let Source::Kept(at, write) = version.source else {
                continue;
            };
            let is_dead = self.window.kept[at as usize].dead[write as usize];
            for &reader in index.readers(version) {
                let it = &self.window.kept[reader as usize];
                if reader == at || (is_dead && it.batch == self.window.n_batches) {
                    if !it.is_open {
                        return None;
                    }
                    without_effect.push(reader);
                }
            }
        }
        Some(without_effect)
    }

    /// Counts every open transaction that one which counts read from.
    fn count_observed(&mut self, index: &VersionIndex) {
        let kept = &mut self.window.kept;
        let mut observed: Vec<(u32, u32)> = Vec::new();
        if self.rules.counts_whole_lists() {
            let of = |it: &ListRead| {
                let reader = it.reader;
                it.writers
                    .iter()
                    .map(move |&writer| (reader, writer))
                    .collect::<Vec<_>>()
            };
            observed.extend(index.lists.reads.iter().flat_map(of));
        }
        for version in &index.versions {
            if let Source::Kept(at, _) = version.source
                && kept[at as usize].is_open
            {
                observed.extend(index.readers(version).iter().map(|&reader| (reader, at)));
            }
        }
        loop {
            let mut changed = false;
            for &(reader, at) in &observed {
                if kept[at as usize].is_open && !kept[reader as usize].is_open {
                    let it = &mut kept[at as usize];
                    it.is_open = false;
                    let orders = std::mem::take(&mut it.orders);
                    self.window.orders.extend(orders);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }
}

/// Prunes; `None` if the known edges have a cycle.
pub(crate) fn solve(
    problem: kingsnake_graph::Problem,
    budget: &Budget,
) -> Result<Option<Solved>, WatchError> {
    let options = PruneOptions {
        grows: true,
        ..PruneOptions::default()
    };
    let mut stats = PruneStats::default();
    let outcome = prune(problem, options, &mut stats, budget, &mut Silent)?;
    let Outcome::Pruned(pruned) = outcome else {
        return Ok(None);
    };
    let reach = match pruned.reach() {
        Some(reach) => reach,
        None => Arc::new(Reach::new(&pruned.dag, &pruned.problem.chains, budget)?),
    };
    Ok(Some(Solved {
        pruned,
        reach,
        order: Vec::new(),
        chosen: Vec::new(),
    }))
}

/// A side for each constraint; `None` if there is no order.
fn decide(
    pruned: &Pruned,
    backend: &mut dyn Backend,
    budget: &Budget,
) -> Result<Option<Vec<Side>>, WatchError> {
    let question = pruned.question();
    if question.constraints.is_empty() {
        return Ok(Some(Vec::new()));
    }
    if let Some(sides) = witness(question) {
        return Ok(Some(sides));
    }
    match backend.decide(question, budget, &mut Silent)?.0 {
        Decision::Choices(sides) => Ok(Some(sides)),
        Decision::Core(_) => Ok(None),
        Decision::Unknown(reason) => Err(reason.into()),
    }
}
