//! The cycle that an edge would close, with as few decided edges as possible and then as short as possible.
//!
//! Breadth-first in layers: a layer holds nodes at the same number of decided edges; within it, nodes are taken by the
//! length of their
//! path. Every layer's seeds are found in the order of their length, so two queues merged by length are exact. Only
//! nodes between the edge's ends in the topological order can lie on the cycle.

use rustsat::types::Lit;

use super::order::{NONE, Order};

/// How a node was reached: from where, over which linked edge (or a known one), in how many steps.
#[derive(Clone, Copy)]
struct SearchStep {
    node: u32,
    parent: u32,
    edge: u32,
    length: u32,
}

/// The search's arrays, kept between searches.
pub(crate) struct CycleSearch {
    seen: Vec<u32>,
    stamp: u32,
    parent: Vec<u32>,
    edge: Vec<u32>,
    seeds: Vec<SearchStep>,
    later: Vec<SearchStep>,
    queue: Vec<SearchStep>,
}

impl CycleSearch {
    pub fn new(n_nodes: usize) -> CycleSearch {
        CycleSearch {
            seen: vec![0; n_nodes],
            stamp: 0,
            parent: vec![NONE; n_nodes],
            edge: vec![NONE; n_nodes],
            seeds: Vec::new(),
            later: Vec::new(),
            queue: Vec::new(),
        }
    }

    /// The bytes that a search over this many nodes takes.
    pub fn bytes(n_nodes: usize) -> u64 {
        12 * n_nodes as u64
    }

    /// Writes the literals whose edges, with known ones and `closing`, form a cycle. Edges that are `free` cost nothing,
    /// because their literal is in the clause already or will be simplified away. False if there is no cycle.
    pub fn explain(
        &mut self,
        order: &Order,
        closing: usize,
        free: impl Fn(Lit) -> bool,
        literals: &mut Vec<Lit>,
    ) -> bool {
        let (goal, start) = order.sides.ends(closing);
        literals.clear();
        literals.push(order.sides.owner(closing));
        if goal == start {
            return true;
        }
        if !self.search(order, start, goal, free) {
            return false;
        }
        let mut node = goal;
        while node != start {
            let edge = self.edge[node as usize];
            if edge != NONE {
                literals.push(order.sides.owner(edge as usize));
            }
            node = self.parent[node as usize];
        }
        literals.sort_unstable();
        literals.dedup();
        true
    }

    fn search(&mut self, order: &Order, start: u32, goal: u32, free: impl Fn(Lit) -> bool) -> bool {
        self.stamp += 1;
        let limit = order.places[goal as usize];
        self.seeds.clear();
        self.seeds.push(SearchStep {
            node: start,
            parent: start,
            edge: NONE,
            length: 0,
        });
        while !self.seeds.is_empty() {
            self.later.clear();
            self.queue.clear();
            let (mut seed, mut head) = (0, 0);
            loop {
                let from_seeds = match (self.seeds.get(seed), self.queue.get(head)) {
                    (Some(a), Some(b)) => a.length <= b.length,
                    (Some(_), None) => true,
                    (None, Some(_)) => false,
                    (None, None) => break,
                };
                let step = if from_seeds {
                    seed += 1;
                    self.seeds[seed - 1]
                } else {
                    head += 1;
                    self.queue[head - 1]
                };
                let node = step.node as usize;
                if self.seen[node] == self.stamp {
                    continue;
                }
                self.seen[node] = self.stamp;
                self.parent[node] = step.parent;
                self.edge[node] = step.edge;
                if step.node == goal {
                    return true;
                }
                self.expand(order, step, limit, &free);
            }
            std::mem::swap(&mut self.seeds, &mut self.later);
        }
        false
    }

    #[inline]
    fn expand(&mut self, order: &Order, step: SearchStep, limit: u32, free: impl Fn(Lit) -> bool) {
        let length = step.length + 1;
        for &to in order.known.successors(step.node) {
            if order.places[to as usize] <= limit && self.seen[to as usize] != self.stamp {
                self.queue.push(SearchStep {
                    node: to,
                    parent: step.node,
                    edge: NONE,
                    length,
                });
            }
        }
        let mut edge = order.first_out[step.node as usize];
        while edge != NONE {
            let (_, to) = order.sides.ends(edge as usize);
            if order.places[to as usize] <= limit && self.seen[to as usize] != self.stamp {
                let next = SearchStep {
                    node: to,
                    parent: step.node,
                    edge,
                    length,
                };
                if free(order.sides.owner(edge as usize)) {
                    self.queue.push(next);
                } else {
                    self.later.push(next);
                }
            }
            edge = order.next_out[edge as usize];
        }
    }
}
