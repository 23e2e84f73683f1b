//! Whether a problem with choices, guarded edges and clauses can be met: all assignments are tried.

use kingsnake_graph::{Literal, Problem};

pub fn is_acyclic(n_nodes: usize, edges: &[(u32, u32)]) -> bool {
    let mut left: Vec<u32> = (0..n_nodes as u32).collect();
    loop {
        let has_incoming = |node: u32| {
            edges
                .iter()
                .any(|&(from, to)| to == node && left.contains(&from))
        };
        let kept: Vec<u32> = left
            .iter()
            .copied()
            .filter(|&it| has_incoming(it))
            .collect();
        if kept.len() == left.len() {
            return left.is_empty();
        }
        left = kept;
    }
}

/// The pairs of runs of one key.
pub fn pairs(problem: &Problem) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    for key in 0..problem.orders.n_keys() {
        let range = problem.orders.range(key);
        for b in range.clone() {
            pairs.extend((range.start..b).map(|a| (a as u32, b as u32)));
        }
    }
    pairs
}

/// Whether an assignment meets everything.
pub fn meets(problem: &Problem, pairs: &[(u32, u32)], values: u32, orders: u32) -> bool {
    let holds = |literal: &Literal| match *literal {
        Literal::Variable(variable, value) => (values >> variable & 1 == 1) == value,
        Literal::Order(a, b) => {
            let at = pairs.iter().position(|&pair| pair == (a.min(b), a.max(b)));
            (orders >> at.expect("a pair") & 1 == 1) == (a < b)
        }
    };
    if !problem
        .logic
        .clauses()
        .all(|clause| clause.iter().any(holds))
    {
        return false;
    }
    let mut edges: Vec<(u32, u32)> = problem.edges.iter().map(|it| (it.from, it.to)).collect();
    for (at, &(a, b)) in pairs.iter().enumerate() {
        let (a, b) = if orders >> at & 1 == 1 {
            (a, b)
        } else {
            (b, a)
        };
        edges.extend(problem.orders.edges(a, b).map(|it| (it.from, it.to)));
    }
    for guarded in problem.logic.guarded() {
        if guarded.guard.iter().all(holds) {
            edges.push((guarded.edge.from, guarded.edge.to));
        }
    }
    is_acyclic(problem.n_nodes, &edges)
}

/// Tries all assignments.
pub fn can_be_met(problem: &Problem) -> bool {
    let pairs = pairs(problem);
    let n_variables = problem.logic.n_variables();
    (0..1_u32 << n_variables).any(|values| {
        (0..1_u32 << pairs.len()).any(|orders| meets(problem, &pairs, values, orders))
    })
}
