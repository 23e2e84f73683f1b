//! Both forms of reachability against a plain search, on graphs around the sizes of words and strips; and a closure that
//! loses a word or a clock that is late is caught.

use std::ops::Range;

use super::chains::Clocks;
use super::dag::Dag;
use super::dense::Dense;
use crate::edge::Edge;
use kingsnake_context::rng::Rng;

/// A random acyclic graph whose nodes fall into chains, in an order that is not the order of the nodes.
fn graph(n_nodes: usize, n_chains: usize, n_edges: usize, rng: &mut Rng) -> (Dag, Vec<Range<u32>>) {
    let length = n_nodes.div_ceil(n_chains.max(1)).max(1);
    let chains: Vec<Range<u32>> = (0..n_nodes)
        .step_by(length)
        .map(|start| start as u32..(start + length).min(n_nodes) as u32)
        .collect();
    // Positions on the chains, interleaved, are a topological order.
    let rank = |node: u32| (node as usize % length, node as usize / length);
    let mut edges = Vec::new();
    let mut push = |from: u32, to: u32| {
        edges.push(Edge::plain(from, to));
    };
    for chain in &chains {
        (chain.start + 1..chain.end).for_each(|node| push(node - 1, node));
    }
    for _ in 0..n_edges {
        let (a, b) = (rng.below(n_nodes) as u32, rng.below(n_nodes) as u32);
        if rank(a) < rank(b) {
            push(a, b);
        }
    }
    let dag = Dag::new(n_nodes, edges.iter()).expect("edges follow the ranks");
    (dag, chains)
}

/// What each of some nodes reaches, by a plain search.
fn searched(dag: &Dag, from: u32) -> Vec<bool> {
    let mut reached = vec![false; dag.n_nodes()];
    let mut stack = vec![from];
    while let Some(node) = stack.pop() {
        for &to in dag.successors(node) {
            if !std::mem::replace(&mut reached[to as usize], true) {
                stack.push(to);
            }
        }
    }
    reached
}

/// How many of the sampled pairs an engine gets wrong.
fn wrong(dag: &Dag, reaches: impl Fn(u32, u32) -> bool) -> usize {
    let step = (dag.n_nodes() / 50).max(1);
    let sources = (0..dag.n_nodes() as u32).step_by(step);
    sources
        .map(|from| {
            let truth = searched(dag, from);
            let nodes = 0..dag.n_nodes() as u32;
            nodes
                .filter(|&to| reaches(from, to) != truth[to as usize])
                .count()
        })
        .sum()
}

const SIZES: [usize; 12] = [0, 1, 2, 31, 63, 64, 65, 127, 129, 2047, 2048, 2049];

#[test]
fn dense_and_chains_agree_with_a_plain_search() {
    let mut rng = Rng::new(7);
    for n_nodes in SIZES {
        for (n_chains, n_edges) in [(1, 0), (3, n_nodes), (n_nodes, 2 * n_nodes), (7, 0)] {
            let (dag, chains) = graph(n_nodes, n_chains, n_edges, &mut rng);
            let dense = Dense::new(&dag);
            let clocks = Clocks::new(&dag, &chains);
            assert_eq!(
                wrong(&dag, |from, to| dense.reaches(from, to)),
                0,
                "{n_nodes} nodes"
            );
            assert_eq!(
                wrong(&dag, |from, to| clocks.reaches(from, to)),
                0,
                "{n_nodes} nodes"
            );
            let reversed = dag.reversed();
            assert_eq!(clocks.totals(), Dense::count_descendants(&reversed));
            assert_eq!(clocks.descending(&dag).totals(), dense.descendants());
        }
    }
}

#[test]
fn a_matrix_that_is_written_over_keeps_nothing_of_what_it_held() {
    let mut rng = Rng::new(9);
    for n_nodes in SIZES.into_iter().chain([4_500]) {
        let (crowded, _) = graph(n_nodes, 3, 4 * n_nodes, &mut rng);
        let (sparse, _) = graph(n_nodes, n_nodes, n_nodes, &mut rng);
        let mut dense = Dense::new(&crowded);
        dense.update(&sparse);
        assert_eq!(wrong(&sparse, |from, to| dense.reaches(from, to)), 0);
        assert_eq!(dense.descendants(), Dense::new(&sparse).descendants());
    }
}

#[test]
fn a_reduced_graph_reaches_the_same_and_needs_every_edge() {
    let mut rng = Rng::new(10);
    for n_nodes in SIZES {
        let (dag, _) = graph(n_nodes, 3, 6 * n_nodes, &mut rng);
        let dense = Dense::new(&dag);
        let reduced = dag.reduced(|from, to| dense.reaches(from, to));
        let again = Dense::new(&reduced);
        assert_eq!(wrong(&dag, |from, to| again.reaches(from, to)), 0);
        assert_eq!(again.descendants(), dense.descendants());
        for node in 0..n_nodes as u32 {
            let targets = reduced.successors(node);
            for &to in targets {
                assert!(dag.successors(node).contains(&to));
                assert!(!targets.iter().any(|&other| dense.reaches(other, to)));
            }
        }
        assert!(n_nodes < 100 || reduced.n_edges() < dag.n_edges());
    }
}

#[test]
fn a_graph_with_more_edges_is_the_graph_of_all_edges() {
    let mut rng = Rng::new(11);
    for n_nodes in [2, 64, 300] {
        let (dag, _) = graph(n_nodes, 3, n_nodes, &mut rng);
        let place = dag.places();
        let pair = |rng: &mut Rng| (rng.below(n_nodes) as u32, rng.below(n_nodes) as u32);
        let pairs: Vec<(u32, u32)> = (0..2 * n_nodes).map(|_| pair(&mut rng)).collect();
        let forward = |&&(from, to): &&(u32, u32)| place[from as usize] < place[to as usize];
        let new: Vec<Edge> = pairs
            .iter()
            .filter(forward)
            .map(|&(from, to)| Edge::plain(from, to))
            .collect();
        let with = dag.with(new.iter()).expect("edges follow the order");
        for node in 0..n_nodes as u32 {
            let own = new.iter().filter(|edge| edge.from == node);
            let known = dag.successors(node).iter().copied();
            let all: Vec<u32> = known.chain(own.map(|edge| edge.to)).collect();
            assert_eq!(with.successors(node), all);
        }
        let back = Edge::plain(dag.order()[n_nodes - 1], dag.order()[0]);
        let there = Edge::plain(dag.order()[0], dag.order()[n_nodes - 1]);
        assert!(dag.with([there, back].iter()).is_err());
    }
}

#[test]
fn lost_words_shifted_columns_and_wrong_clocks_are_caught() {
    let mut rng = Rng::new(8);
    for n_nodes in SIZES.into_iter().filter(|&n_nodes| n_nodes > 2) {
        let (dag, chains) = graph(n_nodes, 3, n_nodes, &mut rng);
        let mut dense = Dense::new(&dag);
        dense.lose_word();
        let mut clocks = Clocks::new(&dag, &chains);
        clocks.be_late();
        let mut shifted = Dense::new(&dag);
        shifted.shift_columns();
        let mut early = Clocks::new(&dag, &chains);
        early.be_early();
        assert_ne!(
            wrong(&dag, |from, to| shifted.reaches(from, to)),
            0,
            "{n_nodes} nodes"
        );
        assert_ne!(
            wrong(&dag, |from, to| early.reaches(from, to)),
            0,
            "{n_nodes} nodes"
        );
        assert_ne!(
            wrong(&dag, |from, to| dense.reaches(from, to)),
            0,
            "{n_nodes} nodes"
        );
        assert_ne!(
            wrong(&dag, |from, to| clocks.reaches(from, to)),
            0,
            "{n_nodes} nodes"
        );
    }
}

/// Clocks that followed edges one batch after the other, and whether they say that there is a cycle.
fn followed(dag: &Dag, chains: &[Range<u32>], batches: &[Vec<Edge>], late: bool) -> (Clocks, bool) {
    let mut clocks = Clocks::new(dag, chains);
    let mut more: Vec<Vec<u32>> = vec![Vec::new(); dag.n_nodes()];
    let mut is_acyclic = true;
    for batch in batches {
        for edge in batch {
            more[edge.from as usize].push(edge.to);
        }
        let moved = clocks.follow(dag, batch, |node| &more[node as usize]);
        is_acyclic &= moved.is_ok();
    }
    if late {
        clocks.be_late();
    }
    (clocks, is_acyclic)
}

#[test]
fn clocks_that_follow_edges_are_those_of_the_graph_with_them() {
    let mut rng = Rng::new(31);
    let (mut n_acyclic, mut n_cyclic, mut n_late) = (0, 0, 0);
    for case in 0..400 {
        let n_nodes = 8 + rng.below(120);
        let n_chains = 1 + rng.below(6);
        let (dag, chains) = graph(n_nodes, n_chains, n_nodes / 2, &mut rng);
        let places = dag.places();
        let mut random = || {
            let (a, b) = (rng.below(n_nodes) as u32, rng.below(n_nodes) as u32);
            // Every other case has edges that run backwards, and some of those close cycles.
            let is_forward = places[a as usize] < places[b as usize];
            if is_forward || case % 2 == 0 {
                Edge::plain(a, b)
            } else {
                Edge::plain(b, a)
            }
        };
        let batches: Vec<Vec<Edge>> = (0..3).map(|_| vec![random(), random()]).collect();
        let (clocks, is_acyclic) = followed(&dag, &chains, &batches, false);
        let whole = dag.with(batches.iter().flatten());
        assert_eq!(is_acyclic, whole.is_ok(), "{batches:?}");
        let Ok(whole) = whole else {
            n_cyclic += 1;
            continue;
        };
        n_acyclic += 1;
        let anew = Clocks::new(&whole, &chains);
        let differs =
            |clocks: &Clocks| (0..n_nodes as u32).any(|node| clocks.row(node) != anew.row(node));
        assert!(!differs(&clocks), "{batches:?}");
        n_late += usize::from(differs(&followed(&dag, &chains, &batches, true).0));
    }
    assert!(n_acyclic > 100 && n_cyclic > 50 && n_late > 100);
}
