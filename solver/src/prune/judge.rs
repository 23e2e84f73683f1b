//! Judges pairs of runs: which of the two orders is still possible?
//!
//! The first judgement lists no pairs that are decided. With clocks it does not even look at them: the runs of a key on
//! one chain are sorted, those that must come before a given run are the first ones, those that it reaches the last ones,
//! and only what lies between is walked. Later judgements look at the pairs that were left open.

use std::ops::Range;

use rayon::prelude::*;

use super::chains::{Clocks, raise};
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
        let judge = |keys: Range<usize>| {
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

/// A key's runs as positions on the chains, side by side, so that judging a key touches little memory.
struct KeyView {
    first: usize,
    /// The runs whose heads are on one chain, and the chain: they are neighbours, because runs stand in node order.
    groups: Vec<(Range<usize>, usize)>,
    /// Where the writer of each run's head begins and commits on its chain.
    begins: Vec<u32>,
    commits: Vec<u32>,
    /// For each run, where the edges of its being before another start: the commit of its last writer, then the begins
    /// of the readers, each as a chain and a position.
    sources: Vec<(u32, u32)>,
    sources_end: Vec<u32>,
    /// The clock of the readers of the run under judgement.
    readers: Vec<u32>,
}

impl KeyView {
    /// Whether paths imply all edges of a run's being before the one whose head has these clocks.
    fn is_implied(&self, run: usize, begin: &[u32], commit: &[u32]) -> bool {
        let at = run - self.first;
        let start = if at == 0 { 0 } else { self.sources_end[at - 1] };
        let sources = &self.sources[start as usize..self.sources_end[at] as usize];
        let reaches = |clock: &[u32], (chain, position)| clock[chain as usize] > position;
        reaches(begin, sources[0]) && sources[1..].iter().all(|&it| reaches(commit, it))
    }
}

impl Judge<'_, Clocks> {
    /// Judges every pair of every key, decided ones only through their neighbours on the chains. `descending` are the
    /// same graph's clocks that look the other way.
    pub(super) fn along_chains(&self, descending: &Clocks) -> Result<Judged, StopReason> {
        self.keys(
            |key| self.view(key),
            |view, _, a, out| {
                let run = self.polygraph.runs.run(a as u32);
                self.read_clock(run, &mut view.readers);
                let reached = descending.row(self.head_begin(run));
                for (group, chain) in &view.groups {
                    let first_reached = self.reach.chain_length(*chain) - reached[*chain];
                    self.run_and_group(view, a, group.clone(), *chain, first_reached, out);
                }
            },
        )
    }

    fn head_begin(&self, run: Run) -> u32 {
        let versions = self.polygraph.resolved.versions();
        self.polygraph.begin(versions.writer(run.head))
    }

    fn view(&self, key: usize) -> KeyView {
        let versions = self.polygraph.resolved.versions();
        let runs = self.polygraph.runs.of(key);
        let writers = || runs.iter().map(|run| versions.writer(run.head));
        let chain = |run: &Run| self.reach.chain(self.head_begin(*run));
        let first = self.polygraph.runs.range(key).start;
        let mut at = first;
        let groups = runs.chunk_by(|a, b| chain(a) == chain(b)).map(|group| {
            at += group.len();
            (at - group.len()..at, chain(&group[0]))
        });
        let source = |node: u32| (self.reach.chain(node) as u32, self.reach.position(node));
        let (mut sources, mut sources_end) = (Vec::new(), Vec::new());
        for run in runs {
            let readers = versions.readers(run.last).iter();
            sources.push(source(self.polygraph.commit(versions.writer(run.last))));
            sources.extend(readers.map(|&reader| source(self.polygraph.begin(reader))));
            sources_end.push(sources.len() as u32);
        }
        KeyView {
            first,
            sources,
            sources_end,
            groups: groups.collect(),
            begins: writers()
                .map(|writer| self.reach.position(self.polygraph.begin(writer)))
                .collect(),
            commits: writers()
                .map(|writer| self.reach.position(self.polygraph.commit(writer)))
                .collect(),
            readers: vec![0; self.reach.stride()],
        }
    }

    /// For each chain, how many of its first nodes reach some reader of the run's last version.
    fn read_clock(&self, run: Run, clock: &mut [u32]) {
        clock.fill(0);
        for &reader in self.polygraph.resolved.versions().readers(run.last) {
            raise(clock, self.reach.row(self.polygraph.begin(reader)));
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
        let polygraph = self.polygraph;
        let runs = &polygraph.runs;
        let run = runs.run(a as u32);
        let versions = polygraph.resolved.versions();
        let last = polygraph.commit(versions.writer(run.last));
        let (writer_count, reader_count) = (self.reach.row(last)[chain], view.readers[chain]);
        let n_before = partition_point(group.clone(), |other| {
            let at = other - view.first;
            view.begins[at] < writer_count || view.commits[at] < reader_count
        });
        // The last one before stands for the chain's earlier ones: their own order is known or found the same way.
        let before = group.start..n_before;
        if let Some(other) = before.rev().find(|&other| other != a) {
            let head = versions.writer(run.head);
            let begin = self.reach.row(polygraph.begin(head));
            if !view.is_implied(other, begin, self.reach.row(polygraph.commit(head))) {
                self.force(runs.run(other as u32), run, &mut out.edges);
            }
        }
        // Each pair once, in the turn of the run that comes first in the list.
        let undecided = n_before.max(a + 1)..group.end;
        for other in undecided {
            if view.begins[other - view.first] >= first_reached {
                break;
            }
            let second = runs.run(other as u32);
            if !polygraph.is_trivial(run, second) && !self.is_impossible(second, run) {
                out.open.push((a as u32, other as u32));
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
