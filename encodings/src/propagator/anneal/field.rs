//! The constraints as each node sees them, laid out for annealing: what never changes while points move.
//!
//! Nodes are numbered anew by their place in the start order, so that nodes that are near in time are near in memory. Known
//! edges are thinned out: an edge that two others imply bounds no move. Nearly every constraint has one edge a side once
//! implied edges are left out, and then a node sees it in one of three forms, each a few words long. Entries hold ids, not nodes.

use rustsat::types::Var;

use super::super::graph::{Known, Sides};
use super::thin::thin;

/// Items of every node, one after another.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists<T> {
    starts: Vec<u32>,
    items: Vec<T>,
}

impl<T: Clone + Default> Lists<T> {
    /// Groups the items by node, in the order given. `pairs` is called twice.
    pub fn of<I: Iterator<Item = (u32, T)>>(n_nodes: usize, pairs: impl Fn() -> I) -> Lists<T> {
        let mut starts = vec![0u32; n_nodes + 2];
        for (node, _) in pairs() {
            starts[node as usize + 2] += 1;
        }
        for node in 0..n_nodes {
            starts[node + 2] += starts[node + 1];
        }
        let n_items = starts[n_nodes + 1] as usize;
        let mut items = vec![T::default(); n_items];
        for (node, item) in pairs() {
            let at = &mut starts[node as usize + 1];
            items[*at as usize] = item;
            *at += 1;
        }
        starts.pop();
        Lists { starts, items }
    }

    #[inline]
    pub fn range(&self, node: u32) -> std::ops::Range<usize> {
        self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize
    }

    #[inline]
    pub fn of_node(&self, node: u32) -> &[T] {
        &self.items[self.range(node)]
    }
}

/// The constraints as nodes see them.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// By id, the node.
    pub nodes: Vec<u32>,
    /// The known neighbours that bound a move.
    pub before: Lists<u32>,
    pub after: Lists<u32>,
    /// `[low, high, constraint]`: violated exactly where the node lies from `low` to `high`.
    pub between: Lists<[u32; 3]>,
    /// `[to, w, z, constraint]`: unless w is before z, the node must come before `to`.
    pub below: Lists<[u32; 4]>,
    /// `[from, w, z, constraint]`: unless w is before z, the node must come after `from`.
    pub above: Lists<[u32; 4]>,
    /// By node, constraints that have no such form.
    pub rest: Lists<u32>,
    /// The edges of the two sides of every constraint.
    pub edges: Vec<[u32; 2]>,
    /// Two a constraint, and one more for the end: where the edges of its sides start.
    pub edge_starts: Vec<u32>,
    /// By constraint, the ids that it touches.
    pub touched: Lists<u32>,
}

/// Appends the edges of the two sides of a constraint, by ids, without those that the others and a known edge imply. Returns
/// where the second side starts.
fn edges(
    sides: &Sides,
    constraint: u32,
    ids: &[u32],
    known: &Known,
    out: &mut Vec<[u32; 2]>,
) -> usize {
    let var = Var::new(constraint);
    let mut middle = out.len();
    for lit in [var.pos_lit(), var.neg_lit()] {
        middle = out.len();
        let all = sides.edges(lit);
        let is_known = |from: u32, to: u32| known.successors(from).contains(&to);
        let is_implied = |from: u32, to: u32| {
            all.len() > 1
                && all.clone().any(|edge| {
                    let (other, target) = sides.ends(edge);
                    (target == to && other != from && is_known(from, other))
                        || (other == from && target != to && is_known(target, to))
                })
        };
        for edge in all.clone() {
            let (from, to) = sides.ends(edge);
            if !is_implied(from, to) {
                out.push([ids[from as usize], ids[to as usize]]);
            }
        }
        if out.len() > middle + 1 {
            out[middle..].sort_unstable();
            let mut kept = middle + 1;
            for at in middle + 1..out.len() {
                if out[at] != out[kept - 1] {
                    out[kept] = out[at];
                    kept += 1;
                }
            }
            out.truncate(kept);
        }
    }
    middle
}

/// Entries under construction.
#[derive(Default)]
struct Seen {
    between: Vec<(u32, [u32; 3])>,
    below: Vec<(u32, [u32; 4])>,
    above: Vec<(u32, [u32; 4])>,
    rest: Vec<(u32, u32)>,
}

impl Seen {
    fn see(&mut self, constraint: u32, sides: [&[[u32; 2]]; 2], touched: &[u32]) {
        let (&[[u, v]], &[[w, z]]) = (sides[0], sides[1]) else {
            return self.see_general(constraint, touched);
        };
        // Sides that start, or end, in one node have no short form.
        if u == w || v == z {
            return self.see_general(constraint, touched);
        }
        if v == w {
            self.between.push((v, [z, u, constraint]));
        } else {
            self.above.push((v, [u, w, z, constraint]));
            self.below.push((w, [z, u, v, constraint]));
        }
        if u == z {
            self.between.push((u, [v, w, constraint]));
        } else {
            self.below.push((u, [v, w, z, constraint]));
            self.above.push((z, [w, u, v, constraint]));
        }
    }

    fn see_general(&mut self, constraint: u32, touched: &[u32]) {
        self.rest.extend(touched.iter().map(|&id| (id, constraint)));
    }
}

impl Field {
    /// At most the bytes that [`Field::new`] will take while it builds.
    pub fn bytes(known: &Known, sides: &Sides) -> u64 {
        let n_edges = sides.n_edges() as u64;
        let n_constraints = sides.n_constraints() as u64;
        48 * known.n_nodes() as u64
            + 16 * known.n_edges() as u64
            + 96 * n_edges
            + 80 * n_constraints
    }

    /// The field of a question, in the order of these places, which must extend the known graph.
    pub fn new(known: &Known, sides: &Sides, places: &[u32]) -> Field {
        let n_nodes = known.n_nodes();
        // A node's id is its place.
        let ids = places;
        let mut nodes = vec![0; n_nodes];
        for (node, &id) in ids.iter().enumerate() {
            nodes[id as usize] = node as u32;
        }
        let kept = thin(known, &nodes, ids);
        let mut seen = Seen::default();
        let mut touches = Vec::new();
        let (mut all, mut starts) = (Vec::new(), vec![0]);
        let mut touched: Vec<u32> = Vec::new();
        for constraint in 0..sides.n_constraints() as u32 {
            let first = all.len();
            let middle = edges(sides, constraint, ids, known, &mut all);
            starts.extend([middle as u32, all.len() as u32]);
            touched.clear();
            touched.extend(all[first..].iter().flatten());
            touched.sort_unstable();
            touched.dedup();
            touches.extend(touched.iter().map(|&id| (constraint, id)));
            seen.see(constraint, [&all[first..middle], &all[middle..]], &touched);
        }
        Field {
            before: Lists::of(n_nodes, || kept.iter().map(|&(from, to)| (to, from))),
            after: Lists::of(n_nodes, || kept.iter().copied()),
            between: Lists::of(n_nodes, || seen.between.iter().copied()),
            below: Lists::of(n_nodes, || seen.below.iter().copied()),
            above: Lists::of(n_nodes, || seen.above.iter().copied()),
            rest: Lists::of(n_nodes, || seen.rest.iter().copied()),
            edges: all,
            edge_starts: starts,
            touched: Lists::of(sides.n_constraints(), || touches.iter().copied()),
            nodes,
        }
    }

    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    pub fn n_constraints(&self) -> usize {
        self.touched.starts.len() - 1
    }

    /// The edges of the two sides of a constraint.
    #[inline]
    pub fn sides_of(&self, constraint: u32) -> [&[[u32; 2]]; 2] {
        let at = 2 * constraint as usize;
        [at, at + 1]
            .map(|at| &self.edges[self.edge_starts[at] as usize..self.edge_starts[at + 1] as usize])
    }

    /// Whether some constraint touches the node of this id.
    pub fn is_touched(&self, id: u32) -> bool {
        !(self.between.of_node(id).is_empty()
            && self.below.of_node(id).is_empty()
            && self.above.of_node(id).is_empty()
            && self.rest.of_node(id).is_empty())
    }

    /// Words of the node's lists, as a device has them.
    pub fn n_words(&self, id: u32) -> usize {
        self.before.range(id).len()
            + self.after.range(id).len()
            + 2 * self.between.range(id).len()
            + 3 * self.below.range(id).len()
            + 3 * self.above.range(id).len()
            + self.rest.range(id).len()
    }

    /// Calls for every id whose point a move of this one reads.
    pub fn for_each_read(&self, id: u32, mut read: impl FnMut(u32)) {
        self.before.of_node(id).iter().for_each(|&it| read(it));
        self.after.of_node(id).iter().for_each(|&it| read(it));
        for &[low, high, _] in self.between.of_node(id) {
            read(low);
            read(high);
        }
        for &[end, w, z, _] in self.below.of_node(id).iter().chain(self.above.of_node(id)) {
            read(end);
            read(w);
            read(z);
        }
        for &constraint in self.rest.of_node(id) {
            let ends = self.sides_of(constraint).into_iter().flatten().flatten();
            ends.filter(|&&it| it != id).for_each(|&it| read(it));
        }
    }
}
