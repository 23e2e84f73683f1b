//! Judges pairs of runs: which of the two orders is still possible.
//!
//! The first judgement lists no pairs that are decided. With clocks it does not even look at them: the runs of a key on
//! one chain are sorted, those that must come before a given run are the first ones, those that it reaches the last ones,
//! and only what lies between is walked. Later judgements look at the pairs that were left open.

use std::ops::Range;

use rayon::prelude::*;

use crate::edge::Edge;
use crate::orders::{Orders, Run};
use crate::reach::{Clocks, Dense, raise};
use kingsnake_context::budget::{Budget, StopReason};

/// With fewer items a second thread costs more than it saves.
const WORTH_THREADS: usize = 4096;

/// Answers whether there is a path of at least one edge.
pub(super) trait Reaches: Sync {
    fn reaches(&self, from: u32, to: u32) -> bool;
}

impl Reaches for Dense {
    #[inline]
    fn reaches(&self, from: u32, to: u32) -> bool {
        Dense::reaches(self, from, to)
    }
}

impl Reaches for Clocks {
    #[inline]
    fn reaches(&self, from: u32, to: u32) -> bool {
        Clocks::reaches(self, from, to)
    }
}

/// Two runs of one key, by their places among all runs.
pub(super) type Pair = (u32, u32);

/// Edges that became known, and pairs that are still open.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub(super) edges: Vec<Edge>,
    pub(super) open: Vec<Pair>,
}

impl Judged {
    fn join(parts: Vec<Judged>) -> Judged {
        let mut parts = parts.into_iter();
        let mut all = parts.next().unwrap_or_default();
        for part in parts {
            all.edges.extend(part.edges);
            all.open.extend(part.open);
        }
        all
    }
}

pub(super) struct Judge<'a, R> {
    pub(super) orders: &'a Orders,
    pub(super) reach: &'a R,
    pub(super) budget: &'a Budget,
}

impl<R: Reaches> Judge<'_, R> {
    /// Whether `a` before `b` would close a cycle.
    #[inline]
    pub(super) fn is_impossible(&self, a: u32, b: u32) -> bool {
        let (first, next) = (self.orders.run(a), self.orders.run(b));
        if self.reach.reaches(next.install, first.last_commit) {
            return true;
        }
        let mut readers = self.orders.readers(a).iter();
        readers.any(|&reader| self.reach.reaches(next.commit, reader))
    }

    /// Makes the edges of `a` before `b` known, those left out that paths imply already.
    pub(super) fn force(&self, a: u32, b: u32, edges: &mut Vec<Edge>) {
        let new = self.orders.edges(a, b);
        edges.extend(new.filter(|edge| !self.reach.reaches(edge.from, edge.to)));
    }

    /// Judges one pair.
    fn pair(&self, (a, b): Pair, out: &mut Judged) {
        let not_first = self.is_impossible(a, b);
        let not_second = self.is_impossible(b, a);
        if not_first {
            self.force(b, a, &mut out.edges);
        }
        if not_second {
            self.force(a, b, &mut out.edges);
        }
        if !not_first && !not_second {
            out.open.push((a, b));
        }
    }

    /// Judges pairs that were open. Those of nodes that reach no more than before stay open.
    pub(super) fn again(
        &self,
        open: &[Pair],
        reaches_more: impl Fn(u32) -> bool + Sync,
    ) -> Result<Judged, StopReason> {
        // Judging asks only what the heads of the two runs reach.
        let may_change = |run: u32| {
            let run = self.orders.run(run);
            reaches_more(run.install) || reaches_more(run.commit)
        };
        let judge = |pairs: &[Pair]| {
            self.budget.check()?;
            let mut out = Judged::default();
            for &pair in pairs {
                if may_change(pair.0) || may_change(pair.1) {
                    self.pair(pair, &mut out);
                } else {
                    out.open.push(pair);
                }
            }
            Ok(out)
        };
        if open.len() < WORTH_THREADS {
            return judge(open);
        }
        let parts: Result<Vec<Judged>, StopReason> =
            open.par_chunks(WORTH_THREADS).map(judge).collect();
        parts.map(Judged::join)
    }

    /// Judges every pair of runs, key by key and run by run. Stops where the budget ends or the open pairs outgrow it.
    fn keys<K: Default>(
        &self,
        enter: impl Fn(&mut K, usize) + Sync,
        judge_run: impl Fn(&mut K, usize, usize, &mut Judged) + Sync,
    ) -> Result<Judged, StopReason> {
        let runs = self.orders;
        let judge = |keys: Range<usize>| {
            let mut out = Judged::default();
            let mut state = K::default();
            for key in keys {
                enter(&mut state, key);
                for run in runs.range(key) {
                    self.budget.check()?;
                    judge_run(&mut state, key, run, &mut out);
                    let bytes = std::mem::size_of_val(out.open.as_slice()) as u64;
                    self.budget.reserve("the list of open pairs", bytes)?;
                }
            }
            Ok(out)
        };
        if runs.len() < WORTH_THREADS {
            return judge(0..runs.n_keys());
        }
        let n_chunks = 64;
        let place = |chunk: usize| chunk * runs.n_keys() / n_chunks;
        let parts: Result<Vec<Judged>, StopReason> = (0..n_chunks)
            .into_par_iter()
            .map(|chunk| judge(place(chunk)..place(chunk + 1)))
            .collect();
        parts.map(Judged::join)
    }

    /// Judges every pair of every key, one by one.
    pub(super) fn all_pairs(&self) -> Result<Judged, StopReason> {
        let runs = self.orders;
        self.keys(
            |(), _| (),
            |(), key, a, out| {
                for b in a + 1..runs.range(key).end {
                    let (a, b) = (a as u32, b as u32);
                    if !runs.is_trivial(a, b) {
                        self.pair((a, b), out);
                    }
                }
            },
        )
    }
}

/// A key's runs as positions on the chains, side by side, so that judging a key touches little memory.
#[derive(Default)]
struct KeyView {
    first: usize,
    /// The runs whose heads are on one chain, and the chain: they are neighbours, because runs stand in node order.
    groups: Vec<(Range<usize>, usize)>,
    /// Where each run's head is installed and where its writer commits, on their chain.
    installs: Vec<u32>,
    commits: Vec<u32>,
    /// For each run, where the edges of its being before another start: the commit of its last writer, then its readers,
    /// each as a chain and a position.
    sources: Vec<(u32, u32)>,
    sources_end: Vec<u32>,
    /// The clock of the readers of the run under judgement.
    readers: Vec<u32>,
}

impl KeyView {
    /// Whether paths imply all edges of a run's being before the one whose head has these clocks.
    fn is_implied(&self, run: usize, install: &[u32], commit: &[u32]) -> bool {
        let at = run - self.first;
        let start = if at == 0 { 0 } else { self.sources_end[at - 1] };
        let sources = &self.sources[start as usize..self.sources_end[at] as usize];
        let reaches = |clock: &[u32], (chain, position)| clock[chain as usize] > position;
        reaches(install, sources[0]) && sources[1..].iter().all(|&it| reaches(commit, it))
    }
}

impl Judge<'_, Clocks> {
    /// Judges every pair of every key, decided ones only through their neighbours on the chains. `descending` are the
    /// same graph's clocks that look the other way: where keys have many runs, those that a run reaches are not looked at.
    pub(super) fn along_chains(&self, descending: Option<&Clocks>) -> Result<Judged, StopReason> {
        self.keys(
            |view, key| self.view(key, view),
            |view, _, a, out| {
                self.read_clock(a as u32, &mut view.readers);
                let reached = descending.map(|it| it.row(self.orders.run(a as u32).install));
                for (group, chain) in &view.groups {
                    let first_reached = match reached {
                        Some(reached) => self.reach.chain_length(*chain) - reached[*chain],
                        None => u32::MAX,
                    };
                    self.run_and_group(view, a, group.clone(), *chain, first_reached, out);
                }
            },
        )
    }

    fn view(&self, key: usize, view: &mut KeyView) {
        let runs = self.orders.of(key);
        let chain = |run: &Run| self.reach.chain(run.install);
        let range = self.orders.range(key);
        view.first = range.start;
        let mut at = range.start;
        view.groups.clear();
        for group in runs.chunk_by(|a, b| chain(a) == chain(b)) {
            view.groups.push((at..at + group.len(), chain(&group[0])));
            at += group.len();
        }
        let source = |node: u32| (self.reach.chain(node) as u32, self.reach.position(node));
        view.sources.clear();
        view.sources_end.clear();
        for (run, at) in runs.iter().zip(range) {
            let readers = self.orders.readers(at as u32).iter();
            view.sources.push(source(run.last_commit));
            view.sources.extend(readers.map(|&reader| source(reader)));
            view.sources_end.push(view.sources.len() as u32);
        }
        let position = |node: u32| self.reach.position(node);
        view.installs.clear();
        view.installs
            .extend(runs.iter().map(|run| position(run.install)));
        view.commits.clear();
        view.commits
            .extend(runs.iter().map(|run| position(run.commit)));
        view.readers.resize(self.reach.stride(), 0);
    }

    /// For each chain, how many of its first nodes reach some reader of the run's last version.
    fn read_clock(&self, run: u32, clock: &mut [u32]) {
        clock.fill(0);
        for &reader in self.orders.readers(run) {
            raise(clock, self.reach.row(reader));
        }
    }

    /// Judges run `a` against the runs of one chain, of which `a`'s head reaches those from `first_reached` on.
    fn run_and_group(
        &self,
        view: &KeyView,
        a: usize,
        group: Range<usize>,
        chain: usize,
        first_reached: u32,
        out: &mut Judged,
    ) {
        let runs = self.orders;
        let run = runs.run(a as u32);
        let writer_count = self.reach.row(run.last_commit)[chain];
        let reader_count = view.readers[chain];
        let n_before = partition_point(group.clone(), |other| {
            let at = other - view.first;
            view.installs[at] < writer_count || view.commits[at] < reader_count
        });
        // The last one before stands for the chain's earlier ones: their own order is known or found the same way.
        let before = group.start..n_before;
        if let Some(other) = before.rev().find(|&other| other != a) {
            let install = self.reach.row(run.install);
            if !view.is_implied(other, install, self.reach.row(run.commit)) {
                self.force(other as u32, a as u32, &mut out.edges);
            }
        }
        // Each pair once, in the turn of the run that comes first in the list.
        let undecided = n_before.max(a + 1)..group.end;
        for other in undecided {
            if view.installs[other - view.first] >= first_reached {
                break;
            }
            let (first, second) = (a as u32, other as u32);
            if !runs.is_trivial(first, second) && !self.is_impossible(second, first) {
                out.open.push((first, second));
            }
        }
    }
}

fn partition_point(range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
