//! `order-binary`: every node has a number, written in binary, that grows along every arc (topological numbers with the log
//! encoding, as in Gebser, Janhunen and Rintanen, 2014).
//!
//! b bits number the nodes of a component of up to 2^b nodes; numbers need not differ. An arc u → v says that u's number
//! is less than v's, bit by bit from the highest: while all higher bits are equal, u's bit must not be above v's, and unless
//! u's is 0 and v's is 1 the next bit decides. t(i), for each arc and each bit but the highest, says that bit i decides.

use kingsnake_context::budget::{Budget, StopReason};
use rustsat::encodings::CollectClauses;
use rustsat::types::Lit;

use super::{Encoding, Sink, Size};
use crate::reduce::Arena;

pub(crate) struct OrderBinary {
    size: Size,
}

/// Number of bits for this many nodes.
fn n_bits(n_nodes: usize) -> u32 {
    n_nodes
        .saturating_sub(1)
        .checked_ilog2()
        .map_or(0, |log| log + 1)
}

impl Encoding for OrderBinary {
    const NAME: &'static str = "cadical/order-binary";

    /// With b = ⌈log₂ n⌉ bits in a component of n nodes: b variables for each node, and for each arc, known or not, b − 1
    /// variables and 3·b − 1 clauses.
    fn plan(arena: &Arena, _: &Budget) -> Result<OrderBinary, StopReason> {
        let mut size = Size::default();
        let bits = |node: u32| {
            let members = arena.rows.members(arena.rows.component(node));
            u64::from(n_bits(members.len()))
        };
        size.variables += (0..arena.n_nodes() as u32).map(bits).sum::<u64>();
        let known = arena.known.iter().map(|&(from, _)| (from, 0));
        for (from, own) in known.chain(arena.arcs.iter().map(|&(from, _)| (from, 1))) {
            let bits = bits(from);
            size.variables += bits - 1;
            size.clauses += 3 * bits - 1;
            // The highest bit's clauses are guarded by the arc itself, which a known arc does not need.
            size.literals += if bits == 1 {
                2 * (1 + own)
            } else {
                3 * (2 + own) + 9 * (bits - 2) + 4
            };
        }
        Ok(OrderBinary { size })
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
        let bits: Vec<Vec<Lit>> = (0..arena.n_nodes() as u32)
            .map(|node| {
                let members = arena.rows.members(arena.rows.component(node));
                let rank = node - members.start;
                let bits = 0..n_bits(members.len());
                bits.map(|bit| sink.literal(rank >> bit & 1 == 1)).collect()
            })
            .collect();
        for ((from, to), lit) in arena.all_arcs(arcs) {
            let (less, more) = (&bits[from as usize], &bits[to as usize]);
            let mut decides = lit;
            for bit in (0..less.len()).rev() {
                let (x, y) = (less[bit], more[bit]);
                let guarded = |rest: &[Lit]| -> Vec<Lit> {
                    let guard = decides.map(|lit| !lit);
                    guard.into_iter().chain(rest.iter().copied()).collect()
                };
                if bit == 0 {
                    sink.clause(&guarded(&[!x]))?;
                    sink.clause(&guarded(&[y]))?;
                } else {
                    let next = sink.literal(false);
                    sink.clause(&guarded(&[!x, y]))?;
                    sink.clause(&guarded(&[!x, next]))?;
                    sink.clause(&guarded(&[y, next]))?;
                    decides = Some(next);
                }
            }
        }
        Ok(())
    }
}
