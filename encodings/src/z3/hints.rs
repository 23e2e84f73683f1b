//! Sides to be tried first: each is a Boolean of its own, assumed beside the demands in one solver that keeps what it learns.
//!
//! Invariant: UNSAT that needs one of them is not trusted; the needed ones are dropped, and the solver is asked again.

use kingsnake_context::budget::Budget;
use kingsnake_graph::decide::{DecideStats, Side};

use super::Stated;
use super::session::{Found, Halt, Z3Session};
use super::terms::Term;

/// The sides that are still assumed.
pub(super) struct Hints {
    assumed: Vec<Term>,
}

impl Hints {
    /// States the meaning of each of the assumptions, for constraints that were all stated.
    pub fn new(
        sides: &[(u32, Side)],
        stated: &Stated,
        session: &Z3Session<'_>,
    ) -> Result<Hints, Halt> {
        let mut assumed = Vec::with_capacity(sides.len());
        for &(constraint, side) in sides {
            let hint = session.fresh();
            let either = stated.either[constraint as usize];
            let taken = match side {
                Side::Either => either,
                Side::Or => session.not(either),
            };
            session.assert(session.implies(hint, taken))?;
            assumed.push(hint);
        }
        Ok(Hints { assumed })
    }

    /// Asks with all assumptions, and with fewer and fewer while the answer is UNSAT. `trusting` accepts the first answer.
    pub fn check(
        mut self,
        stated: &Stated,
        session: &Z3Session<'_>,
        trusting: bool,
        budget: &Budget,
        stats: &mut DecideStats,
    ) -> Result<Found, Halt> {
        let n_demands = stated.demands.len();
        loop {
            let all: Vec<Term> = stated
                .demands
                .iter()
                .chain(&self.assumed)
                .copied()
                .collect();
            let mut failed = match session.check(&all, &stated.either, budget)? {
                Found::Refuted(failed) => failed,
                met @ Found::Met(_) => return Ok(met),
            };
            let blamed = failed.split_off(failed.partition_point(|&at| at < n_demands));
            if blamed.is_empty() || trusting {
                return Ok(Found::Refuted(failed));
            }
            stats.rejects += 1;
            for &at in blamed.iter().rev() {
                self.assumed.swap_remove(at - n_demands);
            }
        }
    }
}
