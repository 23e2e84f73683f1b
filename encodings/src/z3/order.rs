//! `z3/order`: the edges as atoms of a partial order, one of Z3's special relations.
//!
//! An edge says that its source comes before its target and its target not before its source; two nodes on a cycle
//! would come before each other.

use super::session::{Halt, Z3Session};
use super::sides::Taken;
use super::{Asked, Stated, Z3Encoding};

pub(super) const ENCODING: Z3Encoding = Z3Encoding {
    name: "z3/order",
    logic: None,
    params: &[],
    state,
    only_si: false,
};

fn state(asked: &Asked<'_>, session: &mut Z3Session<'_>) -> Result<Stated, Halt> {
    let (nodes, order) = session.nodes(asked.question.n_nodes);
    let before = |from: usize, to: usize| session.before(order, nodes[from], nodes[to]);
    for (from, to) in asked.known() {
        session.assert(before(from, to))?;
        session.assert(session.not(before(to, from)))?;
    }
    let taken = Taken::new(asked, session)?;
    taken.assert_edges(asked, session, before)?;
    taken.assert_edges(asked, session, |from, to| session.not(before(to, from)))?;
    Ok(taken.stated(nodes.len()))
}
