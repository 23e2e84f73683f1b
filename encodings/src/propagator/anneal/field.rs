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

impl<T> Lists<T> {
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
        let mut items: Vec<Option<T>> = (0..n_items).map(|_| None).collect();
        for (node, item) in pairs() {
            let at = &mut starts[node as usize + 1];
            items[*at as usize] = Some(item);
            *at += 1;
        }
        starts.pop();
        Lists {
            starts,
            items: items.into_iter().flatten().collect(),
        }
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

/// Entries of one form, and the constraint of each. The constraint is only looked up where it matters.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries<T> {
    lists: Lists<T>,
    constraints: Vec<u32>,
}

impl<T: Copy> Entries<T> {
    fn of(n_nodes: usize, all: &[(u32, T, u32)]) -> Entries<T> {
        let both = Lists::of(n_nodes, || {
            all.iter()
                .map(|&(node, item, constraint)| (node, (item, constraint)))
        });
        let (items, constraints) = both.items.into_iter().unzip();
        let starts = both.starts;
        Entries {
            lists: Lists { starts, items },
            constraints,
        }
    }

    /// Where the node's entries start, and the entries.
    #[inline]
    pub fn of_node(&self, node: u32) -> (usize, &[T]) {
        let range = self.lists.range(node);
        (range.start, &self.lists.items[range])
    }

    #[inline]
    pub fn constraint(&self, at: usize) -> u32 {
        self.constraints[at]
    }
}

/// A constraint in its general form: the edges of both sides.
#[derive(Clone, Debug)]
pub(super) struct General {
    pub constraint: u32,
    pub sides: [Vec<(u32, u32)>; 2],
}

/// The constraints as nodes see them.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// By id, the node.
    pub nodes: Vec<u32>,
    /// The known neighbours that bound a move.
    pub before: Lists<u32>,
    pub after: Lists<u32>,
    /// `[low, high]`: violated exactly where the node lies from `low` to `high`.
    pub between: Entries<[u32; 2]>,
    /// `[to, w, z]`: unless w is before z, the node must come before `to`.
    pub below: Entries<[u32; 3]>,
    /// `[from, w, z]`: unless w is before z, the node must come after `from`.
    pub above: Entries<[u32; 3]>,
    /// What has no such form, by node.
    pub rest: Lists<u32>,
    pub general: Vec<General>,
    /// By constraint, the ids that it touches.
    pub touched: Lists<u32>,
}

/// The edges of the two sides of a constraint, by ids, without those that the others and a known edge imply.
pub(super) fn edges(
    sides: &Sides,
    constraint: u32,
    ids: &[u32],
    known: &Known,
) -> [Vec<(u32, u32)>; 2] {
    let var = Var::new(constraint);
    [var.pos_lit(), var.neg_lit()].map(|lit| {
        let all: Vec<(u32, u32)> = sides.edges(lit).map(|edge| sides.ends(edge)).collect();
        let is_known = |from: u32, to: u32| known.successors(from).contains(&to);
        let is_implied = |&&(from, to): &&(u32, u32)| {
            all.iter().any(|&(other, target)| {
                (target == to && other != from && is_known(from, other))
                    || (other == from && target != to && is_known(target, to))
            })
        };
        let needed = all.iter().filter(|edge| !is_implied(edge));
        let mut needed: Vec<(u32, u32)> = needed
            .map(|&(from, to)| (ids[from as usize], ids[to as usize]))
            .collect();
        needed.sort_unstable();
        needed.dedup();
        needed
    })
}

/// Entries under construction.
#[derive(Default)]
struct Seen {
    between: Vec<(u32, [u32; 2], u32)>,
    below: Vec<(u32, [u32; 3], u32)>,
    above: Vec<(u32, [u32; 3], u32)>,
    rest: Vec<(u32, u32)>,
    general: Vec<General>,
}

impl Seen {
    fn see(&mut self, constraint: u32, sides: [Vec<(u32, u32)>; 2], touched: &[u32]) {
        let (&[(u, v)], &[(w, z)]) = (sides[0].as_slice(), sides[1].as_slice()) else {
            return self.see_general(constraint, sides, touched);
        };
        // Sides that start, or end, in one node have no short form.
        if u == w || v == z {
            return self.see_general(constraint, sides, touched);
        }
        if v == w {
            self.between.push((v, [z, u], constraint));
        } else {
            self.above.push((v, [u, w, z], constraint));
            self.below.push((w, [z, u, v], constraint));
        }
        if u == z {
            self.between.push((u, [v, w], constraint));
        } else {
            self.below.push((u, [v, w, z], constraint));
            self.above.push((z, [w, u, v], constraint));
        }
    }

    fn see_general(&mut self, constraint: u32, sides: [Vec<(u32, u32)>; 2], touched: &[u32]) {
        let at = self.general.len() as u32;
        self.rest.extend(touched.iter().map(|&id| (id, at)));
        self.general.push(General { constraint, sides });
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
        for constraint in 0..sides.n_constraints() as u32 {
            let sides = edges(sides, constraint, ids, known);
            let ends = sides.iter().flatten().flat_map(|&(from, to)| [from, to]);
            let mut touched: Vec<u32> = ends.collect();
            touched.sort_unstable();
            touched.dedup();
            touches.extend(touched.iter().map(|&id| (constraint, id)));
            seen.see(constraint, sides, &touched);
        }
        Field {
            before: Lists::of(n_nodes, || kept.iter().map(|&(from, to)| (to, from))),
            after: Lists::of(n_nodes, || kept.iter().copied()),
            between: Entries::of(n_nodes, &seen.between),
            below: Entries::of(n_nodes, &seen.below),
            above: Entries::of(n_nodes, &seen.above),
            rest: Lists::of(n_nodes, || seen.rest.iter().copied()),
            general: seen.general,
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

    /// Whether some constraint touches the node of this id.
    pub fn is_touched(&self, id: u32) -> bool {
        !(self.between.of_node(id).1.is_empty()
            && self.below.of_node(id).1.is_empty()
            && self.above.of_node(id).1.is_empty()
            && self.rest.of_node(id).is_empty())
    }

    /// Calls for every id whose point a move of this one reads.
    pub fn for_each_read(&self, id: u32, mut read: impl FnMut(u32)) {
        self.before.of_node(id).iter().for_each(|&it| read(it));
        self.after.of_node(id).iter().for_each(|&it| read(it));
        self.between
            .of_node(id)
            .1
            .iter()
            .flatten()
            .for_each(|&it| read(it));
        self.below
            .of_node(id)
            .1
            .iter()
            .flatten()
            .for_each(|&it| read(it));
        self.above
            .of_node(id)
            .1
            .iter()
            .flatten()
            .for_each(|&it| read(it));
        for &at in self.rest.of_node(id) {
            let ends = self.general[at as usize].sides.iter().flatten();
            ends.flat_map(|&(from, to)| [from, to])
                .filter(|&it| it != id)
                .for_each(&mut read);
        }
    }
}
