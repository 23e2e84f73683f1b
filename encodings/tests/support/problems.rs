//! Random problems with choices, guarded edges and clauses.

use kingsnake_context::rng::Rng;
use kingsnake_graph::{Edge, Literal, Problem, RunOf};

/// A random problem: some nodes and known edges, two keys with up to three runs, variables, choices, guarded edges, clauses.
pub fn problem(rng: &mut Rng) -> Problem {
    let n_nodes = rng.between(4, 9);
    problem_of(n_nodes, rng)
}

/// The same with this many nodes, and more of everything if there are many.
pub fn problem_of(n_nodes: usize, rng: &mut Rng) -> Problem {
    let more = n_nodes.div_ceil(10);
    let mut problem = Problem::new(n_nodes);
    // Half of the time all edges go forward in node order, so that many problems can be met.
    let ends = |rng: &mut Rng, forward: bool| loop {
        let (a, b) = (rng.below(n_nodes) as u32, rng.below(n_nodes) as u32);
        if a != b {
            return if forward {
                (a.min(b), a.max(b))
            } else {
                (a, b)
            };
        }
    };
    for _ in 0..rng.below(n_nodes) {
        let (from, to) = ends(rng, true);
        problem.edges.push(Edge::plain(from, to));
    }
    let mut pairs = Vec::new();
    for key in 0..(more * rng.below(3)) as u32 {
        let mut nodes: Vec<u32> = (0..n_nodes as u32).collect();
        while nodes.len() > 2 + key as usize % 4 {
            nodes.remove(rng.below(nodes.len()));
        }
        let first = problem.orders.len() as u32;
        for b in 1..nodes.len() as u32 {
            pairs.extend((0..b).map(|a| (first + a, first + b)));
        }
        let runs: Vec<RunOf<Vec<u32>>> = nodes
            .iter()
            .map(|&node| {
                let readers: Vec<u32> = (0..n_nodes as u32)
                    .filter(|&it| it != node && rng.below(100 * more) < 15)
                    .collect();
                RunOf {
                    head: node,
                    last: node,
                    install: node,
                    commit: node,
                    last_commit: node,
                    is_free: readers.is_empty(),
                    readers,
                }
            })
            .collect();
        // The writer of a version comes before its readers, as it does in every history.
        for run in &runs {
            for &reader in &run.readers {
                problem.edges.push(Edge::plain(run.commit, reader));
            }
        }
        problem.orders.push_key(key, runs);
    }
    let n_choices = more * rng.below(3);
    for _ in 0..n_choices {
        problem.logic.choice(rng.between(1, 3));
    }
    for _ in 0..more * rng.below(3) {
        problem.logic.variable();
    }
    let n_variables = problem.logic.n_variables();
    let literal = |rng: &mut Rng| {
        if !pairs.is_empty() && (n_variables == 0 || rng.chance(35)) {
            let (a, b) = pairs[rng.below(pairs.len())];
            Some(if rng.chance(50) {
                Literal::Order(a, b)
            } else {
                Literal::Order(b, a)
            })
        } else if n_variables > 0 {
            Some(Literal::Variable(
                rng.below(n_variables) as u32,
                rng.chance(70),
            ))
        } else {
            None
        }
    };
    for _ in 0..more * rng.below(8) {
        let forward = rng.chance(40);
        let (from, to) = ends(rng, forward);
        let n_literals = rng.between(1, 3);
        let guard: Vec<Literal> = (0..n_literals).filter_map(|_| literal(rng)).collect();
        if !guard.is_empty() {
            problem.logic.guard(Edge::plain(from, to), &guard);
        }
    }
    for _ in 0..more * rng.below(4) {
        let n_literals = rng.between(1, 3);
        let clause: Vec<Literal> = (0..n_literals).filter_map(|_| literal(rng)).collect();
        if !clause.is_empty() {
            problem.logic.clause(&clause);
        }
    }
    problem
}
