//! The problem: nodes, known edges, orders, and logic over guarded edges.

use std::ops::Range;

use crate::edge::Edge;
use crate::logic::Logic;
use crate::orders::Orders;

/// What must be decided without a cycle.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// The number of nodes.
    pub n_nodes: usize,
    /// Known edges, each with its reason. Pruning appends to them round by round.
    pub edges: Vec<Edge>,
    /// Pairs of runs, each to be ordered one way or the other.
    pub orders: Orders,
    /// Paths of known edges, as disjoint ranges of nodes. Few long ones make reachability cheap. A node that is on none is only
    /// passed: no order and no literal is about it.
    pub chains: Vec<Range<u32>>,
    /// Choices, guarded edges and clauses.
    pub logic: Logic,
}

impl Problem {
    /// Nodes without edges, each a chain of its own.
    pub fn new(n_nodes: usize) -> Self {
        Problem {
            n_nodes,
            chains: (0..n_nodes as u32).map(|node| node..node + 1).collect(),
            ..Problem::default()
        }
    }

    /// Makes every order that a literal is about one that matters.
    pub(crate) fn bind_orders(&mut self) {
        for (a, b) in self.logic.orders() {
            self.orders.bind(a);
            self.orders.bind(b);
        }
    }

    /// Whether the known edges are all there is.
    pub fn is_settled(&self) -> bool {
        self.orders.is_empty() && self.logic.is_empty()
    }
}

impl AsRef<Problem> for Problem {
    fn as_ref(&self) -> &Problem {
        self
    }
}
