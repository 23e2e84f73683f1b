//! Which constraints the current order violates, and which of them to decide next: repair the order instead of deciding all.
//!
//! A constraint is violated when neither side's edges all run forward. When none is, the order itself is the witness. Only
//! constraints that touch a moved node can change, so the set is kept by looking at those.

use std::rc::Rc;

use rustsat::types::{Lit, Var};

use super::graph::Sides;
use super::order::Order;
use super::ranked::Ranked;

/// The violated constraints, surest first.
pub(crate) struct Repair {
    sides: Rc<Sides>,
    starts: Vec<u32>,
    touching: Vec<u32>,
    by_rank: Vec<u32>,
    rank_of: Vec<u32>,
    violated: Ranked,
    looked_at: Vec<u32>,
    stamp: u32,
}

impl Repair {
    /// Looks at all constraints once. `by_rank` has the surest first.
    pub fn new(sides: Rc<Sides>, by_rank: Vec<u32>, order: &Order) -> Repair {
        let n_nodes = order.places().len();
        let n_constraints = sides.n_constraints();
        let mut starts = vec![0u32; n_nodes + 1];
        for edge in 0..sides.n_edges() {
            let (from, to) = sides.ends(edge);
            starts[from as usize + 1] += 1;
            starts[to as usize + 1] += 1;
        }
        for node in 0..n_nodes {
            starts[node + 1] += starts[node];
        }
        let mut touching = vec![0u32; 2 * sides.n_edges()];
        let mut at = starts.clone();
        for edge in 0..sides.n_edges() {
            let (from, to) = sides.ends(edge);
            for node in [from, to] {
                touching[at[node as usize] as usize] = sides.owner(edge).vidx32();
                at[node as usize] += 1;
            }
        }
        let mut rank_of = vec![0u32; n_constraints];
        for (rank, &constraint) in by_rank.iter().enumerate() {
            rank_of[constraint as usize] = rank as u32;
        }
        let mut repair = Repair {
            sides,
            starts,
            touching,
            by_rank,
            rank_of,
            violated: Ranked::new(n_constraints),
            looked_at: vec![0; n_constraints],
            stamp: 0,
        };
        for constraint in 0..n_constraints as u32 {
            repair.look_at(constraint, order.places());
        }
        repair
    }

    /// The bytes that this takes.
    pub fn bytes(n_nodes: usize, n_constraints: usize, n_edges: usize) -> u64 {
        4 * (2 * n_nodes as u64 + 2 * n_edges as u64 + 4 * n_constraints as u64)
    }

    /// Looks again at what the order has moved.
    pub fn refresh(&mut self, order: &mut Order) {
        self.stamp += 1;
        let mut touched = Vec::new();
        order.drain_moved(|node| touched.push(node));
        for node in touched {
            let range =
                self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize;
            for at in range {
                let constraint = self.touching[at];
                if self.looked_at[constraint as usize] != self.stamp {
                    self.looked_at[constraint as usize] = self.stamp;
                    self.look_at(constraint, order.places());
                }
            }
        }
    }

    fn look_at(&mut self, constraint: u32, places: &[u32]) {
        let var = Var::new(constraint);
        let rank = self.rank_of[constraint as usize] as usize;
        if self.sides.forward(var.pos_lit(), places) || self.sides.forward(var.neg_lit(), places) {
            self.violated.remove(rank);
        } else {
            self.violated.insert(rank);
        }
    }

    /// How many constraints are violated, as of the last refresh.
    pub fn n_violated(&self) -> usize {
        self.violated.len()
    }

    /// The surest violated constraint.
    pub fn first(&self) -> Option<usize> {
        self.violated
            .first()
            .map(|rank| self.by_rank[rank] as usize)
    }

    /// The side of every constraint that runs forward; call it when none is violated.
    pub fn witness(&self, places: &[u32]) -> Vec<Lit> {
        (0..self.by_rank.len() as u32)
            .map(|constraint| {
                Lit::new(
                    constraint,
                    !self.sides.forward(Lit::positive(constraint), places),
                )
            })
            .collect()
    }
}
