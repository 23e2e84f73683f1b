//! Random graphs and pairs, for the self-test and the tests.

use kingsnake_context::rng::Rng;
use kingsnake_graph::prune::{RunNodes, Task};
use kingsnake_graph::reach::Dag;
use kingsnake_graph::{Edge, Reason};

/// An edge without a reason.
pub(crate) fn edge(from: u32, to: u32) -> Edge {
    Edge {
        from,
        to,
        reason: Reason::NONE,
    }
}

/// A random acyclic graph: `span` is how far an edge reaches ahead in a hidden order, so small is deep and large is wide.
pub(crate) fn dag(n_nodes: usize, n_edges: usize, span: usize, rng: &mut Rng) -> Dag {
    let order = shuffled(n_nodes, rng);
    let mut edges = Vec::new();
    if n_nodes > 1 {
        for _ in 0..n_edges {
            let from = rng.below(n_nodes - 1);
            let to = (from + 1 + rng.below(span.max(1))).min(n_nodes - 1);
            edges.push(edge(order[from], order[to]));
        }
    }
    Dag::new(n_nodes, edges.iter()).unwrap_or_else(|_| empty(n_nodes))
}

/// A graph without edges.
pub(crate) fn empty(n_nodes: usize) -> Dag {
    match Dag::new(n_nodes, [].iter()) {
        Ok(dag) => dag,
        Err(_) => unreachable!("no edges, no cycle"),
    }
}

fn shuffled(n: usize, rng: &mut Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    for at in (1..n).rev() {
        order.swap(at, rng.below(at + 1));
    }
    order
}

/// Random runs over a graph's nodes, as serializability would have them (a transaction is a node).
pub(crate) fn task(n_nodes: usize, n_keys: usize, runs_a_key: usize, rng: &mut Rng) -> Task {
    let mut task = Task {
        n_nodes,
        runs: Vec::new(),
        pair_starts: Vec::new(),
        readers: Vec::new(),
        n_chains: n_nodes,
    };
    let mut n_pairs = 0;
    for _ in 0..n_keys {
        let n_runs = 2 + rng.below(runs_a_key);
        for at in 0..n_runs {
            task.pair_starts.push(n_pairs);
            n_pairs += (n_runs - at - 1) as u32;
            let n_readers = rng.below(4);
            let head = rng.below(n_nodes) as u32;
            task.runs.push(RunNodes {
                head_begin: head,
                head_commit: head,
                last_commit: rng.below(n_nodes) as u32,
                readers: task.readers.len() as u32,
                is_unread: n_readers == 0,
            });
            let readers = (0..n_readers).map(|_| rng.below(n_nodes) as u32);
            task.readers.extend(readers);
        }
    }
    task.pair_starts.push(n_pairs);
    task
}
