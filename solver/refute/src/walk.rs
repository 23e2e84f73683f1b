//! Shortest cycles of direct dependencies through one point, by breadth-first search.
//!
//! Free edges cost nothing. A place on a chain that the start itself entered leads back to the start by no step at all, so the
//! places of the first step are a layer of their own; and after an rw step is another state than after any other where two rw
//! steps in a row are not allowed.

use super::effort::{Effort, Spent};
use super::relations::{Dependency, Relations};

/// Which steps a cycle may take.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    /// The kinds of the first step, as bits.
    pub(super) first: u8,
    /// The kinds of the others.
    pub(super) kinds: u8,
    /// Whether no two rw steps follow each other.
    pub(super) alternates: bool,
}

/// The layers of the search.
const FIRST: usize = 0;
const PLAIN: usize = 1;
const AFTER_RW: usize = 2;

/// The marks of the search, kept from one to the next.
pub(super) struct Walk {
    stamp: u32,
    seen: [Vec<u32>; 3],
    /// By which edge, and from which layer.
    parent: [Vec<(u32, u8)>; 3],
}

type State = (u32, usize);

impl Walk {
    /// For graphs of this size.
    pub(super) fn new(n_nodes: usize) -> Self {
        Walk {
            stamp: 0,
            seen: std::array::from_fn(|_| vec![0; n_nodes]),
            parent: std::array::from_fn(|_| vec![(0, 0); n_nodes]),
        }
    }

    fn mark(&mut self, (node, layer): State, edge: u32, from: usize) -> bool {
        let seen = &mut self.seen[layer][node as usize];
        if *seen == self.stamp {
            return false;
        }
        *seen = self.stamp;
        self.parent[layer][node as usize] = (edge, from as u8);
        true
    }

    /// A shortest cycle through a point, of at most `bound` steps: how many, and the edges.
    pub(super) fn cycle(
        &mut self,
        relations: &Relations<'_>,
        start: u32,
        rule: Rule,
        bound: usize,
        effort: &mut Effort<'_>,
    ) -> Result<Option<(usize, Vec<u32>)>, Spent> {
        self.stamp += 1;
        let layers = if rule.alternates { AFTER_RW } else { PLAIN };
        let mut level: Vec<State> = vec![(start, FIRST)];
        self.seen[FIRST][start as usize] = self.stamp;
        let mut n_steps = 0;
        while !level.is_empty() && n_steps <= bound {
            let mut at = 0;
            while at < level.len() {
                let (node, layer) = level[at];
                at += 1;
                for edge in relations.out(node) {
                    let (_, to, kind) = relations.edge(edge);
                    if kind != Dependency::Free {
                        continue;
                    }
                    let next = match layer {
                        FIRST if n_steps == 0 => FIRST,
                        FIRST if !relations.is_point(to) => FIRST,
                        FIRST if relations.is_same(to, start) => continue,
                        FIRST if rule.first == Dependency::Rw.bit() => layers,
                        FIRST => PLAIN,
                        layer => layer,
                    };
                    if self.mark((to, next), edge, layer) {
                        level.push((to, next));
                        if to == start && next == PLAIN {
                            return Ok(Some((n_steps, self.trace(relations, start))));
                        }
                    }
                }
            }
            effort.spend(level.len() as u64)?;
            let mut next_level = Vec::new();
            for (node, layer) in level {
                if !relations.is_point(node) || layer == FIRST && n_steps > 0 {
                    continue;
                }
                effort.spend(relations.out(node).len() as u64)?;
                for edge in relations.out(node) {
                    let (_, to, kind) = relations.edge(edge);
                    let kinds = if layer == FIRST {
                        rule.first
                    } else {
                        rule.kinds
                    };
                    let is_rw = kind == Dependency::Rw;
                    if kind == Dependency::Free
                        || kind.bit() & kinds == 0
                        || is_rw && layer == AFTER_RW
                    {
                        continue;
                    }
                    let next = match layer {
                        FIRST if !relations.is_point(to) => FIRST,
                        FIRST if relations.is_same(to, start) => continue,
                        _ if is_rw => layers,
                        _ => PLAIN,
                    };
                    if self.mark((to, next), edge, layer) {
                        next_level.push((to, next));
                        if to == start && next == PLAIN {
                            return Ok(Some((n_steps + 1, self.trace(relations, start))));
                        }
                    }
                }
            }
            level = next_level;
            n_steps += 1;
        }
        Ok(None)
    }

    /// The edges of the cycle that was just closed.
    fn trace(&self, relations: &Relations<'_>, start: u32) -> Vec<u32> {
        let mut edges = Vec::new();
        let (mut node, mut layer) = (start, PLAIN);
        while (node, layer) != (start, FIRST) {
            let (edge, from) = self.parent[layer][node as usize];
            edges.push(edge);
            node = relations.edge(edge).0;
            layer = from as usize;
        }
        edges.reverse();
        edges
    }
}
