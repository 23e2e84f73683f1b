//! Strongly connected components (Tarjan), without recursion, of a graph that is given by its rows.

use std::ops::Range;

/// The components, numbered so that an edge between two of them leads to the smaller number.
pub struct Components {
    /// The component of each node.
    pub of: Vec<u32>,
    /// How many there are.
    pub n: usize,
}

/// The components of a graph: the edges of a node, and where each of them leads, if it counts.
pub fn components(
    n_nodes: usize,
    out: impl Fn(u32) -> Range<u32>,
    target: impl Fn(u32, u32) -> Option<u32>,
) -> Components {
    const NONE: u32 = u32::MAX;
    let mut of = vec![NONE; n_nodes];
    let mut index = vec![0_u32; n_nodes];
    let mut low = vec![0_u32; n_nodes];
    let mut stack: Vec<u32> = Vec::new();
    let mut calls: Vec<(u32, u32)> = Vec::new();
    let mut clock = 0;
    let mut n = 0;
    for root in 0..n_nodes as u32 {
        if index[root as usize] != 0 {
            continue;
        }
        calls.push((root, out(root).start));
        while let Some(call) = calls.last_mut() {
            let node = call.0;
            let row = out(node);
            if index[node as usize] == 0 {
                clock += 1;
                index[node as usize] = clock;
                low[node as usize] = clock;
                stack.push(node);
            }
            if call.1 < row.end {
                let edge = call.1;
                call.1 += 1;
                let Some(to) = target(node, edge) else {
                    continue;
                };
                if index[to as usize] == 0 {
                    calls.push((to, out(to).start));
                } else if of[to as usize] == NONE {
                    low[node as usize] = low[node as usize].min(index[to as usize]);
                }
                continue;
            }
            calls.pop();
            if let Some(&(parent, _)) = calls.last() {
                low[parent as usize] = low[parent as usize].min(low[node as usize]);
            }
            if low[node as usize] == index[node as usize] {
                while let Some(member) = stack.pop() {
                    of[member as usize] = n;
                    if member == node {
                        break;
                    }
                }
                n += 1;
            }
        }
    }
    Components { of, n: n as usize }
}

#[cfg(test)]
mod tests {
    use super::components;

    #[test]
    fn components_are_numbered_against_the_edges() {
        // 0 → 1 ⇄ 2 → 3
        let starts = [0_u32, 1, 2, 4, 4];
        let targets = [1_u32, 2, 1, 3];
        let found = components(
            4,
            |node| starts[node as usize]..starts[node as usize + 1],
            |_, edge| Some(targets[edge as usize]),
        );
        assert_eq!(found.n, 3);
        assert_eq!(found.of, [2, 1, 1, 0]);
    }
}
