//! The known graph with its rounds, and short paths in it by breadth-first search from both ends.
//!
//! Invariant: the edges of a node are sorted by age, so a search in what was known at some round stops early in each row.
//! Time nodes cost nothing on a path: a step in real time is one step, however many time nodes it passes.

use std::ops::Range;

use crate::relate::{Edge, Polygraph};

/// Edges by one of their ends.
struct EdgeRows {
    starts: Vec<u32>,
    edges: Vec<u32>,
    /// The edges' other ends, so that a walk need not look at the edges themselves.
    ends: Vec<u32>,
}

impl EdgeRows {
    fn new(n_nodes: usize, edges: &[Edge], ends: impl Fn(&Edge) -> (u32, u32)) -> Self {
        let mut starts = vec![0_u32; n_nodes + 2];
        for edge in edges {
            starts[ends(edge).0 as usize + 2] += 1;
        }
        for node in 0..=n_nodes {
            starts[node + 1] += starts[node];
        }
        let mut rows = vec![0; edges.len()];
        let mut others = vec![0; edges.len()];
        for (index, edge) in edges.iter().enumerate() {
            let (near, far) = ends(edge);
            let at = &mut starts[near as usize + 1];
            rows[*at as usize] = index as u32;
            others[*at as usize] = far;
            *at += 1;
        }
        starts.pop();
        EdgeRows {
            starts,
            edges: rows,
            ends: others,
        }
    }

    #[inline]
    fn range(&self, node: u32) -> Range<usize> {
        let node = node as usize;
        self.starts[node] as usize..self.starts[node + 1] as usize
    }

    #[inline]
    fn of(&self, node: u32) -> &[u32] {
        &self.edges[self.range(node)]
    }
}

/// The known edges, by source and by target.
pub(super) struct KnownGraph<'a> {
    /// Where they come from.
    pub(super) polygraph: &'a Polygraph,
    round_ends: &'a [usize],
    forward: EdgeRows,
    backward: EdgeRows,
    searches: [Search; 2],
}

/// One of the two searches that meet.
struct Search {
    /// Which search saw the node last, and by which edge.
    seen: Vec<u32>,
    parent: Vec<u32>,
    level: Vec<u32>,
    next: Vec<u32>,
}

impl Search {
    fn new(n_nodes: usize) -> Self {
        Search {
            seen: vec![0; n_nodes],
            parent: vec![u32::MAX; n_nodes],
            level: Vec::new(),
            next: Vec::new(),
        }
    }

    fn begin(&mut self, nodes: &[u32], stamp: u32) {
        self.level.clear();
        self.next.clear();
        for &node in nodes {
            self.seen[node as usize] = stamp;
            self.parent[node as usize] = u32::MAX;
            self.level.push(node);
        }
    }
}

impl<'a> KnownGraph<'a> {
    /// Sorts the edges.
    pub(super) fn new(polygraph: &'a Polygraph, round_ends: &'a [usize]) -> Self {
        let n_nodes = polygraph.n_nodes();
        let edges = polygraph.edges();
        KnownGraph {
            polygraph,
            round_ends,
            forward: EdgeRows::new(n_nodes, edges, |edge| (edge.from, edge.to)),
            backward: EdgeRows::new(n_nodes, edges, |edge| (edge.to, edge.from)),
            searches: [Search::new(n_nodes), Search::new(n_nodes)],
        }
    }

    /// An edge.
    #[inline]
    pub(super) fn edge(&self, index: u32) -> Edge {
        self.polygraph.edges()[index as usize]
    }

    /// The edges from a node, the earliest known first.
    #[inline]
    pub(super) fn out(&self, node: u32) -> &[u32] {
        self.forward.of(node)
    }

    /// Where the edges from a node stand in the rows.
    #[inline]
    pub(super) fn row(&self, node: u32) -> Range<u32> {
        let row = self.forward.range(node);
        row.start as u32..row.end as u32
    }

    /// Where the edge at a place of the rows leads.
    #[inline]
    pub(super) fn target_at(&self, place: u32) -> u32 {
        self.forward.ends[place as usize]
    }

    /// The edges to a node, the earliest known first.
    #[inline]
    pub(super) fn into(&self, node: u32) -> &[u32] {
        self.backward.of(node)
    }

    /// The round in which an edge became known; 0 is before pruning.
    pub(super) fn round(&self, index: u32) -> usize {
        let round = self
            .round_ends
            .partition_point(|&end| end <= index as usize);
        round.min(self.round_ends.len() - 1)
    }

    /// Where the edges known at the end of a round end.
    pub(super) fn end_of(&self, round: usize) -> u32 {
        self.round_ends[round] as u32
    }

    /// How many edges are known.
    pub(super) fn n_edges(&self) -> u32 {
        self.polygraph.edges().len() as u32
    }

    /// Whether a node belongs to the time chain.
    #[inline]
    pub(super) fn is_time(&self, node: u32) -> bool {
        self.polygraph.point(node).is_none()
    }

    /// A short path from one of `from` to one of `to` over the edges before `end`; empty where they share a node.
    pub(super) fn path(
        &mut self,
        from: &[u32],
        to: &[u32],
        end: u32,
        stamp: u32,
    ) -> Option<Vec<u32>> {
        self.searches[0].begin(from, stamp);
        self.searches[1].begin(to, stamp);
        if let Some(&both) = to
            .iter()
            .find(|&&node| self.searches[0].seen[node as usize] == stamp)
        {
            return Some(self.trace(both));
        }
        loop {
            let [ahead, back] = [0, 1].map(|way: usize| self.searches[way].level.len());
            if ahead == 0 || back == 0 {
                return None;
            }
            if let Some(meeting) = self.expand(usize::from(back < ahead), end, stamp) {
                return Some(self.trace(meeting));
            }
        }
    }

    /// Follows every edge from one search's level; the node where it meets the other search.
    fn expand(&mut self, way: usize, end: u32, stamp: u32) -> Option<u32> {
        let mut at = 0;
        while at < self.searches[way].level.len() {
            let node = self.searches[way].level[at];
            at += 1;
            let rows = if way == 0 {
                &self.forward
            } else {
                &self.backward
            };
            for &index in rows.of(node) {
                if index >= end {
                    break;
                }
                let edge = self.polygraph.edges()[index as usize];
                let next = if way == 0 { edge.to } else { edge.from };
                if self.searches[way].seen[next as usize] == stamp {
                    continue;
                }
                let is_time = self.polygraph.point(next).is_none();
                let search = &mut self.searches[way];
                search.seen[next as usize] = stamp;
                search.parent[next as usize] = index;
                if is_time {
                    search.level.push(next);
                } else {
                    search.next.push(next);
                }
                if self.searches[1 - way].seen[next as usize] == stamp {
                    return Some(next);
                }
            }
        }
        let search = &mut self.searches[way];
        search.level.clear();
        std::mem::swap(&mut search.level, &mut search.next);
        None
    }

    /// The path through the node where both searches met.
    fn trace(&self, meeting: u32) -> Vec<u32> {
        let mut path = Vec::new();
        let mut node = meeting;
        while self.searches[0].parent[node as usize] != u32::MAX {
            let index = self.searches[0].parent[node as usize];
            path.push(index);
            node = self.edge(index).from;
        }
        path.reverse();
        node = meeting;
        while self.searches[1].parent[node as usize] != u32::MAX {
            let index = self.searches[1].parent[node as usize];
            path.push(index);
            node = self.edge(index).to;
        }
        path
    }
}
