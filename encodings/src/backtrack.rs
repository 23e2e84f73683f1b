//! `search/backtrack`: tries the sides one constraint after the other and undoes those that close a cycle.
//!
//! No learning and no heuristic: an independent engine to compare others with, for small instances.

use std::time::Instant;

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Progress;
use kingsnake_graph::decide::{
    Backend, Constraints, DecideError, DecideStats, Decision, Question, Side,
};

pub(crate) const NAME: &str = "search/backtrack";

/// The back end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backtrack;

/// The graph of the known edges and of the sides chosen so far.
struct Search<'a> {
    constraints: &'a Constraints,
    next: Vec<Vec<u32>>,
    seen: Vec<bool>,
}

impl Search<'_> {
    fn reaches(&mut self, start: u32, goal: u32) -> bool {
        self.seen.fill(false);
        self.seen[start as usize] = true;
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            if node == goal {
                return true;
            }
            for &to in &self.next[node as usize] {
                if !std::mem::replace(&mut self.seen[to as usize], true) {
                    open.push(to);
                }
            }
        }
        false
    }

    /// Adds the side's edges; takes them back and returns false if they close a cycle.
    fn choose(&mut self, constraint: usize, side: Side) -> bool {
        let edges = self.constraints.side(constraint, side);
        for (added, edge) in edges.iter().enumerate() {
            if self.reaches(edge.to, edge.from) {
                self.pop_edges(constraint, side, added);
                return false;
            }
            self.next[edge.from as usize].push(edge.to);
        }
        true
    }

    fn take_back(&mut self, constraint: usize, side: Side) {
        let n_edges = self.constraints.side(constraint, side).len();
        self.pop_edges(constraint, side, n_edges);
    }

    fn pop_edges(&mut self, constraint: usize, side: Side, n_edges: usize) {
        for edge in self.constraints.side(constraint, side)[..n_edges]
            .iter()
            .rev()
        {
            self.next[edge.from as usize].pop();
        }
    }
}

impl Backend for Backtrack {
    fn name(&self) -> &str {
        NAME
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        budget: &Budget,
        _: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        let started = Instant::now();
        let mut search = Search {
            constraints: question.constraints,
            next: (0..question.n_nodes)
                .map(|node| {
                    let range = question.starts[node] as usize..question.starts[node + 1] as usize;
                    question.targets[range].to_vec()
                })
                .collect(),
            seen: vec![false; question.n_nodes],
        };
        let n_constraints = question.constraints.len();
        let mut stats = DecideStats {
            backend: NAME.to_owned(),
            variables: n_constraints as u64,
            encode: started.elapsed(),
            ..DecideStats::default()
        };
        let started = Instant::now();
        let mut chosen: Vec<Side> = Vec::new();
        let mut side = Some(Side::Either);
        let decision = loop {
            if let Err(reason) = budget.check() {
                break Decision::Unknown(reason);
            }
            if chosen.len() == n_constraints {
                break Decision::Choices(chosen);
            }
            let constraint = chosen.len();
            if let Some(try_side) = side {
                stats.decisions += 1;
                if search.choose(constraint, try_side) {
                    chosen.push(try_side);
                    side = Some(Side::Either);
                } else {
                    stats.cycles += 1;
                    side = (try_side == Side::Either).then_some(Side::Or);
                }
            } else {
                stats.conflicts += 1;
                let Some(last) = chosen.pop() else {
                    break Decision::Core((0..n_constraints as u32).collect());
                };
                search.take_back(chosen.len(), last);
                side = (last == Side::Either).then_some(Side::Or);
            }
        };
        stats.solve = started.elapsed();
        Ok((decision, stats))
    }
}
