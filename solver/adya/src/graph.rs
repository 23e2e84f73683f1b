//! The direct serialization graph: edges of five kinds, and the questions about cycles that the levels ask.
//!
//! A level is a mask of kinds. "No cycle" is one topological sort over the mask; "no cycle with exactly one rw" sorts the
//! other edges, and asks for each rw edge that runs backwards whether its end reaches its begin, 64 ends at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use kingsnake_graph::components;
use kingsnake_graph::sort::peeled;
use kingsnake_history::adya::Dependency;

use crate::rules::Rules;
use crate::versions::NOBODY;
use crate::windows::places;

/// Edges as they are found.
#[derive(Clone, Default)]
pub(crate) struct Edges {
    list: Vec<(u32, u32, u8)>,
    keep: Keep,
    n_dropped: usize,
}

/// Which edges are kept.
#[derive(Clone, Default)]
enum Keep {
    #[default]
    All,
    /// Those that run backwards in a guessed order: the place of every transaction.
    Backwards(Arc<[u32]>),
    /// Those within a window of the guessed order: the window of every transaction, or [`NOBODY`].
    Within(Arc<[u32]>),
}

impl Edges {
    #[inline]
    pub(crate) fn add(&mut self, kind: Dependency, from: u32, to: u32) {
        if from == to || from == NOBODY || to == NOBODY {
            return;
        }
        let is_kept = match &self.keep {
            Keep::All => true,
            Keep::Backwards(place) => place[from as usize] >= place[to as usize],
            Keep::Within(window) => {
                let (from, to) = (window[from as usize], window[to as usize]);
                from == to && from != NOBODY
            }
        };
        if is_kept {
            self.list.push((from, to, kind.bit()));
        } else {
            self.n_dropped += 1;
        }
    }

    /// No edges yet, and a guess of an order that they may all agree with: then there is no cycle.
    pub(crate) fn guessing(order: &[u32]) -> Self {
        Edges {
            keep: Keep::Backwards(places(order).into()),
            ..Edges::default()
        }
    }

    /// No edges yet, and only those within a window will be kept.
    pub(crate) fn within(window: &Arc<[u32]>) -> Self {
        Edges {
            keep: Keep::Within(Arc::clone(window)),
            ..Edges::default()
        }
    }

    /// No edges yet, and the same rule for those to come.
    pub(crate) fn empty_like(&self) -> Self {
        Edges {
            keep: self.keep.clone(),
            ..Edges::default()
        }
    }

    /// Number of edges found, kept or not.
    pub(crate) fn n_found(&self) -> usize {
        self.list.len() + self.n_dropped
    }

    /// The edges of a mask.
    pub(crate) fn of(&self, mask: u8) -> impl Iterator<Item = (u32, u32)> + '_ {
        let kept = self.list.iter().filter(move |it| it.2 & mask != 0);
        kept.map(|it| (it.0, it.1))
    }

    pub(crate) fn append(&mut self, mut other: Edges) {
        self.list.append(&mut other.list);
        self.n_dropped += other.n_dropped;
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Keeps each edge once, from `start` on.
    pub(crate) fn tidy(&mut self, start: usize) {
        let mut rest = self.list.split_off(start);
        rest.sort_unstable();
        rest.dedup();
        self.list.append(&mut rest);
    }
}

/// Edges by the node that they leave.
pub(crate) struct Graph {
    start: Vec<u32>,
    targets: Vec<u32>,
    kinds: Vec<u8>,
}

pub(crate) const WW: u8 = 1;
/// ww, wr and pred-wr: how information flows.
pub(crate) const FLOW: u8 = 1 | 2 | 8;
/// What is not a predicate anti-dependency.
pub(crate) const ITEM: u8 = FLOW | 4;
pub(crate) const ANTI: u8 = 4 | 16;
pub(crate) const EVERY: u8 = 31;

/// A step of a cycle: where it begins and ends, and of which kind it is.
pub(crate) type Link = (u32, u32, u8);

impl Graph {
    pub(crate) fn new(n_nodes: usize, edges: &Edges) -> Self {
        let mut start = vec![0_u32; n_nodes + 1];
        for edge in &edges.list {
            start[edge.0 as usize + 1] += 1;
        }
        for node in 0..n_nodes {
            start[node + 1] += start[node];
        }
        let mut next = start.clone();
        let mut targets = vec![0; edges.list.len()];
        let mut kinds = vec![0; edges.list.len()];
        for &(from, to, kind) in &edges.list {
            let at = next[from as usize] as usize;
            next[from as usize] += 1;
            targets[at] = to;
            kinds[at] = kind;
        }
        Graph {
            start,
            targets,
            kinds,
        }
    }

    pub(crate) fn n_nodes(&self) -> usize {
        self.start.len() - 1
    }

    #[inline]
    fn out(&self, node: u32, mask: u8) -> impl Iterator<Item = (u32, u8)> + '_ {
        let range = self.start[node as usize] as usize..self.start[node as usize + 1] as usize;
        range
            .map(|at| (self.targets[at], self.kinds[at]))
            .filter(move |edge| edge.1 & mask != 0)
    }

    /// An order that every edge of the mask agrees with, if there is one. Among equals it keeps the order of the numbers.
    pub(crate) fn order(&self, mask: u8) -> Option<Vec<u32>> {
        let n = self.n_nodes();
        let mut n_in = vec![0_u32; n];
        for node in 0..n as u32 {
            for (to, _) in self.out(node, mask) {
                n_in[to as usize] += 1;
            }
        }
        let order = peeled(n_in, |node| self.out(node, mask).map(|it| it.0));
        (order.len() == n).then_some(order)
    }

    /// A short cycle of the mask, if there is one.
    pub(crate) fn cycle(&self, mask: u8) -> Option<Vec<Link>> {
        const TRIES: usize = 32;
        let component = self.smallest_component(mask)?;
        let inside: rustc_hash::FxHashSet<u32> = component.iter().copied().collect();
        let shortest = component.iter().take(TRIES).filter_map(|&node| {
            let step = |at: u32| self.out(at, mask).filter(|it| inside.contains(&it.0));
            path(node, node, step)
        });
        shortest.min_by_key(Vec::len)
    }

    /// The smallest strongly connected component of more than one node.
    fn smallest_component(&self, mask: u8) -> Option<Vec<u32>> {
        let row = |node: u32| self.start[node as usize]..self.start[node as usize + 1];
        let target = |_, at: u32| {
            let is_kept = self.kinds[at as usize] & mask != 0;
            is_kept.then(|| self.targets[at as usize])
        };
        let found = components(self.n_nodes(), row, target);
        let mut sizes = vec![0_u32; found.n];
        found.of.iter().for_each(|&it| sizes[it as usize] += 1);
        let several = (0..found.n).filter(|&it| sizes[it] > 1);
        let smallest = several.min_by_key(|&it| sizes[it])?;
        let nodes = (0..self.n_nodes() as u32).zip(&found.of);
        let members = nodes.filter(|it| *it.1 as usize == smallest);
        Some(members.map(|it| it.0).collect())
    }

    /// A cycle of exactly one anti-dependency and else flow, given an order that all flow agrees with.
    pub(crate) fn single<R: Rules>(&self, order: &[u32]) -> Option<Vec<Link>> {
        let place = places(order);
        // Anti-dependencies that run backwards, by where they end.
        let mut back: Vec<(u32, u32, u8)> = Vec::new();
        for node in 0..order.len() as u32 {
            for (to, kind) in self.out(node, ANTI) {
                if R::runs_back(&place, node, to) {
                    back.push((place[to as usize], place[node as usize], kind));
                }
            }
        }
        back.sort_unstable();
        let mut reached = vec![0_u64; order.len()];
        let mut from = 0;
        while from < back.len() {
            let mut ends = Vec::with_capacity(64);
            let mut to = from;
            let mut last = 0;
            while to < back.len() {
                if ends.last() != Some(&back[to].0) {
                    if ends.len() == 64 {
                        break;
                    }
                    ends.push(back[to].0);
                }
                last = last.max(back[to].1);
                to += 1;
            }
            reached[ends[0] as usize..=last as usize].fill(0);
            for (bit, &end) in ends.iter().enumerate() {
                reached[end as usize] |= 1 << bit;
            }
            for at in ends[0]..=last {
                let bits = reached[at as usize];
                if bits != 0 {
                    for (to, _) in self.out(order[at as usize], FLOW) {
                        let to = place[to as usize];
                        if to <= last {
                            reached[to as usize] |= bits;
                        }
                    }
                }
            }
            let mut bit = 0;
            for &(end, begin, kind) in &back[from..to] {
                while ends[bit] != end {
                    bit += 1;
                }
                if reached[begin as usize] & (1 << bit) != 0 {
                    let (begin, end) = (order[begin as usize], order[end as usize]);
                    let mut links = vec![(begin, end, kind)];
                    links.extend(path(end, begin, |at| self.out(at, FLOW))?);
                    return Some(links);
                }
            }
            from = to;
        }
        None
    }

    /// Every edge of the mask.
    pub(crate) fn links(&self, mask: u8) -> impl Iterator<Item = Link> + '_ {
        let nodes = 0..self.n_nodes() as u32;
        nodes.flat_map(move |node| self.out(node, mask).map(move |(to, kind)| (node, to, kind)))
    }
}

/// The shortest path of at least one step from one node to another.
fn path<I: Iterator<Item = (u32, u8)>>(
    from: u32,
    to: u32,
    step: impl Fn(u32) -> I,
) -> Option<Vec<Link>> {
    let mut came: rustc_hash::FxHashMap<u32, (u32, u8)> = rustc_hash::FxHashMap::default();
    let mut queue = VecDeque::from([from]);
    'search: while let Some(node) = queue.pop_front() {
        for (next, kind) in step(node) {
            if let std::collections::hash_map::Entry::Vacant(entry) = came.entry(next) {
                entry.insert((node, kind));
                if next == to {
                    break 'search;
                }
                queue.push_back(next);
            }
        }
    }
    let mut links = Vec::new();
    let mut node = to;
    loop {
        let &(before, kind) = came.get(&node)?;
        links.push((before, node, kind));
        node = before;
        if node == from {
            links.reverse();
            return Some(links);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::ExactRules;

    fn graph(n: usize, list: &[(u32, u32, Dependency)]) -> Graph {
        let mut edges = Edges::default();
        for &(from, to, kind) in list {
            edges.add(kind, from, to);
        }
        Graph::new(n, &edges)
    }

    #[test]
    fn a_cycle_is_found_only_under_its_mask() {
        use Dependency::{PredRw, Rw, Wr, Ww};
        let graph = graph(
            4,
            &[
                (0, 1, Ww),
                (1, 2, Wr),
                (2, 0, Rw),
                (2, 3, Ww),
                (3, 0, PredRw),
            ],
        );
        assert!(graph.cycle(WW).is_none() && graph.cycle(FLOW).is_none());
        assert_eq!(graph.cycle(ITEM).map(|links| links.len()), Some(3));
        let order = graph.order(FLOW).expect("flow has no cycle");
        let single = graph
            .single::<ExactRules>(&order)
            .expect("there is a cycle with one rw");
        assert_eq!(single.iter().filter(|link| link.2 & ANTI != 0).count(), 1);
        assert!(graph.order(ITEM).is_none());
    }

    #[test]
    fn two_anti_dependencies_are_not_single() {
        use Dependency::{Rw, Wr};
        let graph = graph(3, &[(0, 1, Rw), (1, 0, Rw), (1, 2, Wr)]);
        let order = graph.order(FLOW).expect("flow has no cycle");
        assert!(graph.single::<ExactRules>(&order).is_none());
        assert_eq!(graph.cycle(EVERY).map(|links| links.len()), Some(2));
    }
}
