//! Reachability in an acyclic graph: as bits ([`Dense`]) or as vector clocks ([`Clocks`]).

mod chains;
mod dag;
mod dense;
#[cfg(test)]
mod twins;

use std::ops::Range;

use kingsnake_context::budget::{Budget, StopReason};

pub use chains::Clocks;
pub(crate) use chains::raise;
pub use dag::{Cyclic, Dag, places};
pub use dense::Dense;

/// Reachability in the smaller of its two forms.
#[derive(Debug)]
pub enum Reach {
    /// Bits.
    Dense(Dense),
    /// Vector clocks.
    Clocks(Clocks),
}

impl Reach {
    /// Computes it for a graph of which some nodes are on chains.
    pub fn new(dag: &Dag, chains: &[Range<u32>], budget: &Budget) -> Result<Self, StopReason> {
        let n_nodes = dag.n_nodes();
        let bytes = Clocks::bytes(n_nodes, chains.len());
        if bytes < Dense::bytes(n_nodes) {
            budget.reserve("the clocks", bytes)?;
            return Ok(Reach::Clocks(Clocks::new(dag, chains)));
        }
        budget.reserve("the bit matrix", Dense::bytes(n_nodes))?;
        Ok(Reach::Dense(Dense::new(dag)))
    }

    /// The position estimate: ancestors minus descendants, a linear extension close to the real execution.
    pub fn estimate(&self, dag: &Dag) -> Vec<f32> {
        match self {
            Reach::Clocks(clocks) => positions(&clocks.totals(), &clocks.descending(dag).totals()),
            Reach::Dense(dense) => {
                let ancestors = Dense::count_descendants(&dag.reversed());
                positions(&ancestors, &dense.descendants())
            }
        }
    }

    /// Whether there is a path of at least one edge.
    #[inline]
    pub fn reaches(&self, from: u32, to: u32) -> bool {
        match self {
            Reach::Dense(dense) => dense.reaches(from, to),
            Reach::Clocks(clocks) => clocks.reaches(from, to),
        }
    }
}

/// The position estimate, from how many nodes come before and after each.
pub(crate) fn positions(ancestors: &[u32], descendants: &[u32]) -> Vec<f32> {
    let pairs = ancestors.iter().zip(descendants);
    pairs
        .map(|(&before, &after)| before as f32 - after as f32)
        .collect()
}
