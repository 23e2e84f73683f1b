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

    /// The bytes that an order over so many nodes and edges takes.
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
            if !self.search_after(to, from) {
                return false;
            }
            self.search_before(from, to);
            self.reorder();
        }
        self.link(edge, from, to);
        true
    }

    /// Removes the edges that came last until so many are left.
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

    /// Collects what follows `start` up to the place of `goal`; false when that is `goal` itself.
    fn search_after(&mut self, start: u32, goal: u32) -> bool {
        self.stamp += 1;
        let limit = self.places[goal as usize];
        self.after.clear();
        self.after.push(start);
        self.seen[start as usize] = self.stamp;
        let mut next = 0;
        while next < self.after.len() {
            let node = self.after[next];
            next += 1;
            for &to in self.known.successors(node) {
                let place = self.places[to as usize];
                if place < limit {
                    if self.seen[to as usize] != self.stamp {
                        self.seen[to as usize] = self.stamp;
                        self.after.push(to);
                    }
                } else if place == limit {
                    return false;
                }
            }
            let mut edge = self.first_out[node as usize];
            while edge != NONE {
                let (_, to) = self.sides.ends(edge as usize);
                let place = self.places[to as usize];
                if place < limit {
                    if self.seen[to as usize] != self.stamp {
                        self.seen[to as usize] = self.stamp;
                        self.after.push(to);
                    }
                } else if place == limit {
                    return false;
                }
                edge = self.next_out[edge as usize];
            }
        }
        true
    }

    /// Collects what precedes `start` down to the place of `floor`. It is disjoint from what [`Order::search_after`] found.
    fn search_before(&mut self, start: u32, floor: u32) {
        let limit = self.places[floor as usize];
        self.before.clear();
        self.before.push(start);
        self.seen[start as usize] = self.stamp;
        let mut next = 0;
        while next < self.before.len() {
            let node = self.before[next];
            next += 1;
            for &from in self.known.predecessors(node) {
                if self.places[from as usize] > limit && self.seen[from as usize] != self.stamp {
                    self.seen[from as usize] = self.stamp;
                    self.before.push(from);
                }
            }
            let mut edge = self.first_in[node as usize];
            while edge != NONE {
                let (from, _) = self.sides.ends(edge as usize);
                if self.places[from as usize] > limit && self.seen[from as usize] != self.stamp {
                    self.seen[from as usize] = self.stamp;
                    self.before.push(from);
                }
                edge = self.next_in[edge as usize];
            }
        }
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
