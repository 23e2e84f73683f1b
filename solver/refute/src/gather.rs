//! Gathers the transactions that a forced edge depends on: the path that closed the other side, and what that path depends on.
//!
//! A run of versions was forced before another because some edge of the opposite order closed a cycle with edges of earlier
//! rounds. So reasons lead to earlier rounds, and the recursion ends.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::known::KnownGraph;
use crate::relate::{Edge, Polygraph};
use crate::resolve::{Node, VersionId};

/// The transactions found so far.
pub(super) struct Gathering<'g, 'a> {
    graph: &'g mut KnownGraph<'a>,
    nodes: BTreeSet<Node>,
    justified: FxHashSet<(VersionId, VersionId)>,
    stamp: &'g mut u32,
    /// How many forced orders are followed back.
    most: usize,
}

impl<'g, 'a> Gathering<'g, 'a> {
    /// Nothing yet. The stamp tells searches apart and only grows.
    pub(super) fn new(graph: &'g mut KnownGraph<'a>, stamp: &'g mut u32, most: usize) -> Self {
        Gathering {
            graph,
            nodes: BTreeSet::new(),
            justified: FxHashSet::default(),
            stamp,
            most,
        }
    }

    /// The transactions, sorted.
    pub(super) fn into_nodes(self) -> Vec<Node> {
        self.nodes.into_iter().collect()
    }

    /// Adds the transactions of two nodes.
    pub(super) fn add_nodes(&mut self, from: u32, to: u32) {
        for node in [from, to] {
            self.nodes.extend(self.graph.polygraph.transaction(node));
        }
    }

    fn add_ends(&mut self, edge: Edge) {
        self.add_nodes(edge.from, edge.to);
    }

    /// Adds known edges and everything that they rest on.
    pub(super) fn add_known(&mut self, edges: &[u32]) {
        let mut open: Vec<u32> = edges.to_vec();
        while let Some(index) = open.pop() {
            let edge = self.graph.edge(index);
            self.add_ends(edge);
            if let Some((_, after)) = Polygraph::fact(edge.reason) {
                self.add_ring(after);
            }
            let round = self.graph.round(index);
            if round > 0 && self.justified.len() < self.most {
                open.extend(self.justification(edge, round));
            }
        }
    }

    /// Adds the writers of a circle of read-modify-writes that a version is in or was made of: no order of such versions is a
    /// fact, so the reads must tell.
    fn add_ring(&mut self, version: VersionId) {
        let versions = self.graph.polygraph.resolved().versions();
        let mut ring = vec![version];
        let mut before = versions.predecessor(version);
        let n_versions = versions.of_key(versions.key(version)).len();
        while let Some(it) = before.filter(|&it| it != version && ring.len() < n_versions) {
            ring.push(it);
            before = versions.predecessor(it);
        }
        if before.is_some() {
            self.nodes
                .extend(ring.iter().map(|&it| versions.writer(it)));
        }
    }

    /// Adds a shortest path between two nodes, if there is one, and everything that it rests on.
    pub(super) fn add_path(&mut self, from: u32, to: u32) {
        *self.stamp += 1;
        let end = self.graph.n_edges();
        if let Some(path) = self.graph.path(&[from], &[to], end, *self.stamp) {
            self.add_known(&path);
        }
    }

    /// The path that closes a cycle with the opposite order of the two runs.
    fn justification(&mut self, edge: Edge, round: usize) -> Vec<u32> {
        let polygraph = self.graph.polygraph;
        let Some((before, after)) = Polygraph::fact(edge.reason) else {
            return Vec::new();
        };
        if !self.justified.insert((before, after)) {
            return Vec::new();
        }
        let Some(opposite) = polygraph.opposite(before, after) else {
            return Vec::new();
        };
        let end = self.graph.end_of(round - 1);
        let Some((edge, path)) = opposite_path(self.graph, &opposite, end, self.stamp) else {
            if let Some(&edge) = opposite.first() {
                self.add_ends(edge);
            }
            return Vec::new();
        };
        self.add_ends(edge);
        path
    }
}

/// Why an order of two runs is forced: an edge of the opposite order, and a path over the edges before `end` that closes a cycle
/// with it.
pub(super) fn opposite_path(
    graph: &mut KnownGraph<'_>,
    opposite: &[Edge],
    end: u32,
    stamp: &mut u32,
) -> Option<(Edge, Vec<u32>)> {
    let mut best: Option<(Edge, Vec<u32>)> = None;
    // The edges of an order end at the begin or at the commit of one transaction: one search for each.
    let mut targets: Vec<u32> = opposite.iter().map(|edge| edge.to).collect();
    targets.dedup();
    for target in targets {
        let to_target = || opposite.iter().filter(|edge| edge.to == target);
        let sources: Vec<u32> = to_target().map(|edge| edge.from).collect();
        *stamp += 1;
        let Some(path) = graph.path(&[target], &sources, end, *stamp) else {
            continue;
        };
        let reached = path.last().map_or(target, |&last| graph.edge(last).to);
        if let Some(&edge) = to_target().find(|edge| edge.from == reached)
            && best
                .as_ref()
                .is_none_or(|(_, least)| path.len() < least.len())
        {
            best = Some((edge, path));
        }
    }
    best
}
