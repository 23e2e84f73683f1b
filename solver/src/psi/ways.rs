//! Short paths in D: cheapest first, where an order that was taken costs more than what the history shows.

use super::known::Link;
use crate::relate::Reason;
use kingsnake_graph::paths::cheapest;

/// The edges of a graph, by both ends.
pub(super) struct Ways<'k> {
    edges: &'k [Link],
    out: Vec<Vec<u32>>,
    into: Vec<Vec<u32>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Ahead,
    Back,
}

/// The cheapest paths from a node, or to it.
pub(super) struct Tree {
    root: u32,
    way: Way,
    costs: Vec<u32>,
    /// The edge on the way.
    last: Vec<u32>,
}

impl<'k> Ways<'k> {
    pub(super) fn new(edges: &'k [Link], n_nodes: usize) -> Self {
        let mut out = vec![Vec::new(); n_nodes];
        let mut into = out.clone();
        for (at, (edge, _)) in edges.iter().enumerate() {
            out[edge.from as usize].push(at as u32);
            into[edge.to as usize].push(at as u32);
        }
        Ways { edges, out, into }
    }

    /// What an edge costs on a path: orders need explaining.
    fn cost((edge, pair): &Link) -> u32 {
        match (edge.reason, pair) {
            (_, Some(_)) => 5,
            (Reason::Ww { .. }, None) => 3,
            _ => 2,
        }
    }

    /// Cheapest paths.
    pub(super) fn tree(&self, root: u32, way: Way) -> Tree {
        let (costs, last) = cheapest(self.out.len(), root, u32::MAX, |node| {
            let edges = match way {
                Way::Ahead => &self.out[node as usize],
                Way::Back => &self.into[node as usize],
            };
            edges.iter().map(move |&at| {
                let link = &self.edges[at as usize];
                let next = match way {
                    Way::Ahead => link.0.to,
                    Way::Back => link.0.from,
                };
                (next, Ways::cost(link), at)
            })
        });
        Tree {
            root,
            way,
            costs,
            last,
        }
    }
}

impl Tree {
    pub(super) fn cost(&self, node: u32) -> Option<u32> {
        let cost = self.costs[node as usize];
        (cost != u32::MAX).then_some(cost)
    }

    /// The path between the root and a node, in the direction of its edges.
    pub(super) fn path(&self, ways: &Ways<'_>, mut node: u32) -> Vec<Link> {
        let mut path = Vec::new();
        while node != self.root {
            let link = ways.edges[self.last[node as usize] as usize];
            path.push(link);
            node = match self.way {
                Way::Ahead => link.0.from,
                Way::Back => link.0.to,
            };
        }
        if self.way == Way::Ahead {
            path.reverse();
        }
        path
    }
}
