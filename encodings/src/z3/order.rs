//! `z3/order`: the edges as atoms of a partial order, one of Z3's special relations.
//!
//! An edge says that its source comes before its target and its target not before its source; two nodes on a cycle
//! would come before each other.

use z3::ast::{Bool, Dynamic};
use z3::{FuncDecl, Sort};

use super::session::{Halt, Z3Session};
use super::sides::Taken;
use super::{Asked, Encoding, Stated};

pub(super) const ENCODING: Encoding = Encoding {
    name: "z3/order",
    logic: None,
    params: &[],
    state,
    only_si: false,
};

fn state(asked: &Asked<'_>, session: &mut Z3Session<'_>) -> Result<Stated, Halt> {
    let sort = Sort::uninterpreted("node".into());
    let nodes: Vec<Dynamic> = (0..asked.question.n_nodes as u32)
        .map(|node| Dynamic::new_const(node, &sort))
        .collect();
    let order = FuncDecl::partial_order(&sort, 0);
    let before = |from: usize, to: usize| {
        let atom = order.apply(&[&nodes[from], &nodes[to]]).as_bool();
        atom.unwrap_or_else(|| Bool::from_bool(false))
    };
    for (from, to) in asked.known() {
        session.assert(&before(from, to))?;
        session.assert(&before(to, from).not())?;
    }
    let taken = Taken::new(asked, session)?;
    taken.assert_edges(asked, session, before)?;
    taken.assert_edges(asked, session, |from, to| before(to, from).not())?;
    Ok(taken.stated(nodes.len()))
}
