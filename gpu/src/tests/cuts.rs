//! How the matrix is cut, and which rows a round computes.

use kingsnake_context::rng::Rng;
use kingsnake_solver::prune::Dag;

use crate::cpu::Twins;
use crate::matrix::{Band, Cut};
use crate::places::Places;
use crate::sample;
use crate::steps::Steps;

#[test]
fn strips_cover_the_columns_and_bands_keep_the_limit() {
    for n_nodes in [0, 1, 31, 32, 33, 255, 256, 257, 5_000, 32_000] {
        for limit in [1 << 27, 1 << 31] {
            let cut = Cut::new(n_nodes, limit).unwrap();
            let columns = u64::from(cut.n_strips()) << (5 + cut.strip_shift);
            assert!(columns >= n_nodes as u64, "{cut:?}");
            let mut twins = Twins::new();
            let bands = cut.allocate(&mut twins).unwrap();
            let mut sizes = bands.iter().map(|band| 4 * cut.band_words(band));
            assert!(sizes.all(|bytes| bytes <= limit), "{cut:?}");
            let strips: Vec<usize> = bands.iter().flat_map(Band::strips).collect();
            assert_eq!(strips, (0..cut.limits.len()).collect::<Vec<_>>());
            for (strip, &rows) in cut.limits.iter().enumerate() {
                let last = ((strip + 1) << (5 + cut.strip_shift)).min(n_nodes);
                assert!(rows as usize >= last, "{cut:?}");
            }
        }
    }
}

#[test]
fn a_hundred_thousand_nodes_take_three_quarters_of_a_gigabyte_and_six_small_bindings() {
    let cut = Cut::new(100_000, 1 << 27).unwrap();
    assert_eq!(cut.bytes() / 10_000_000, 77);
    assert_eq!(cut.n_bands(), 6);
    assert_eq!(Cut::new(100_000, 1 << 31).unwrap().n_bands(), 1);
}

#[test]
fn a_strip_that_no_buffer_holds_is_refused() {
    assert!(Cut::new(1_000, 1_000).is_err());
    assert!(Cut::new(usize::MAX, 1 << 31).is_err());
}

/// Every successor that is computed stands in an earlier level.
fn expect_levels(dag: &Dag, steps: &Steps) {
    let mut level_of = vec![None; dag.n_nodes()];
    for level in 0..steps.ends.len() {
        let range = steps.level(level);
        for &node in &steps.nodes[range.start as usize..range.end as usize] {
            assert_eq!(level_of[node as usize].replace(level), None);
        }
    }
    for &node in &steps.nodes {
        for &to in dag.successors(node) {
            assert!(level_of[to as usize] < level_of[node as usize]);
        }
    }
}

#[test]
fn levels_follow_the_edges() {
    let mut rng = Rng::new(3);
    for (n_nodes, n_edges, span) in [(0, 0, 1), (1, 0, 1), (50, 200, 50), (200, 400, 3)] {
        let dag = sample::dag(n_nodes, n_edges, span, &mut rng);
        let steps = Steps::all(&dag);
        assert_eq!(steps.nodes.len(), n_nodes);
        expect_levels(&dag, &steps);
        if n_nodes > 0 {
            let above = Steps::above(&dag, [0].into_iter());
            expect_levels(&dag, &above);
            assert!(above.nodes.contains(&0));
            assert!(above.nodes.len() <= n_nodes);
        }
    }
}

#[test]
fn places_follow_the_edges_and_fit_until_an_edge_goes_far_back() {
    let mut rng = Rng::new(5);
    let dag = sample::dag(4_000, 6_000, 40, &mut rng);
    let places = Places::new(&dag);
    for node in 0..4_000 {
        for &to in dag.successors(node) {
            assert!(places.of_node[node as usize] < places.of_node[to as usize]);
        }
    }
    let cut = Cut::new(4_000, 1 << 31).unwrap();
    assert!(places.fit(&dag, &cut));
    let with = |from: u32, to: u32| {
        let edge = sample::edge(places.nodes[from as usize], places.nodes[to as usize]);
        Dag::new(4_000, [edge].iter()).unwrap()
    };
    assert!(places.fit(&with(300, 200), &cut));
    assert!(!places.fit(&with(3_900, 100), &cut));
}
