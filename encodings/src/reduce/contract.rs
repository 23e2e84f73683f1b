//! The known graph among the endpoints alone: which of them reach which, and the fewest arcs that say so (the transitive
//! reduction, which is unique: Aho, Garey and Ullman, 1972).

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_graph::decide::Question;

use super::rows::BitRows;

/// What is contracted: members and endpoints by component, both in the order of their places.
pub(super) struct Contraction<'a> {
    pub question: &'a Question<'a>,
    /// The component of each node of the question.
    pub component: &'a [u32],
    /// The endpoints, by component and place; the arena's nodes.
    pub nodes: &'a [u32],
    /// The first endpoint of each component that has any, and one past the last.
    pub starts: &'a [u32],
    /// All nodes by place.
    pub by_place: &'a [u32],
}

const NONE: u32 = u32::MAX;

impl Contraction<'_> {
    /// The reachability of the endpoints, and its transitive reduction.
    pub fn run(&self, budget: &Budget) -> Result<(BitRows, Vec<(u32, u32)>), StopReason> {
        let n_nodes = self.question.n_nodes;
        let mut arena_of = vec![NONE; n_nodes];
        for (at, &node) in self.nodes.iter().enumerate() {
            arena_of[node as usize] = at as u32;
        }
        // Which of the arena's components a component of the question is, if it has endpoints.
        let mut known_as = vec![NONE; n_nodes];
        for (at, range) in self.starts.windows(2).enumerate() {
            let first = self.nodes[range[0] as usize];
            known_as[self.component[first as usize] as usize] = at as u32;
        }
        let within = |node: u32| known_as[self.component[node as usize] as usize];
        let width = |component: u32| {
            let at = component as usize;
            (self.starts[at + 1] - self.starts[at]).div_ceil(64) as usize
        };
        let mut row_at = vec![usize::MAX; n_nodes];
        let mut n_words = 0;
        for node in 0..n_nodes as u32 {
            if within(node) != NONE {
                row_at[node as usize] = n_words;
                n_words += width(within(node));
            }
        }
        let sizes = self.starts.windows(2).map(|it| (it[1] - it[0]) as usize);
        let needed = 8 * n_words as u64 + BitRows::bytes(sizes);
        budget.reserve("reachability among the endpoints", needed)?;
        let mut bits = vec![0u64; n_words];
        let mut rows = BitRows::new(self.starts.to_vec());
        for (done, &node) in self.by_place.iter().rev().enumerate() {
            if done.is_multiple_of(256) {
                budget.check()?;
            }
            let component = within(node);
            if component == NONE {
                continue;
            }
            let (mine, width) = (row_at[node as usize], width(component));
            let successors = self.question.starts[node as usize] as usize
                ..self.question.starts[node as usize + 1] as usize;
            for &to in &self.question.targets[successors] {
                if within(to) != component {
                    continue;
                }
                let theirs = row_at[to as usize];
                for word in 0..width {
                    let more = bits[theirs + word];
                    bits[mine + word] |= more;
                }
                if arena_of[to as usize] != NONE {
                    let bit = arena_of[to as usize] - self.starts[component as usize];
                    bits[mine + bit as usize / 64] |= 1 << (bit % 64);
                }
            }
            if arena_of[node as usize] != NONE {
                rows.set(arena_of[node as usize], &bits[mine..mine + width]);
            }
        }
        let arcs = reduction(&rows, budget)?;
        Ok((rows, arcs))
    }
}

/// The arcs that no path implies: of what a node reaches, in order, whatever nothing before it reaches.
fn reduction(rows: &BitRows, budget: &Budget) -> Result<Vec<(u32, u32)>, StopReason> {
    let mut arcs = Vec::new();
    let mut rest = Vec::new();
    for component in 0..rows.n_components() {
        let members = rows.members(component);
        for node in members.clone() {
            if node.is_multiple_of(256) {
                budget.check()?;
            }
            rest.clear();
            rest.extend_from_slice(rows.row(node));
            for word in 0..rest.len() {
                while rest[word] != 0 {
                    let to = members.start + 64 * word as u32 + rest[word].trailing_zeros();
                    arcs.push((node, to));
                    rest[word] &= rest[word] - 1;
                    for (mine, &theirs) in rest.iter_mut().zip(rows.row(to)) {
                        *mine &= !theirs;
                    }
                }
            }
        }
    }
    Ok(arcs)
}
