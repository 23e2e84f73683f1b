//! `z3/difference`: a number for each node, and each edge as a difference of two of them (`QF_IDL`).
//!
//! An order is acyclic iff numbers exist that grow along its edges; Z3's difference logic looks for negative cycles
//! (Cotton and Maler, SAT 2006).

use super::session::{Halt, Z3Session};
use super::sides::Taken;
use super::{Asked, Stated, Z3Encoding};

pub(super) const ENCODING: Z3Encoding = Z3Encoding {
    name: "z3/difference",
    logic: Some("QF_IDL"),
    params: &[],
    state,
    only_si: false,
};

fn state(asked: &Asked<'_>, session: &mut Z3Session<'_>) -> Result<Stated, Halt> {
    let places = session.integers(asked.question.n_nodes);
    let edge = |from: usize, to: usize| session.less(places[from], places[to]);
    for (from, to) in asked.known() {
        session.assert(edge(from, to))?;
    }
    let taken = Taken::new(asked, session)?;
    taken.assert_edges(asked, session, edge)?;
    Ok(taken.stated(places.len()))
}
