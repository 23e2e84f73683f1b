//! Plain CNF for "the chosen arcs have no cycle": what all encodings share, and one file for each of them.
//!
//! Variables: one for each open constraint, whose two literals stand for its sides; one for each arc that some side
//! demands; then the encoding's own. Clauses: a side implies its arcs; an impossible side is false; then the encoding's own.
//! A variable's positive literal is what the estimated order makes true, so that a solver that tries true first starts there.

pub(crate) mod closure;
pub(crate) mod elimination;
#[cfg(test)]
pub(crate) mod lossy;
pub(crate) mod order_binary;
pub(crate) mod order_unary;
#[cfg(test)]
mod sizes;

use kingsnake_context::budget::{Budget, StopReason};
use rustsat::encodings::CollectClauses;
use rustsat::instances::{BasicVarManager, ManageVars};
use rustsat::types::{Clause, Lit};

use crate::reduce::Arena;

/// The size of a formula.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Variables.
    pub variables: u64,
    /// Clauses.
    pub clauses: u64,
    /// Literals of all clauses.
    pub literals: u64,
}

impl Size {
    /// Approximate size in `CaDiCaL`: tables and watch lists per variable; a header, two watches and a pointer
    /// for a clause.
    pub fn bytes(self) -> u64 {
        BYTES_A_VARIABLE * self.variables + BYTES_A_CLAUSE * self.clauses + 4 * self.literals
    }
}

const BYTES_A_VARIABLE: u64 = 350;
const BYTES_A_CLAUSE: u64 = 80;

impl std::ops::Add for Size {
    type Output = Size;

    fn add(self, other: Size) -> Size {
        Size {
            variables: self.variables + other.variables,
            clauses: self.clauses + other.clauses,
            literals: self.literals + other.literals,
        }
    }
}

/// A way to say in clauses that the arcs whose literals are true close no cycle with the known ones.
pub(crate) trait Encoding: Sized {
    /// The back end's name.
    const NAME: &'static str;

    /// Computes what must be stated.
    fn plan(arena: &Arena, budget: &Budget) -> Result<Self, StopReason>;

    /// What this adds to the variables and clauses that all encodings share.
    fn size(&self) -> Size;

    /// States it. `arcs` has a literal for each of the arena's arcs.
    fn encode<C: CollectClauses>(
        &self,
        arena: &Arena,
        arcs: &[Lit],
        sink: &mut Sink<'_, C>,
    ) -> Result<(), StopReason>;
}

/// Where the clauses go, through rustsat's traits: a solver, or a formula to be written. Asks the budget now and then.
pub(crate) struct Sink<'a, C> {
    collector: &'a mut C,
    variables: BasicVarManager,
    budget: &'a Budget,
    size: Size,
}

impl<'a, C: CollectClauses> Sink<'a, C> {
    pub fn new(collector: &'a mut C, budget: &'a Budget) -> Sink<'a, C> {
        Sink {
            collector,
            variables: BasicVarManager::default(),
            budget,
            size: Size::default(),
        }
    }

    /// A new variable, as the literal that the estimated order makes true if `guess`, and false else.
    pub fn literal(&mut self, guess: bool) -> Lit {
        self.size.variables += 1;
        let lit = self.variables.new_lit();
        if guess { lit } else { !lit }
    }

    pub fn clause(&mut self, literals: &[Lit]) -> Result<(), StopReason> {
        self.size.clauses += 1;
        self.size.literals += literals.len() as u64;
        if self.size.clauses.is_multiple_of(4096) {
            self.budget.check()?;
        }
        let clause: Clause = literals.iter().copied().collect();
        self.collector
            .add_clause(clause)
            .map_err(|error| StopReason::Backend(error.to_string()))
    }

    /// The number of clauses written so far.
    pub fn size(&self) -> Size {
        self.size
    }
}

/// The literals that stand for what was asked.
pub(crate) struct Meaning {
    /// For each open constraint, the literals of its two sides.
    pub sides: Vec<[Lit; 2]>,
    /// For each open constraint, the literal under which it must be met; none where all must.
    pub selectors: Vec<Lit>,
    /// For each arc.
    pub arcs: Vec<Lit>,
}

/// What the shared part takes when all constraints must be met.
pub(crate) fn shared_size(arena: &Arena) -> Size {
    let (n_demands, n_impossible) = (arena.demands.len() as u64, arena.impossible.len() as u64);
    Size {
        variables: (arena.constraints.len() + arena.arcs.len()) as u64,
        clauses: n_demands + n_impossible,
        literals: 2 * n_demands + n_impossible,
    }
}

/// The shared part. With `selected`, each constraint has a selector, and a literal of its own for each side.
pub(crate) fn share<C: CollectClauses>(
    arena: &Arena,
    selected: bool,
    sink: &mut Sink<'_, C>,
) -> Result<Meaning, StopReason> {
    let mut first_forward = vec![true; arena.constraints.len()];
    for &(lit, arc) in &arena.demands {
        let (from, to) = arena.arcs[arc as usize];
        if lit.is_pos() && from > to {
            first_forward[lit.vidx()] = false;
        }
    }
    for lit in arena.impossible.iter().filter(|lit| lit.is_pos()) {
        first_forward[lit.vidx()] = false;
    }
    let mut meaning = Meaning {
        sides: Vec::with_capacity(arena.constraints.len()),
        selectors: Vec::new(),
        arcs: Vec::with_capacity(arena.arcs.len()),
    };
    for &guess in &first_forward {
        let first = sink.literal(guess);
        let second = if selected {
            sink.literal(!guess)
        } else {
            !first
        };
        meaning.sides.push([first, second]);
    }
    for &(from, to) in &arena.arcs {
        meaning.arcs.push(sink.literal(from < to));
    }
    if selected {
        for sides in &meaning.sides {
            let selector = sink.literal(true);
            sink.clause(&[!selector, sides[0], sides[1]])?;
            meaning.selectors.push(selector);
        }
    }
    let literal = |lit: Lit| meaning.sides[lit.vidx()][usize::from(lit.is_neg())];
    for &lit in &arena.impossible {
        sink.clause(&[!literal(lit)])?;
    }
    for &(lit, arc) in &arena.demands {
        sink.clause(&[!literal(lit), meaning.arcs[arc as usize]])?;
    }
    Ok(meaning)
}
