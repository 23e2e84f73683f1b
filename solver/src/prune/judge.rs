//! Judges pairs of runs: which of the two orders is still possible?
//!
//! The first judgement lists no pairs that are decided. With clocks it does not even look at them: the runs of a key on
//! one chain are sorted, those that must come before a given run are the first ones, those that it reaches the last ones,
//! and only what lies between is walked. Later judgements look at the pairs that were left open.

use rayon::prelude::*;

use super::chains::Clocks;
use super::dense::Dense;
use crate::budget::{Budget, StopReason};
use crate::polygraph::{Edge, Polygraph, Run};

/// Below this many items a second thread costs more than it saves.
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
    pub(super) polygraph: &'a Polygraph,
    pub(super) reach: &'a R,
    pub(super) budget: &'a Budget,
}

impl<R: Reaches> Judge<'_, R> {
    /// Whether `a` before `b` would close a cycle.
    #[inline]
    fn is_impossible(&self, a: Run, b: Run) -> bool {
        let polygraph = self.polygraph;
        let versions = polygraph.resolved.versions();
        let head = versions.writer(b.head);
        let last = versions.writer(a.last);
        if self
            .reach
            .reaches(polygraph.begin(head), polygraph.commit(last))
        {
            return true;
        }
        let head = polygraph.commit(head);
        let mut readers = versions.readers(a.last).iter();
        readers.any(|&reader| self.reach.reaches(head, polygraph.begin(reader)))
    }

    /// Makes the edges of `a` before `b` known, those left out that paths imply already.
    fn force(&self, a: Run, b: Run, edges: &mut Vec<Edge>) {
        let new = self.polygraph.order_edges(a, b);
        edges.extend(new.filter(|edge| !self.reach.reaches(edge.from, edge.to)));
    }

    /// Judges one pair.
    fn pair(&self, (a, b): Pair, out: &mut Judged) {
        let runs = &self.polygraph.runs;
        let (first, second) = (runs.run(a), runs.run(b));
        let not_first = self.is_impossible(first, second);
        let not_second = self.is_impossible(second, first);
        if not_first {
            self.force(second, first, &mut out.edges);
        }
        if not_second {
            self.force(first, second, &mut out.edges);
        }
        if !not_first && !not_second {
            out.open.push((a, b));
        }
    }

    /// Judges pairs that were open.
    pub(super) fn again(&self, open: &[Pair]) -> Result<Judged, StopReason> {
        let judge = |pairs: &[Pair]| {
            self.budget.check()?;
            let mut out = Judged::default();
            for &pair in pairs {
                self.pair(pair, &mut out);
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
    fn keys<K>(
        &self,
        enter: impl Fn(usize) -> K + Sync,
        judge_run: impl Fn(&mut K, usize, usize, &mut Judged) + Sync,
    ) -> Result<Judged, StopReason> {
        let runs = &self.polygraph.runs;
        let judge = |keys: std::ops::Range<usize>| {
            let mut out = Judged::default();
            for key in keys {
                let mut state = enter(key);
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
        let runs = &self.polygraph.runs;
        self.keys(
            |_| (),
            |(), key, a, out| {
                for b in a + 1..runs.range(key).end {
                    let (a, b) = (a as u32, b as u32);
                    if !self.polygraph.is_trivial(runs.run(a), runs.run(b)) {
                        self.pair((a, b), out);
                    }
                }
            },
        )
    }
}

impl Judge<'_, Clocks> {
    /// Judges every pair of every key, decided ones only through their neighbours on the chains.
    pub(super) fn along_chains(&self) -> Result<Judged, StopReason> {
        self.keys(
            |key| (self.groups(key), vec![0; self.reach.stride()]),
            |(groups, clock), _, a, out| {
                self.readers_clock(self.polygraph.runs.run(a as u32), clock);
                for group in groups {
                    self.run_and_group(a, group.clone(), clock, out);
                }
            },
        )
    }

    fn head_begin(&self, run: Run) -> u32 {
        let versions = self.polygraph.resolved.versions();
        self.polygraph.begin(versions.writer(run.head))
    }

    /// A key's runs whose heads are on one chain: they are neighbours, because runs stand in node order.
    fn groups(&self, key: usize) -> Vec<std::ops::Range<usize>> {
        let range = self.polygraph.runs.range(key);
        let start = range.start;
        let runs = self.polygraph.runs.of(key);
        let mut at = start;
        let chain = |run: &Run| self.reach.chain(self.head_begin(*run));
        runs.chunk_by(|a, b| chain(a) == chain(b))
            .map(|group| {
                at += group.len();
                at - group.len()..at
            })
            .collect()
    }

    /// For each chain, how many of its first nodes reach some reader of the run's last version.
    fn readers_clock(&self, run: Run, clock: &mut [u32]) {
        clock.fill(0);
        for &reader in self.polygraph.resolved.versions().readers(run.last) {
            let row = self.reach.row(self.polygraph.begin(reader));
            for (count, &before) in clock.iter_mut().zip(row) {
                *count = (*count).max(before);
            }
        }
    }

    /// Judges run `a` against the runs of one chain. `clock` is that of `a`'s readers.
    fn run_and_group(
        &self,
        a: usize,
        group: std::ops::Range<usize>,
        clock: &[u32],
        out: &mut Judged,
    ) {
        let polygraph = self.polygraph;
        let runs = &polygraph.runs;
        let run = runs.run(a as u32);
        let versions = polygraph.resolved.versions();
        let chain = self
            .reach
            .chain(self.head_begin(runs.run(group.start as u32)));
        let last = polygraph.commit(versions.writer(run.last));
        let (writer_count, reader_count) = (self.reach.row(last)[chain], clock[chain]);
        let must_be_before = |other: usize| {
            let head = versions.writer(runs.run(other as u32).head);
            self.reach.position(polygraph.begin(head)) < writer_count
                || self.reach.position(polygraph.commit(head)) < reader_count
        };
        let n_before = partition_point(group.clone(), must_be_before);
        // The last one before stands for the chain's earlier ones: their own order is known or found the same way.
        let before = group.start..n_before;
        if let Some(other) = before.rev().find(|&other| other != a) {
            self.force(runs.run(other as u32), run, &mut out.edges);
        }
        let head = self.head_begin(run);
        for other in n_before..group.end {
            if self
                .reach
                .reaches(head, self.head_begin(runs.run(other as u32)))
            {
                break;
            }
            // Each pair once; the other's turn lists it, or finds it decided.
            if other > a {
                let second = runs.run(other as u32);
                let open = !polygraph.is_trivial(run, second) && !self.is_impossible(second, run);
                if open {
                    out.open.push((a as u32, other as u32));
                }
            }
        }
    }
}

fn partition_point(range: std::ops::Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
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
