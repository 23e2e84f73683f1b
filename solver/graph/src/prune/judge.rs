//! Judges pairs of runs: which of the two orders is still possible.
//!
//! The first judgement lists no pairs that are decided; with clocks it does not even look at them (`along`). Later judgements
//! look at the pairs that were left open.

use std::ops::Range;

use rayon::prelude::*;

use crate::edge::Edge;
use crate::orders::Orders;
use crate::reach::{Clocks, Dense};
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

    /// Judges pairs that were open. Those of two runs whose paths are as before stay open.
    pub(super) fn again(
        &self,
        open: &[Pair],
        may_change: impl Fn(u32) -> bool + Sync,
    ) -> Result<Judged, StopReason> {
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
    pub(super) fn keys<K: Default>(
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
