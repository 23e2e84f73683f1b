//! The rows that a round has to compute, in reverse topological order by level.
//!
//! A node's level is the longest way from it to the end, over nodes that have to be computed. After a round only the
//! nodes that reach a new edge's source have to: the rows of the others cannot have changed.

use kingsnake_graph::reach::Dag;

/// The nodes to compute, level by level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) nodes: Vec<u32>,
    /// Where each level ends in `nodes`.
    pub(crate) ends: Vec<u32>,
}

impl Steps {
    /// All nodes of a graph.
    pub(crate) fn all(dag: &Dag) -> Self {
        Self::of(dag, |_| true)
    }

    /// The nodes that reach one of these, and these.
    pub(crate) fn above(dag: &Dag, sources: impl Iterator<Item = u32>) -> Self {
        let mut is_source = vec![false; dag.n_nodes()];
        sources.for_each(|node| is_source[node as usize] = true);
        Self::of(dag, |node| is_source[node as usize])
    }

    fn of(dag: &Dag, is_wanted: impl Fn(u32) -> bool) -> Self {
        // 0 is a node that need not be computed, others are one more than the level.
        let mut height = vec![0_u32; dag.n_nodes()];
        let mut counts = Vec::new();
        for &node in dag.order().iter().rev() {
            let successors = dag.successors(node).iter();
            let below = successors.map(|&to| height[to as usize]).max().unwrap_or(0);
            if below > 0 || is_wanted(node) {
                height[node as usize] = below + 1;
                if counts.len() == below as usize {
                    counts.push(0_u32);
                }
                counts[below as usize] += 1;
            }
        }
        let mut next = Vec::with_capacity(counts.len());
        let mut end = 0;
        for count in &mut counts {
            next.push(end);
            end += *count;
            *count = end;
        }
        let mut nodes = vec![0; end as usize];
        for (node, &height) in height.iter().enumerate() {
            if let Some(level) = height.checked_sub(1) {
                let at = &mut next[level as usize];
                nodes[*at as usize] = node as u32;
                *at += 1;
            }
        }
        Steps {
            nodes,
            ends: counts,
        }
    }

    /// The nodes of a level, as places in `nodes`.
    pub(crate) fn level(&self, level: usize) -> std::ops::Range<u32> {
        let start = if level == 0 { 0 } else { self.ends[level - 1] };
        start..self.ends[level]
    }
}
