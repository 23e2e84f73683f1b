//! Which constraints the current order violates, and which of them to decide next: repair the order instead of deciding all.
//!
//! A constraint is violated when neither side's edges all run forward. When none is, the order itself is the witness. Only
//! constraints that touch a moved node can change, and only the surest violated one is asked for; so a node that moved goes to
//! the start of its list of constraints, surest first, and the node whose next constraint is surest advances.
//!
//! Invariant: a violated constraint lies ahead in the list of at least one node that it touches.

use std::rc::Rc;

use rustsat::types::Var;

use super::graph::Sides;
use super::order::{NONE, Order};
use super::ranked::Ranked;

/// A constraint in the list of a node.
struct Incidence {
    constraint: u32,
    node: u32,
    /// The next in the node's list.
    next: u32,
}

/// The lists, and where each node stands in its own.
pub(crate) struct Repair {
    sides: Rc<Sides>,
    /// The surest constraint's first; so is every node's list.
    entries: Vec<Incidence>,
    first_of: Vec<u32>,
    next_of: Vec<u32>,
    /// The entries at which nodes stand.
    ahead: Ranked,
}

impl Repair {
    /// Every node stands at the start of its list. `by_rank` has the surest first.
    pub fn new(sides: Rc<Sides>, by_rank: &[u32], n_nodes: usize) -> Repair {
        let mut entries: Vec<Incidence> = Vec::with_capacity(2 * sides.n_edges());
        let mut first_of = vec![NONE; n_nodes];
        let mut last_of = vec![NONE; n_nodes];
        for &constraint in by_rank {
            let var = Var::new(constraint);
            let edges = sides.edges(var.pos_lit()).chain(sides.edges(var.neg_lit()));
            for edge in edges {
                let (from, to) = sides.ends(edge);
                for node in [from, to] {
                    let this = entries.len() as u32;
                    let last = last_of[node as usize];
                    if last == NONE {
                        first_of[node as usize] = this;
                    } else if entries[last as usize].constraint == constraint {
                        continue;
                    } else {
                        entries[last as usize].next = this;
                    }
                    last_of[node as usize] = this;
                    entries.push(Incidence {
                        constraint,
                        node,
                        next: NONE,
                    });
                }
            }
        }
        let mut ahead = Ranked::new(entries.len());
        for &entry in first_of.iter().filter(|&&entry| entry != NONE) {
            ahead.insert(entry as usize);
        }
        Repair {
            sides,
            entries,
            next_of: first_of.clone(),
            first_of,
            ahead,
        }
    }

    /// The bytes that this takes.
    pub fn bytes(n_nodes: usize, n_edges: usize) -> u64 {
        12 * n_nodes as u64 + 25 * n_edges as u64
    }

    /// The surest constraint that the order violates.
    pub fn first(&mut self, order: &mut Order) -> Option<usize> {
        order.drain_moved(|node| {
            let (first, next) = (self.first_of[node as usize], self.next_of[node as usize]);
            if first != next {
                self.stand(node, first);
            }
        });
        while let Some(at) = self.ahead.first() {
            let entry = &self.entries[at];
            let var = Var::new(entry.constraint);
            let forward = |lit| self.sides.forward(lit, order.places());
            if !forward(var.pos_lit()) && !forward(var.neg_lit()) {
                return Some(var.idx());
            }
            let (node, next) = (entry.node, entry.next);
            self.stand(node, next);
        }
        None
    }

    fn stand(&mut self, node: u32, entry: u32) {
        let before = std::mem::replace(&mut self.next_of[node as usize], entry);
        if before != NONE {
            self.ahead.remove(before as usize);
        }
        if entry != NONE {
            self.ahead.insert(entry as usize);
        }
    }
}
