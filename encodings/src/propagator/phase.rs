//! Which side of a constraint to try first, and how sure that guess is.
//!
//! A side's slack is the least distance that one of its edges runs forward (negative: backward). The side with the larger slack is
//! tried first; the larger the difference, the surer the guess.

use kingsnake_context::rng::Rng;
use rustsat::types::Lit;

use super::graph::Sides;

/// Where the first guess of a side comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FirstPhase {
    /// The position estimate, or the start order where there is none.
    #[default]
    Estimate,
    /// The start order.
    Topological,
    /// No guess: the first side, or what the solver prefers.
    None,
    /// A coin.
    Random,
}

impl FirstPhase {
    /// All of them, the default first.
    pub const ALL: [FirstPhase; 4] = [
        FirstPhase::Estimate,
        FirstPhase::Topological,
        FirstPhase::None,
        FirstPhase::Random,
    ];

    /// The name, as typed and reported.
    pub fn name(self) -> &'static str {
        match self {
            FirstPhase::Estimate => "estimate",
            FirstPhase::Topological => "topological",
            FirstPhase::None => "none",
            FirstPhase::Random => "random",
        }
    }
}

/// The guesses: a literal for each constraint, and the constraints by falling sureness.
pub(crate) struct Guesses {
    pub first: Vec<Lit>,
    pub by_rank: Vec<u32>,
}

/// Judges every constraint by the nodes' positions.
pub(crate) fn guess(
    sides: &Sides,
    position: impl Fn(u32) -> f64,
    phase: FirstPhase,
    seed: u32,
) -> Guesses {
    let slack = |lit: Lit| {
        sides
            .edges(lit)
            .map(|edge| {
                let (from, to) = sides.ends(edge);
                position(to) - position(from)
            })
            .fold(f64::MAX, f64::min)
    };
    let mut rng = Rng::new(u64::from(seed));
    let mut first = Vec::with_capacity(sides.n_constraints());
    let mut sureness = Vec::with_capacity(sides.n_constraints());
    for constraint in 0..sides.n_constraints() as u32 {
        let either = slack(Lit::positive(constraint));
        let or = slack(Lit::negative(constraint));
        let negated = match phase {
            FirstPhase::Estimate | FirstPhase::Topological => either < or,
            FirstPhase::None => false,
            FirstPhase::Random => rng.number() >> 63 == 1,
        };
        first.push(Lit::new(constraint, negated));
        sureness.push((either - or).abs());
    }
    let mut by_rank: Vec<u32> = (0..sides.n_constraints() as u32).collect();
    by_rank.sort_by(|&a, &b| sureness[b as usize].total_cmp(&sureness[a as usize]));
    Guesses { first, by_rank }
}

/// The constraints from the first place to the last, each where its first node is.
pub(crate) fn by_position(sides: &Sides, places: &[u32]) -> Vec<u32> {
    let first = |&constraint: &u32| {
        let lit = Lit::positive(constraint);
        let edges = sides.edges(lit).chain(sides.edges(!lit));
        let ends = edges.map(|edge| sides.ends(edge));
        ends.map(|(from, to)| places[from as usize].min(places[to as usize]))
            .min()
    };
    let mut constraints: Vec<u32> = (0..sides.n_constraints() as u32).collect();
    constraints.sort_by_cached_key(first);
    constraints
}
