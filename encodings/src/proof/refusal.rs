//! Why a proof is rejected.

use thiserror::Error;

/// Why a proof, or its instance, is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProofRefusal {
    /// A line of the instance cannot be read.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// The instance does not declare its size.
    #[error("there is no line p cnf")]
    NoHeader,
    /// The instance is larger or smaller than declared.
    #[error(
        "{} variables and {} clauses are announced, but {} and {} follow",
        announced.0,
        announced.1,
        found.0,
        found.1
    )]
    Size {
        /// Declared numbers of variables and clauses.
        announced: (usize, usize),
        /// Actual numbers.
        found: (usize, usize),
    },
    /// A clause has no cycle.
    #[error("clause {0} is justified by no cycle")]
    NoCycle(usize),
    /// A cycle has no clause.
    #[error("a cycle justifies clause {0}, which is not there")]
    NoClause(u64),
    /// A clause does not follow from its cycle.
    #[error("clause {clause}: {what}")]
    Unjustified {
        /// Its number, from 1.
        clause: usize,
        /// What is wrong with its cycle.
        what: String,
    },
    /// A step does not follow from the clauses that it names.
    #[error("proof line {line}: {what}")]
    Step {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// Nothing was refuted.
    #[error("the proof ends without the empty clause")]
    Unfinished,
    /// The instance says that an edge is known.
    #[error("the edge from {0} to {1} is not known")]
    UnknownEdge(u32, u32),
    /// The instance names a constraint that was not asked about.
    #[error("there is no constraint {0}")]
    NoConstraint(usize),
    /// The instance says that a side demands an edge.
    #[error("no side of constraint {constraint} demands the edge from {} to {}", edge.0, edge.1)]
    NotDemanded {
        /// The constraint.
        constraint: usize,
        /// The edge.
        edge: (u32, u32),
    },
    /// The instance counts a constraint twice.
    #[error("two variables stand for one constraint")]
    SameConstraint,
}
