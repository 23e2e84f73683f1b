//! `heuristic`: guesses sides from how far apart nodes stand in a topological order, and asks a back end for the rest (Viper's heuristic
//! pruning: Zhang et al., `EuroSys` 2023).
//!
//! A side that runs backwards over `k` places or more is assumed to be wrong, so the other one is assumed. SAT under
//! assumptions is SAT, since the choices can be checked. UNSAT only means that some assumption may be wrong: only UNSAT
//! without assumptions counts.

use std::ops::Range;

use crate::decide::{Backend, Constraints, DecideError, DecideStats, Decision, Question, Side};
use crate::edge::Edge;
use crate::reach::{Dag, places};
use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Progress;

/// The first distance, as a share of all nodes: it doubles six times before nothing is that far apart.
const FIRST_SHARE: usize = 64;

/// Which heuristic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Heuristic {
    /// None: assume nothing.
    #[default]
    Off,
    /// Start again at every UNSAT, with twice the distance, as Viper does.
    Viper,
    /// Keep the solver and its learned clauses, and drop only the assumptions that it blames.
    Incremental,
}

impl Heuristic {
    /// Every one.
    pub const ALL: [Heuristic; 3] = [Heuristic::Off, Heuristic::Viper, Heuristic::Incremental];

    /// The name, as typed and as reported.
    pub fn name(self) -> &'static str {
        match self {
            Heuristic::Off => "off",
            Heuristic::Viper => "viper",
            Heuristic::Incremental => "incremental",
        }
    }
}

/// Statistics of a heuristic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeuristicStats {
    /// Its name.
    pub name: &'static str,
    /// The distance at the end.
    pub distance: usize,
    /// How many sides were assumed at first.
    pub assumed: usize,
    /// Number of UNSAT answers retried without assumptions.
    pub rejects: u64,
}

/// Decides with a heuristic: the decision holds without any assumption. `chains` are nodes that probably follow each other.
pub fn decide(
    heuristic: Heuristic,
    question: Question<'_>,
    chains: &[Range<u32>],
    backend: &mut dyn Backend,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<(Decision, DecideStats, HeuristicStats), DecideError> {
    let ranks = ranks(chains, question);
    let mut stats = HeuristicStats {
        name: heuristic.name(),
        distance: first_distance(question.n_nodes),
        ..HeuristicStats::default()
    };
    if heuristic == Heuristic::Incremental {
        let assumed = assume(question.constraints, &ranks, stats.distance);
        let sides: Vec<(u32, Side)> = assumed.sides().collect();
        stats.assumed = sides.len();
        if let Some(answer) = backend.decide_assuming(question, &sides, budget, progress) {
            let (decision, decided) = answer?;
            stats.rejects = decided.rejects;
            return Ok((decision, decided, stats));
        }
        // A back end without assumptions is asked again each time.
    }
    let mut spent = DecideStats::default();
    while stats.distance < question.n_nodes {
        let assumed = assume(question.constraints, &ranks, stats.distance);
        if assumed.n_sides == 0 && !assumed.is_contradiction {
            break;
        }
        if stats.rejects == 0 {
            stats.assumed = assumed.n_sides;
        }
        if let Some(smaller) = Smaller::new(question, &assumed) {
            let (decision, mut decided) = backend.decide(smaller.question(), budget, progress)?;
            decided.add_effort(&spent);
            match decision {
                Decision::Choices(choices) => {
                    let choices = Decision::Choices(complete(&assumed, &choices));
                    return Ok((choices, decided, stats));
                }
                Decision::Core(_) => spent = decided,
                Decision::Unknown(_) => return Ok((decision, decided, stats)),
            }
        }
        stats.rejects += 1;
        stats.distance *= 2;
    }
    let (decision, mut decided) = backend.decide(question, budget, progress)?;
    decided.add_effort(&spent);
    Ok((decision, decided, stats))
}

fn first_distance(n_nodes: usize) -> usize {
    (n_nodes / FIRST_SHARE).max(1)
}

/// Where each node stands: layer by layer (a node is one layer below the lowest of those before it), and in a layer the
/// nodes that come early on their chains first.
fn ranks(chains: &[Range<u32>], question: Question<'_>) -> Vec<u32> {
    let mut layer = vec![0_u32; question.n_nodes];
    for &node in question.order {
        let of =
            question.starts[node as usize] as usize..question.starts[node as usize + 1] as usize;
        for &to in &question.targets[of] {
            layer[to as usize] = layer[to as usize].max(layer[node as usize] + 1);
        }
    }
    let mut position = vec![0_u32; question.n_nodes];
    for chain in chains {
        for node in chain.clone() {
            position[node as usize] = node - chain.start;
        }
    }
    let mut order: Vec<u32> = (0..question.n_nodes as u32).collect();
    order.sort_by_key(|&node| (layer[node as usize], position[node as usize], node));
    places(&order)
}

/// The assumed sides.
struct Assumed {
    /// For each constraint, the side that is assumed, if one is.
    chosen: Vec<Option<Side>>,
    n_sides: usize,
    /// Whether both sides of some constraint run too far backwards.
    is_contradiction: bool,
}

impl Assumed {
    fn sides(&self) -> impl Iterator<Item = (u32, Side)> + '_ {
        let chosen = self.chosen.iter().enumerate();
        chosen.filter_map(|(at, side)| Some((at as u32, (*side)?)))
    }
}

/// Assumes a side of each constraint whose other side runs backwards over the distance or more.
fn assume(constraints: &Constraints, ranks: &[u32], distance: usize) -> Assumed {
    let is_far = |edge: &Edge| {
        let (from, to) = (ranks[edge.from as usize], ranks[edge.to as usize]);
        from as usize >= to as usize + distance
    };
    let mut assumed = Assumed {
        chosen: Vec::with_capacity(constraints.len()),
        n_sides: 0,
        is_contradiction: false,
    };
    for constraint in 0..constraints.len() {
        let [either, or] = [Side::Either, Side::Or]
            .map(|side| constraints.side(constraint, side).iter().any(is_far));
        assumed.is_contradiction |= either && or;
        let side = match (either, or) {
            (true, false) => Some(Side::Or),
            (false, true) => Some(Side::Either),
            _ => None,
        };
        assumed.n_sides += usize::from(side.is_some());
        assumed.chosen.push(side);
    }
    assumed
}

/// The question without the constraints for which a side is assumed; the assumed edges are known in it.
struct Smaller {
    dag: Dag,
    constraints: Constraints,
    has_choices: bool,
}

impl Smaller {
    /// `None` if the assumptions contradict each other, or what is known.
    fn new(question: Question<'_>, assumed: &Assumed) -> Option<Self> {
        if assumed.is_contradiction {
            return None;
        }
        let all = question.constraints;
        let new = assumed.sides();
        let new = new.flat_map(|(at, side)| all.side(at as usize, side));
        let edges: Vec<Edge> = question.known().chain(new.copied()).collect();
        let dag = Dag::new(question.n_nodes, edges.iter()).ok()?;
        let mut smaller = Smaller {
            dag,
            constraints: Constraints::default(),
            has_choices: question.has_choices,
        };
        for (at, side) in assumed.chosen.iter().enumerate() {
            if side.is_none() {
                let [either, or] = [Side::Either, Side::Or].map(|side| all.side(at, side));
                smaller
                    .constraints
                    .push(either.iter().copied(), or.iter().copied());
            }
        }
        Some(smaller)
    }

    fn question(&self) -> Question<'_> {
        // The estimate does not use the assumptions.
        Question {
            has_choices: self.has_choices,
            ..Question::new(&self.dag, &self.constraints, &[])
        }
    }
}

/// The sides of all constraints, from those that were left.
fn complete(assumed: &Assumed, choices: &[Side]) -> Vec<Side> {
    let mut choices = choices.iter();
    let side = |side: &Option<Side>| side.or_else(|| choices.next().copied());
    let sides = assumed.chosen.iter().map(side);
    // One that lacks a choice gets any: the order is sorted and replayed again in any case.
    sides.map(|side| side.unwrap_or(Side::Either)).collect()
}
