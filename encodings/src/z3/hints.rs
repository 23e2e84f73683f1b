//! Sides to be tried first: each is a Boolean of its own, assumed beside the demands in one solver that keeps what it learns.
//!
//! Invariant: a no that needs one of them is not believed; the ones that it needs are given up, and the solver is asked again.

use kingsnake_context::budget::Budget;
use kingsnake_graph::decide::{DecideStats, Side};
use z3::ast::Bool;

use super::Stated;
use super::session::{Found, Halt, Z3Session};

/// The sides that are still assumed.
pub(super) struct Hints {
    assumed: Vec<Bool>,
}

impl Hints {
    /// States what each of the assumptions means, for constraints that were all stated.
    pub fn new(
        sides: &[(u32, Side)],
        stated: &Stated,
        session: &mut Z3Session<'_>,
    ) -> Result<Hints, Halt> {
        let mut assumed = Vec::with_capacity(sides.len());
        for &(constraint, side) in sides {
            let hint = Bool::fresh_const("hint");
            let either = &stated.either[constraint as usize];
            let taken = match side {
                Side::Either => either.clone(),
                Side::Or => either.not(),
            };
            session.assert(&hint.implies(taken))?;
            assumed.push(hint);
        }
        Ok(Hints { assumed })
    }

    /// Asks with all that is assumed, and with less and less of it while the answer is no. `trusting` believes the first.
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
            let all: Vec<Bool> = stated
                .demands
                .iter()
                .chain(&self.assumed)
                .cloned()
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
