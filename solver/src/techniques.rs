//! The techniques of a check, and whether each is on.

use crate::heuristic::Heuristic;
use crate::prune::{PruneOptions, Reachability};
use crate::relate::Shape;

/// Which techniques run. Each can be switched off without changing any verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // Each is a switch of its own.
pub struct Techniques {
    /// `combine`: a transaction that reads and then writes a key follows its version directly (Cobra's write combining).
    pub combine: bool,
    /// `coalesce`: one constraint for two runs of versions, however many readers they have (Cobra's coalescing).
    pub coalesce: bool,
    /// `unread`: no constraint for two versions without readers, where any topological order settles them.
    pub unread: bool,
    /// `merge`: one constraint for two transactions, however many keys they share.
    pub merge: bool,
    /// `linear`: if every key is already ordered, one topological sort decides and no reachability is computed.
    pub linear: bool,
    /// `estimate`: guess each transaction's position from its ancestors and descendants, for the witness and the solver.
    pub estimate: bool,
    /// `witness`: try the estimated order as an answer before asking a solver.
    pub witness: bool,
    /// `heuristic`: the sides assumed before a solver is asked.
    pub heuristic: Heuristic,
    /// How reachability is stored.
    pub reachability: Reachability,
    /// Maximum number of pruning rounds; `None` is to the fixpoint.
    pub prune_rounds: Option<usize>,
}

impl Techniques {
    /// Which pairs of versions become constraints.
    pub fn shape(&self) -> Shape {
        Shape {
            combine: self.combine,
            unread: self.unread,
        }
    }

    /// How the graph is pruned.
    pub fn prune_options(&self) -> PruneOptions {
        PruneOptions {
            reachability: self.reachability,
            rounds: self.prune_rounds,
            linear: self.linear,
            estimate: self.estimate,
            coalesce: self.coalesce,
            merge: self.merge,
            grows: false,
        }
    }
}

impl Default for Techniques {
    fn default() -> Self {
        Techniques {
            combine: true,
            coalesce: true,
            unread: true,
            merge: true,
            linear: true,
            estimate: true,
            witness: true,
            heuristic: Heuristic::Off,
            reachability: Reachability::Auto,
            prune_rounds: None,
        }
    }
}
