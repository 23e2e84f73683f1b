//! What happened before each transaction, by session order and reads: vector clocks over sessions, or over single transactions.
//!
//! A transaction's own chain needs no entry in its clock, and a chain that no other reads from needs none in any.

use std::ops::Range;

use super::Visible;
use super::sort::sorted;
use crate::budget::{Budget, StopReason};
use crate::resolve::{NO_NODE, Node};

/// A chain without an entry in the clocks.
const NONE: u32 = u32::MAX;

/// For each transaction and each chain, where in the chain its past ends.
pub(super) struct Past {
    chain_of: Vec<u32>,
    /// The first transaction of each chain.
    starts: Vec<Node>,
    /// The entry of each chain in the clocks, and the chain of each entry.
    column: Vec<u32>,
    chains: Vec<u32>,
    ends: Vec<Node>,
}

/// A chain, and its entry in the clocks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ChainPlace {
    chain: u32,
    column: u32,
}

/// Where the past of one transaction ends in each chain.
#[derive(Clone, Copy)]
pub(super) struct Clock<'p> {
    node: Node,
    chain: u32,
    ends: &'p [Node],
}

impl Clock<'_> {
    /// The first transaction of a chain that is not in the past; where nothing of it is, any that is not behind its first.
    #[inline]
    pub(super) fn end(&self, place: ChainPlace) -> Node {
        if place.chain == self.chain {
            return self.node;
        }
        // A chain without an entry ends before it begins.
        self.ends.get(place.column as usize).copied().unwrap_or(0)
    }
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
        let mut past = Past {
            column: vec![NONE; starts.len()],
            chains: Vec::new(),
            ends: Vec::new(),
            chain_of,
            starts,
        };
        let happened = graph.edges.iter().filter(|edge| edge.happens_before());
        for edge in happened {
            past.add_column(edge.from, edge.to);
        }
        let bytes = n_nodes as u64 * past.chains.len() as u64 * 4;
        budget.reserve("the clocks of causal consistency", bytes)?;
        let chains = past.chains.iter();
        let clock: Vec<Node> = chains.map(|&it| past.starts[it as usize]).collect();
        past.ends = clock.repeat(n_nodes);
        let mut poll = budget.poll();
        for node in order {
            poll.step()?;
            if node > past.starts[past.chain(node) as usize] {
                past.join(node, node - 1);
            }
            for read in graph.reads.of(node) {
                let from = graph.versions.writer(graph.reads.version(read));
                if from != NO_NODE && from >= past.end(node, past.chain(from)) {
                    past.join(node, from);
                }
            }
        }
        Ok(Some(past))
    }

    /// Makes room in the clocks for the chain of an edge that leaves it.
    fn add_column(&mut self, from: Node, to: Node) {
        let chain = self.chain(from);
        let column = &mut self.column[chain as usize];
        if *column == NONE && chain != self.chain_of[to as usize] {
            *column = self.chains.len() as u32;
            self.chains.push(chain);
        }
    }

    fn join(&mut self, node: Node, from: Node) {
        let n_columns = self.chains.len();
        let row = |node: Node| node as usize * n_columns;
        let (to, from_row) = (row(node), row(from));
        for column in 0..n_columns {
            self.ends[to + column] = self.ends[to + column].max(self.ends[from_row + column]);
        }
        let own = self.column[self.chain(from) as usize];
        if own != NONE {
            let own = &mut self.ends[to + own as usize];
            *own = (from + 1).max(*own);
        }
    }

    /// The past of a transaction.
    #[inline]
    pub(super) fn clock(&self, node: Node) -> Clock<'_> {
        let n_columns = self.chains.len();
        let row = node as usize * n_columns;
        Clock {
            node,
            chain: self.chain(node),
            ends: &self.ends[row..row + n_columns],
        }
    }

    /// The chain of a transaction, and its entry in the clocks.
    pub(super) fn place(&self, node: Node) -> ChainPlace {
        let chain = self.chain(node);
        ChainPlace {
            chain,
            column: self.column[chain as usize],
        }
    }

    /// The chain of a transaction.
    pub(super) fn chain(&self, node: Node) -> u32 {
        self.chain_of[node as usize]
    }

    /// The first transaction of a chain that did not happen before another.
    pub(super) fn end(&self, node: Node, chain: u32) -> Node {
        if chain == self.chain(node) {
            return node;
        }
        match self.column[chain as usize] {
            NONE => self.starts[chain as usize],
            column => self.ends[node as usize * self.chains.len() + column as usize],
        }
    }

    /// What happened before a transaction: the chains, and the transactions of each.
    pub(super) fn before(&self, node: Node) -> impl Iterator<Item = (u32, Range<Node>)> + '_ {
        let own = self.chain(node);
        let others = self.chains.iter().copied().filter(move |&it| it != own);
        others
            .chain([own])
            .map(move |chain| (chain, self.starts[chain as usize]..self.end(node, chain)))
    }
}
