//! What happened before each transaction, by session order and reads: vector clocks over sessions, or over single transactions.

use super::Visible;
use super::sort::sorted;
use crate::budget::{Budget, StopReason};
use crate::resolve::Node;

/// For each transaction and each chain, where in the chain its past ends.
pub(super) struct Past {
    chain_of: Vec<u32>,
    n_chains: usize,
    ends: Vec<Node>,
}

impl Past {
    /// The clocks of all transactions; `None` if something happened before itself.
    pub(super) fn of(graph: &Visible<'_>, budget: &Budget) -> Result<Option<Self>, StopReason> {
        let n_nodes = graph.resolved.n_txns();
        let Some(order) = sorted(n_nodes, &graph.edges, super::Commits::happens_before) else {
            return Ok(None);
        };
        let mut chain_of = vec![0; n_nodes];
        let mut starts: Vec<Node> = Vec::new();
        for nodes in graph.resolved.sessions() {
            for node in nodes.clone() {
                if node == nodes.start || !graph.session_order {
                    starts.push(node);
                }
                chain_of[node as usize] = starts.len() as u32 - 1;
            }
        }
        let n_chains = starts.len();
        let bytes = n_nodes as u64 * n_chains as u64 * 4;
        budget.reserve("the clocks of causal consistency", bytes)?;
        let mut past = Past {
            chain_of,
            n_chains,
            ends: starts.repeat(n_nodes),
        };
        let mut edges: Vec<(Node, Node)> = graph
            .edges
            .iter()
            .filter(|edge| edge.happens_before())
            .map(|edge| (edge.to, edge.from))
            .collect();
        edges.sort_unstable();
        edges.dedup();
        let mut poll = budget.poll();
        for node in order {
            let first = edges.partition_point(|edge| edge.0 < node);
            let into = edges[first..].iter().take_while(|edge| edge.0 == node);
            for &(_, from) in into {
                poll.step()?;
                past.join(node, from);
            }
        }
        Ok(Some(past))
    }

    fn join(&mut self, node: Node, from: Node) {
        let row = |node: Node| node as usize * self.n_chains;
        let (to, from_row) = (row(node), row(from));
        for chain in 0..self.n_chains {
            self.ends[to + chain] = self.ends[to + chain].max(self.ends[from_row + chain]);
        }
        let own = self.chain_of[from as usize] as usize;
        self.ends[to + own] = self.ends[to + own].max(from + 1);
    }

    /// The chain of a transaction.
    pub(super) fn chain(&self, node: Node) -> u32 {
        self.chain_of[node as usize]
    }

    /// The first transaction of a chain that did not happen before another.
    pub(super) fn end(&self, node: Node, chain: u32) -> Node {
        self.ends[node as usize * self.n_chains + chain as usize]
    }
}
