//! The Booleans of the constraints: each demand asks for one of the constraint's sides.

use kingsnake_graph::decide::Side;

use super::session::{Halt, Z3Session};
use super::terms::Term;
use super::{Asked, Stated};

/// For each chosen constraint: whether it is demanded, and whether each of its sides is taken. Both may be.
pub(super) struct Taken {
    demands: Vec<Term>,
    either: Vec<Term>,
    or: Vec<Term>,
}

impl Taken {
    /// Makes the Booleans, and asserts that a demanded constraint takes a side.
    pub fn new(asked: &Asked<'_>, session: &Z3Session<'_>) -> Result<Taken, Halt> {
        let n = asked.chosen.len() as u32;
        let mut taken = Taken {
            demands: Vec::new(),
            either: Vec::new(),
            or: Vec::new(),
        };
        for at in 0..n {
            let [demand, either, or] = [at, n + at, 2 * n + at].map(|it| session.boolean(it));
            session.assert(session.or(&[session.not(demand), either, or]))?;
            taken.demands.push(demand);
            taken.either.push(either);
            taken.or.push(or);
        }
        Ok(taken)
    }

    /// Whether this side of the constraint at this place is taken.
    pub fn side(&self, at: usize, side: Side) -> Term {
        match side {
            Side::Either => self.either[at],
            Side::Or => self.or[at],
        }
    }

    /// Asserts of each side that is taken what its edges say.
    pub fn assert_edges(
        &self,
        asked: &Asked<'_>,
        session: &Z3Session<'_>,
        edge: impl Fn(usize, usize) -> Term,
    ) -> Result<(), Halt> {
        for at in 0..asked.chosen.len() {
            for side in [Side::Either, Side::Or] {
                for (from, to) in asked.side(at, side) {
                    session.assert(session.implies(self.side(at, side), edge(from, to)))?;
                }
            }
        }
        Ok(())
    }

    /// The question as stated, with this many variables besides these.
    pub fn stated(self, n_others: usize) -> Stated {
        Stated {
            n_variables: (2 * self.either.len() + n_others) as u64,
            demands: self.demands,
            either: self.either,
        }
    }
}
