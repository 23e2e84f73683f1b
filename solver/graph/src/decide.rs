//! The question that is left after pruning, and a back end's answer.

use std::time::Duration;

use thiserror::Error;

use crate::edge::Edge;
use crate::prune::DeviceStats;
use crate::reach::Dag;
use crate::session::{Afresh, SolverSession};
use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_context::progress::Progress;

/// One way to meet a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The first set of edges.
    Either,
    /// The second set of edges.
    Or,
}

impl Side {
    /// The other way.
    #[must_use]
    pub fn other(self) -> Side {
        match self {
            Side::Either => Side::Or,
            Side::Or => Side::Either,
        }
    }
}

/// The constraints that are still open: of each, all edges of one side or all edges of the other must hold.
/// There is one for each unordered pair of transactions, however many keys they share, unless other techniques were asked for.
#[derive(Clone, Debug, Default)]
pub struct Constraints {
    edges: Vec<Edge>,
    /// Two a constraint: where its first and where its second side ends.
    ends: Vec<u32>,
}

impl Constraints {
    /// Adds a constraint.
    pub fn push(
        &mut self,
        either: impl IntoIterator<Item = Edge>,
        or: impl IntoIterator<Item = Edge>,
    ) {
        self.edges.extend(either);
        self.ends.push(self.edges.len() as u32);
        self.edges.extend(or);
        self.ends.push(self.edges.len() as u32);
    }

    /// Number of constraints.
    pub fn len(&self) -> usize {
        self.ends.len() / 2
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The edges of one side of a constraint.
    #[inline]
    pub fn side(&self, constraint: usize, side: Side) -> &[Edge] {
        let at = 2 * constraint + usize::from(side == Side::Or);
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.edges[start as usize..self.ends[at] as usize]
    }

    /// The number of edges on all sides.
    pub fn n_edges(&self) -> usize {
        self.edges.len()
    }
}

/// The question: an acyclic known graph, and the constraints that are open over it.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The number of nodes.
    pub n_nodes: usize,
    /// The known edges, by source: `targets[starts[u]..starts[u + 1]]`.
    pub starts: &'a [u32],
    /// The known edges' targets.
    pub targets: &'a [u32],
    /// A topological order of the known graph: `order[i]` is the node at place i.
    pub order: &'a [u32],
    /// The open constraints.
    pub constraints: &'a Constraints,
    /// An estimate of each node's place in the real execution (a linear extension of the known graph: larger is later), or
    /// empty where it was not computed.
    pub estimate: &'a [f32],
    /// Whether some constraints stand for variables and clauses: then no order of the nodes meets all constraints by itself.
    pub has_choices: bool,
}

impl<'a> Question<'a> {
    /// The question over an acyclic graph.
    pub fn new(dag: &'a Dag, constraints: &'a Constraints, estimate: &'a [f32]) -> Self {
        Question {
            n_nodes: dag.n_nodes(),
            starts: dag.starts(),
            targets: dag.targets(),
            order: dag.order(),
            constraints,
            estimate,
            has_choices: false,
        }
    }

    /// The known edges, by source, without their reasons.
    pub fn known(self) -> impl Iterator<Item = Edge> + 'a {
        (0..self.n_nodes as u32).flat_map(move |from| {
            let of = self.starts[from as usize] as usize..self.starts[from as usize + 1] as usize;
            self.targets[of]
                .iter()
                .map(move |&to| Edge::plain(from, to))
        })
    }
}

/// A back end's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A side for each constraint, without a cycle.
    Choices(Vec<Side>),
    /// Constraints that cannot all be met together with the known edges. Not necessarily minimal.
    Core(Vec<u32>),
    /// No answer.
    Unknown(StopReason),
}

/// Statistics of deciding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecideStats {
    /// The back end's name.
    pub backend: String,
    /// Which of a portfolio's back ends gave the answer.
    pub winner: Option<String>,
    /// Boolean variables.
    pub variables: u64,
    /// Clauses handed over before solving.
    pub clauses: u64,
    /// Edges of the graph that it worked on: known ones and those of the sides.
    pub edges: u64,
    /// Conflicts.
    pub conflicts: u64,
    /// Decisions.
    pub decisions: u64,
    /// Propagations.
    pub propagations: u64,
    /// Cycles that became clauses.
    pub cycles: u64,
    /// Moves of a local search.
    pub moves: u64,
    /// The device that took part in a local search, and what it took.
    pub device: Box<DeviceStats>,
    /// Growth of the process in bytes meanwhile, or what the solver itself counts; `None` if unknown.
    pub memory: Option<u64>,
    /// How often assumed sides turned out not to go together, and those to blame were given up.
    pub rejects: u64,
    /// Time for building the instance.
    pub encode: Duration,
    /// Time for solving it.
    pub solve: Duration,
}

impl DecideStats {
    /// Adds the statistics of earlier attempts at the same question; sizes stay those of the last.
    pub fn add_effort(&mut self, earlier: &DecideStats) {
        self.conflicts += earlier.conflicts;
        self.decisions += earlier.decisions;
        self.propagations += earlier.propagations;
        self.cycles += earlier.cycles;
        self.encode += earlier.encode;
        self.solve += earlier.solve;
        self.memory = self.memory.max(earlier.memory);
    }
}

/// A back end failed; this tells nothing about the history.
#[derive(Debug, Error)]
#[error("back end {backend}: {what}")]
pub struct DecideError {
    /// Its name.
    pub backend: String,
    /// What happened.
    pub what: String,
}

/// The rules that a question's edges follow, for back ends that state the rules in place of the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Snapshot isolation: each transaction is a begin and a commit, and writers of one key do not overlap.
    SnapshotIsolation,
    /// Anything else.
    Other,
}

/// Decides whether the open constraints can be met without a cycle.
pub trait Backend {
    /// `solver/encoding`, as chosen by the user.
    fn name(&self) -> &str;

    /// Why it cannot decide questions that come from such a model, if it cannot.
    fn refuses(&self, _: Origin) -> Option<String> {
        None
    }

    /// The question is answered. Further questions belong to its explanation: no proof of them is kept.
    fn conclude(&mut self) {}

    /// Answers the question, or stops within a second of the budget's end.
    fn decide(
        &mut self,
        question: Question<'_>,
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError>;

    /// Takes a question that will grow. Unless a back end keeps its lemmas, it gets the whole question each time.
    fn session<'s>(&'s mut self, question: Question<'_>) -> Box<dyn SolverSession + 's> {
        Box::new(Afresh::new(self, question))
    }

    /// Answers the question, trying these sides of constraints first, all at once. They are a hint: the answer must hold without
    /// them, and a core is one of the question alone. `None` if the back end cannot take such a hint.
    fn decide_assuming(
        &mut self,
        _question: Question<'_>,
        _assumed: &[(u32, Side)],
        _budget: &Budget,
        _progress: &mut dyn Progress,
    ) -> Option<Result<(Decision, DecideStats), DecideError>> {
        None
    }
}
