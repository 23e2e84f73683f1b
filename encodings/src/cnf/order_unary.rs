//! `order-unary`: every node has a number, written in unary, that grows along every arc (the order encoding of Tamura et al.,
//! 2009, for topological numbers).
//!
//! p(u,k) says that u's number is at least k. Numbers need not differ. A node's number lies between the length of the
//! longest known path that ends in it and the component's size less one less that of the longest that starts in it; the
//! longest chain of any acyclic choice fits. p(u,k+1) implies p(u,k); an arc u → v and p(u,k) imply p(v,k+1).

use kingsnake_context::budget::{Budget, StopReason};
use rustsat::encodings::CollectClauses;
use rustsat::types::Lit;

use super::{Encoding, Sink, Size};
use crate::reduce::Arena;

pub(crate) struct OrderUnary {
    bounds: Vec<(u32, u32)>,
    size: Size,
}

/// The least and the greatest number of each node.
fn bounds(arena: &Arena) -> Vec<(u32, u32)> {
    let n_nodes = arena.n_nodes();
    let (mut below, mut above) = (vec![0u32; n_nodes], vec![0u32; n_nodes]);
    // Known arcs are sorted by source and run upwards.
    for &(from, to) in &arena.known {
        below[to as usize] = below[to as usize].max(below[from as usize] + 1);
    }
    for &(from, to) in arena.known.iter().rev() {
        above[from as usize] = above[from as usize].max(above[to as usize] + 1);
    }
    (0..n_nodes as u32)
        .map(|node| {
            let size = arena.rows.members(arena.rows.component(node)).len() as u32;
            (below[node as usize], size - 1 - above[node as usize])
        })
        .collect()
}

/// The values of k for which an arc from the first to the second node says something: below, p(v,k+1) is certain; above,
/// p(u,k) is impossible, or the clause before implies it. An arc that the bounds forbid runs against a known path.
fn steps((least, most): (u32, u32), (next_least, next_most): (u32, u32)) -> std::ops::Range<u32> {
    least.max(next_least)..most.min(next_most) + 1
}

impl Encoding for OrderUnary {
    const NAME: &'static str = "cadical/order-unary";

    /// Let [lo(u), hi(u)] be u's bounds. Variables: the sum of hi(u) − lo(u). Clauses: hi(u) − lo(u) − 1 for each node whose
    /// bounds differ, and for each arc u → v, known or not, one for each k from max(lo(u), lo(v)) to min(hi(u), hi(v)).
    fn plan(arena: &Arena, _: &Budget) -> Result<OrderUnary, StopReason> {
        let bounds = bounds(arena);
        let mut size = Size::default();
        for &(least, most) in &bounds {
            let n_values = u64::from(most - least);
            size.variables += n_values;
            size.clauses += n_values.saturating_sub(1);
            size.literals += 2 * n_values.saturating_sub(1);
        }
        let arcs = arena.known.iter().map(|arc| (arc, 0));
        for (&(from, to), own) in arcs.chain(arena.arcs.iter().map(|arc| (arc, 1))) {
            let (from, to) = (bounds[from as usize], bounds[to as usize]);
            let steps = steps(from, to);
            let n_steps = u64::from(steps.end.saturating_sub(steps.start));
            size.clauses += n_steps;
            let certain = u64::from(steps.contains(&from.0)) + u64::from(steps.contains(&to.1));
            size.literals += (2 + own) * n_steps - certain;
        }
        Ok(OrderUnary { bounds, size })
    }

    fn size(&self) -> Size {
        self.size
    }

    fn encode<C: CollectClauses>(
        &self,
        arena: &Arena,
        arcs: &[Lit],
        sink: &mut Sink<'_, C>,
    ) -> Result<(), StopReason> {
        let bounds = &self.bounds;
        let mut at_least: Vec<Vec<Lit>> = Vec::with_capacity(bounds.len());
        for (node, &(least, most)) in bounds.iter().enumerate() {
            let rank = node as u32 - arena.rows.members(arena.rows.component(node as u32)).start;
            let literals: Vec<Lit> = (least + 1..=most)
                .map(|k| sink.literal(rank >= k))
                .collect();
            for pair in literals.windows(2) {
                sink.clause(&[!pair[1], pair[0]])?;
            }
            at_least.push(literals);
        }
        // Only asked for values above the least and up to the greatest.
        let p =
            |node: u32, k: u32| at_least[node as usize][(k - bounds[node as usize].0 - 1) as usize];
        for ((from, to), lit) in arena.all_arcs(arcs) {
            let (source, target) = (bounds[from as usize], bounds[to as usize]);
            for k in steps(source, target) {
                let mut clause = Vec::with_capacity(3);
                clause.extend(lit.map(|lit| !lit));
                if k > source.0 {
                    clause.push(!p(from, k));
                }
                if k < target.1 {
                    clause.push(p(to, k + 1));
                }
                sink.clause(&clause)?;
            }
        }
        Ok(())
    }
}
