//! A topological order that follows the edges as they come and go (Pearce and Kelly, JEA 2006).
//!
//! Invariant: `places` puts every known edge and every linked edge forward. Removing edges never breaks it, so backtracking
//! leaves the order where it is: it is the search's memory.

use std::rc::Rc;

use super::graph::{Known, Sides};

/// No edge: the end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// The order, and the linked edges as two intrusive lists a node. Edges leave in the reverse order of their coming.
pub(crate) struct Order {
    pub(super) known: Rc<Known>,
    pub(super) sides: Rc<Sides>,
    pub(super) places: Vec<u32>,
    pub(super) first_out: Vec<u32>,
    pub(super) next_out: Vec<u32>,
    pub(super) first_in: Vec<u32>,
    pub(super) next_in: Vec<u32>,
    linked: Vec<u32>,
    seen: Vec<u32>,
    stamp: u32,
    after: Vec<u32>,
    before: Vec<u32>,
    pool: Vec<u32>,
    moved: Vec<u32>,
    is_moved: Vec<bool>,
    /// A mutant for the tests: the order stays where it is.
    frozen: bool,
}

impl Order {
    /// Starts from the places of a linear extension of the known graph.
    pub fn new(known: Rc<Known>, sides: Rc<Sides>, places: Vec<u32>, frozen: bool) -> Order {
        let n_nodes = known.n_nodes();
        let n_edges = sides.n_edges();
        Order {
            places,
            first_out: vec![NONE; n_nodes],
            next_out: vec![NONE; n_edges],
            first_in: vec![NONE; n_nodes],
            next_in: vec![NONE; n_edges],
            linked: Vec::new(),
            seen: vec![0; n_nodes],
            stamp: 0,
            after: Vec::new(),
            before: Vec::new(),
            pool: Vec::new(),
            moved: Vec::new(),
            is_moved: vec![false; n_nodes],
            frozen,
            known,
            sides,
        }
    }

    /// The bytes that an order over this many nodes and edges takes.
    pub fn bytes(n_nodes: usize, n_edges: usize) -> u64 {
        29 * n_nodes as u64 + 20 * n_edges as u64
    }

    /// Each node's place.
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// How many edges are linked.
    pub fn n_linked(&self) -> usize {
        self.linked.len()
    }

    /// The nodes that moved since this was last asked.
    pub fn drain_moved(&mut self, mut each: impl FnMut(u32)) {
        for node in self.moved.drain(..) {
            self.is_moved[node as usize] = false;
            each(node);
        }
    }

    /// Links an edge and moves the nodes between its ends, or returns false if it closes a cycle; then nothing has changed.
    pub fn insert(&mut self, edge: usize) -> bool {
        let (from, to) = self.sides.ends(edge);
        if from == to {
            return false;
        }
        if self.places[from as usize] > self.places[to as usize] && !self.frozen {
            self.stamp += 1;
            if !self.search::<true>(to, from) {
                return false;
            }
            self.search::<false>(from, to);
            self.reorder();
        }
        self.link(edge, from, to);
        true
    }

    /// Removes the latest edges until this many are left.
    pub fn shrink(&mut self, n_linked: usize) {
        for edge in self.linked.drain(n_linked..).rev() {
            let (from, to) = self.sides.ends(edge as usize);
            self.first_out[from as usize] = self.next_out[edge as usize];
            self.first_in[to as usize] = self.next_in[edge as usize];
        }
    }

    fn link(&mut self, edge: usize, from: u32, to: u32) {
        self.next_out[edge] = self.first_out[from as usize];
        self.first_out[from as usize] = edge as u32;
        self.next_in[edge] = self.first_in[to as usize];
        self.first_in[to as usize] = edge as u32;
        self.linked.push(edge as u32);
    }

    /// Collects what follows `start` up to the place of `goal`, or what precedes it down to there; false when that is `goal`
    /// itself. What both directions find for an edge that closes no cycle is disjoint.
    fn search<const FORWARD: bool>(&mut self, start: u32, goal: u32) -> bool {
        let (set, first, next) = if FORWARD {
            (&mut self.after, &self.first_out, &self.next_out)
        } else {
            (&mut self.before, &self.first_in, &self.next_in)
        };
        let limit = self.places[goal as usize];
        set.clear();
        set.push(start);
        self.seen[start as usize] = self.stamp;
        let mut at = 0;
        while at < set.len() {
            let node = set[at];
            at += 1;
            let mut edge = first[node as usize];
            let linked = std::iter::from_fn(|| {
                let (from, to) = (edge != NONE).then(|| self.sides.ends(edge as usize))?;
                edge = next[edge as usize];
                Some(if FORWARD { to } else { from })
            });
            let known = if FORWARD {
                self.known.successors(node)
            } else {
                self.known.predecessors(node)
            };
            let is_goal_met = known.iter().copied().chain(linked).any(|other| {
                let place = self.places[other as usize];
                let is_within = if FORWARD {
                    place < limit
                } else {
                    place > limit
                };
                if is_within && self.seen[other as usize] != self.stamp {
                    self.seen[other as usize] = self.stamp;
                    set.push(other);
                }
                place == limit
            });
            if is_goal_met {
                return false;
            }
        }
        true
    }

    /// Gives the places of both sets to the earlier set first, each in its old order.
    fn reorder(&mut self) {
        let places = &self.places;
        self.before
            .sort_unstable_by_key(|&node| places[node as usize]);
        self.after
            .sort_unstable_by_key(|&node| places[node as usize]);
        self.pool.clear();
        let nodes = || self.before.iter().chain(&self.after);
        self.pool.extend(nodes().map(|&node| places[node as usize]));
        self.pool.sort_unstable();
        for (&node, &place) in self.before.iter().chain(&self.after).zip(&self.pool) {
            self.places[node as usize] = place;
            if !self.is_moved[node as usize] {
                self.is_moved[node as usize] = true;
                self.moved.push(node);
            }
        }
    }
}
