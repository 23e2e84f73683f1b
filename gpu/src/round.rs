//! The graph of a round: the rows to compute, level by level, and the edges whose targets have new bits.
//!
//! In the first round these are all edges. Later a row keeps its bits, so that only new edges count, and edges to rows
//! that are computed again.

use std::ops::Range;

use kingsnake_graph::Edge;
use kingsnake_graph::reach::Dag;

use crate::layout::Strip;
use crate::matrix::Cut;
use crate::places::Places;
use crate::steps::Steps;

/// A graph by steps, in places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Round {
    /// The rows, level by level, and in a level in ascending order.
    pub(crate) steps: Vec<u32>,
    /// For each step where its edges start in `targets`, and at the end how many there are.
    pub(crate) starts: Vec<u32>,
    pub(crate) targets: Vec<u32>,
    /// Where each level ends in `steps`.
    pub(crate) ends: Vec<u32>,
}

impl Round {
    /// The first round: everything.
    pub(crate) fn first(dag: &Dag, places: &Places) -> Self {
        Self::build(&Steps::all(dag), dag, places, |_, _| true)
    }

    /// A later round, after these edges were added to the graph.
    pub(crate) fn later(dag: &Dag, new: &[Edge], places: &Places) -> Self {
        let steps = Steps::above(dag, new.iter().map(|edge| edge.from));
        let mut is_step = vec![false; dag.n_nodes()];
        for &node in &steps.nodes {
            is_step[node as usize] = true;
        }
        let mut new: Vec<(u32, u32)> = new.iter().map(|it| (it.from, it.to)).collect();
        new.sort_unstable();
        Self::build(&steps, dag, places, |from, to| {
            is_step[to as usize] || new.binary_search(&(from, to)).is_ok()
        })
    }

    fn build(steps: &Steps, dag: &Dag, places: &Places, counts: impl Fn(u32, u32) -> bool) -> Self {
        let mut round = Round {
            starts: vec![0],
            ends: steps.ends.clone(),
            ..Round::default()
        };
        for level in 0..steps.ends.len() {
            let range = steps.level(level);
            let nodes = &steps.nodes[range.start as usize..range.end as usize];
            let mut rows: Vec<u32> = nodes
                .iter()
                .map(|&it| places.of_node[it as usize])
                .collect();
            rows.sort_unstable();
            for &row in &rows {
                let node = places.nodes[row as usize];
                let targets = dag.successors(node).iter();
                let targets = targets.filter(|&&to| counts(node, to));
                let targets = targets.map(|&to| places.of_node[to as usize]);
                round.targets.extend(targets);
                round.starts.push(round.targets.len() as u32);
            }
            round.steps.extend(rows);
        }
        round
    }

    /// The number of levels.
    pub(crate) fn n_levels(&self) -> usize {
        self.ends.len()
    }

    /// The steps of a level.
    pub(crate) fn level(&self, level: usize) -> Range<u32> {
        let start = if level == 0 { 0 } else { self.ends[level - 1] };
        start..self.ends[level]
    }

    /// How many of some steps of one level are among the first rows.
    pub(crate) fn n_below(&self, steps: Range<u32>, limit: u32) -> u32 {
        let rows = &self.steps[steps.start as usize..steps.end as usize];
        rows.partition_point(|&row| row < limit) as u32
    }

    /// How many rows a level's rows are made of, themselves included.
    pub(crate) fn rows_of(&self, level: usize) -> u64 {
        let range = self.level(level);
        let edges = self.starts[range.end as usize] - self.starts[range.start as usize];
        u64::from(edges) + range.len() as u64
    }

    /// How many words of rows are OR-ed into others: for each edge those of the strips that have the target's row.
    pub(crate) fn words_ored(&self, cut: &Cut) -> u64 {
        let words = u64::from(cut.strip_words());
        let of = |&row: &u32| {
            let without = cut.limits.partition_point(|&limit| limit <= row);
            (cut.limits.len() - without) as u64 * words
        };
        self.targets.iter().map(of).sum()
    }

    /// The strips of the matrix, each with the first level that has a row in it.
    pub(crate) fn strips(&self, cut: &Cut) -> Vec<Strip> {
        let lowest = (0..self.n_levels()).map(|level| self.steps[self.level(level).start as usize]);
        let lowest: Vec<u32> = lowest.collect();
        let strips = cut.bases().into_iter().zip(&cut.limits);
        strips
            .map(|(base, &limit)| {
                let first = lowest.iter().position(|&row| row < limit);
                Strip {
                    base,
                    limit,
                    first_level: first.unwrap_or(lowest.len()) as u32,
                }
            })
            .collect()
    }
}
