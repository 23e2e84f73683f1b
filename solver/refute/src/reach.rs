//! Which of some nodes of a large acyclic graph reach which, as the few arcs that imply the rest.
//!
//! Sixty-four nodes at a time: each node of the graph holds one word of those that it reaches, filled in reverse
//! topological order, so a sweep is linear in the graph.

use crate::prune::Dag;

/// The reachability among `nodes`, as pairs of their places; pairs that follow from others are left out.
pub(super) fn reach_among(dag: &Dag, nodes: &[u32]) -> Vec<(u32, u32)> {
    let n_words = nodes.len().div_ceil(64);
    let mut rows = vec![0_u64; nodes.len() * n_words];
    let mut reached = vec![0_u64; dag.n_nodes()];
    let mut place = vec![u32::MAX; dag.n_nodes()];
    for (at, &node) in nodes.iter().enumerate() {
        place[node as usize] = at as u32;
    }
    for word in 0..n_words {
        for &node in dag.order().iter().rev() {
            let mut bits = 0;
            for &next in dag.successors(node) {
                bits |= reached[next as usize];
                let at = place[next as usize] as usize;
                if at / 64 == word {
                    bits |= 1 << (at % 64);
                }
            }
            reached[node as usize] = bits;
        }
        for (at, &node) in nodes.iter().enumerate() {
            rows[at * n_words + word] = reached[node as usize];
        }
    }
    reduce(&rows, nodes.len(), n_words)
}

/// The transitive reduction of a closed relation.
fn reduce(rows: &[u64], n_nodes: usize, n_words: usize) -> Vec<(u32, u32)> {
    let row = |at: usize| &rows[at * n_words..(at + 1) * n_words];
    let members = |row: &[u64]| -> Vec<usize> {
        let mut found = Vec::new();
        for (word, &bits) in row.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                found.push(64 * word + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
        found
    };
    let mut pairs = Vec::new();
    for from in 0..n_nodes {
        let mut direct = row(from).to_vec();
        for between in members(row(from)) {
            for (word, implied) in direct.iter_mut().zip(row(between)) {
                *word &= !implied;
            }
        }
        let direct = members(&direct).into_iter();
        pairs.extend(direct.map(|to| (from as u32, to as u32)));
    }
    pairs
}
