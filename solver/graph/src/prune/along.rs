//! `along`: the first judgement, along the chains. The runs of a key on one chain are sorted: those that must come before a given run are
//! the first ones, those that it reaches the last ones, and only what lies between is walked.
//!
//! Clocks are scattered in memory, so few are read: a run later in the topological order reaches no earlier one, and a
//! reader's clock is informative only for runs between the run and the reader. The clocks of a key's runs are
//! prefetched a few keys ahead, all at once, so that memory is waited for once per key.

use std::ops::Range;

use super::judge::{Judge, Judged};
use crate::orders::Run;
use crate::reach::{Clocks, raise};
use kingsnake_context::budget::StopReason;

/// With more readers their maximum clock is computed, once for all chains.
const FEW_READERS: usize = 4;

/// Number of keys that clocks are prefetched ahead.
const AHEAD: usize = 4;

/// A node: its chain, its position on it, and its place in the topological order.
#[derive(Clone, Copy, Debug)]
struct NodeSpot {
    chain: usize,
    position: u32,
    place: u32,
}

/// The nodes of a key as judging needs them, in one place.
#[derive(Default)]
struct KeyView {
    first: usize,
    /// The runs whose heads are on one chain, and the chain: they are neighbours, because runs stand in node order.
    groups: Vec<(Range<usize>, usize)>,
    runs: Vec<RunView>,
    /// For each run, where the edges of its being before another start: the commit of its last writer, then its readers.
    sources: Vec<NodeSpot>,
    /// The largest clock of the readers of the run under judgement, if it was asked for.
    readers: Vec<u32>,
    has_readers: bool,
}

struct RunView {
    install: NodeSpot,
    commit: NodeSpot,
    /// Where its sources end.
    end: u32,
    /// The latest place of a reader.
    last_reader: u32,
}

impl KeyView {
    fn run(&self, run: usize) -> &RunView {
        &self.runs[run - self.first]
    }

    /// The commit of a run's last writer, then its readers.
    fn sources(&self, run: usize) -> &[NodeSpot] {
        let at = run - self.first;
        let start = if at == 0 { 0 } else { self.runs[at - 1].end };
        &self.sources[start as usize..self.runs[at].end as usize]
    }

    /// Whether paths imply all edges of a run's being before the one whose head has these clocks.
    fn is_implied(&self, run: usize, install: &[u32], commit: &[u32]) -> bool {
        let sources = self.sources(run);
        let reaches = |clock: &[u32], it: &NodeSpot| clock[it.chain] > it.position;
        reaches(install, &sources[0]) && sources[1..].iter().all(|it| reaches(commit, it))
    }
}

impl Judge<'_, Clocks> {
    /// Judges every pair of every key, decided ones only through their neighbours on the chains. `places` are a topological order of the
    /// graph of the clocks; `descending` are its clocks that look the other way: where keys have many runs, those that a run reaches
    /// are not looked at.
    pub(super) fn along_chains(
        &self,
        places: &[u32],
        descending: Option<&Clocks>,
    ) -> Result<Judged, StopReason> {
        self.keys(
            |view, key| {
                self.touch(key + AHEAD);
                self.view(key, places, view);
            },
            |view: &mut KeyView, _, a, out| {
                view.has_readers = false;
                let reached = descending.map(|it| it.row(self.orders.run(a as u32).install));
                for at in 0..view.groups.len() {
                    let (group, chain) = view.groups[at].clone();
                    let first_reached = match reached {
                        Some(reached) => self.reach.chain_length(chain) - reached[chain],
                        None => u32::MAX,
                    };
                    self.run_and_group(view, a, group, chain, first_reached, out);
                }
            },
        )
    }

    /// Reads a word of each clock that a key will need.
    fn touch(&self, key: usize) {
        if key < self.orders.n_keys() {
            let runs = self.orders.of(key).iter();
            let words = runs.map(|run| self.reach.row(run.last_commit)[0]);
            std::hint::black_box(words.fold(0, |all, word| all ^ word));
        }
    }

    fn view(&self, key: usize, places: &[u32], view: &mut KeyView) {
        let range = self.orders.range(key);
        view.first = range.start;
        view.groups.clear();
        view.runs.clear();
        view.sources.clear();
        let spot = |node: u32| NodeSpot {
            chain: self.reach.chain(node),
            position: self.reach.position(node),
            place: places[node as usize],
        };
        for at in range {
            let run = self.orders.run(at as u32);
            let install = spot(run.install);
            let same = |node: u32| {
                if node == run.install {
                    install
                } else {
                    spot(node)
                }
            };
            view.sources.push(same(run.last_commit));
            let first = view.sources.len();
            let readers = self.orders.readers(at as u32).iter();
            view.sources.extend(readers.map(|&reader| spot(reader)));
            let readers = view.sources[first..].iter();
            view.runs.push(RunView {
                install,
                commit: same(run.commit),
                end: view.sources.len() as u32,
                last_reader: readers.map(|it| it.place).max().unwrap_or(0),
            });
            match view.groups.last_mut() {
                Some((group, chain)) if *chain == install.chain => group.end = at + 1,
                _ => view.groups.push((at..at + 1, install.chain)),
            }
        }
    }

    /// How many of a chain's first nodes reach some reader of run `a`. Only readers after this place can tell.
    fn reader_count(&self, view: &mut KeyView, a: usize, chain: usize, place: u32) -> u32 {
        let readers = self.orders.readers(a as u32);
        if readers.len() <= FEW_READERS {
            let spots = &view.sources(a)[1..];
            let later = readers.iter().zip(spots).filter(|it| it.1.place > place);
            let counts = later.map(|(&reader, _)| self.reach.row(reader)[chain]);
            return counts.max().unwrap_or(0);
        }
        if !std::mem::replace(&mut view.has_readers, true) {
            view.readers.clear();
            view.readers.resize(self.reach.stride(), 0);
            for &reader in readers {
                raise(&mut view.readers, self.reach.row(reader));
            }
        }
        view.readers[chain]
    }

    /// Where the runs of a chain end that must come before run `a`: their heads reach its last writer or one of its readers.
    fn end_before(&self, view: &mut KeyView, a: usize, group: Range<usize>, chain: usize) -> usize {
        let mut end = group.start;
        if view.run(end).install.place < view.sources(a)[0].place {
            let count = self.reach.row(self.orders.run(a as u32).last_commit)[chain];
            end = partition_point(group.clone(), |it| view.run(it).install.position < count);
        }
        if end == group.end {
            return end;
        }
        let place = view.run(end).commit.place;
        if place < view.run(a).last_reader {
            let count = self.reader_count(view, a, chain, place);
            end = partition_point(end..group.end, |it| view.run(it).commit.position < count);
        }
        end
    }

    /// Whether a run before `a` would close a cycle.
    fn is_not_before(&self, view: &KeyView, run: usize, a: usize) -> bool {
        let RunView {
            install, commit, ..
        } = view.run(a);
        let sources = view.sources(run);
        let reaches = |from: &NodeSpot, to: &NodeSpot, node: u32| {
            from.place < to.place && self.reach.row(node)[from.chain] > from.position
        };
        let Run { last_commit, .. } = *self.orders.run(run as u32);
        let mut readers = self.orders.readers(run as u32).iter().zip(&sources[1..]);
        reaches(install, &sources[0], last_commit)
            || readers.any(|(&node, reader)| reaches(commit, reader, node))
    }

    /// Judges run `a` against the runs of one chain, of which `a`'s head reaches those from `first_reached` on.
    fn run_and_group(
        &self,
        view: &mut KeyView,
        a: usize,
        group: Range<usize>,
        chain: usize,
        first_reached: u32,
        out: &mut Judged,
    ) {
        let run = self.orders.run(a as u32);
        let end = self.end_before(view, a, group.clone(), chain);
        // The last one before stands for the chain's earlier ones: their own order is known or found the same way.
        let before = group.start..end;
        if let Some(other) = before.rev().find(|&other| other != a) {
            let install = self.reach.row(run.install);
            if !view.is_implied(other, install, self.reach.row(run.commit)) {
                self.force(other as u32, a as u32, &mut out.edges);
            }
        }
        // Each pair once, in the turn of the run that comes first in the list.
        for other in end.max(a + 1)..group.end {
            if view.run(other).install.position >= first_reached {
                break;
            }
            let (first, second) = (a as u32, other as u32);
            if !self.orders.is_trivial(first, second) && !self.is_not_before(view, other, a) {
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

#[cfg(test)]
mod tests {
    use super::super::rounds::tests::problem;
    use super::*;
    use crate::edge::Edge;
    use crate::problem::Problem;
    use crate::reach::Dag;
    use kingsnake_context::budget::Budget;

    /// Whether the first judgement along chains finds what judging every pair finds, if these are the places.
    fn is_whole(problem: &Problem, dag: &Dag, places: &[u32], looks_back: bool) -> bool {
        let clocks = Clocks::new(dag, &problem.chains);
        let descending = looks_back.then(|| clocks.descending(dag));
        let judge = Judge {
            orders: &problem.orders,
            reach: &clocks,
            budget: &Budget::unlimited(),
        };
        let along = judge.along_chains(places, descending.as_ref());
        let (mut along, mut all) = (along.expect("time"), judge.all_pairs().expect("time"));
        along.open.sort_unstable();
        all.open.sort_unstable();
        // Along chains an edge stands for those that it implies.
        let closed = dag.with(along.edges.iter()).expect("no cycle");
        let closed = Clocks::new(&closed, &problem.chains);
        let is_implied = |edge: &Edge| closed.reaches(edge.from, edge.to);
        along.open == all.open && all.edges.iter().all(is_implied)
    }

    #[test]
    fn along_chains_every_pair_is_judged_as_by_itself() {
        let mut n_caught = 0;
        for (n_txns, n_sessions, n_keys) in [(24, 3, 2), (60, 5, 3), (300, 6, 40), (900, 9, 7)] {
            let problem = problem(n_txns, n_sessions, n_keys);
            let dag = Dag::new(problem.n_nodes, problem.edges.iter()).expect("no cycle");
            for looks_back in [false, true] {
                let is_whole = |places: &[u32]| is_whole(&problem, &dag, places, looks_back);
                assert!(is_whole(&dag.places()), "{n_txns} {looks_back}");
                let mut wrong = dag.places();
                wrong.reverse();
                n_caught += usize::from(!is_whole(&wrong));
                n_caught += usize::from(!is_whole(&vec![0; problem.n_nodes]));
            }
        }
        assert!(n_caught > 8, "{n_caught} of 16 wrong places were caught");
    }
}
