//! Every kernel against its twin, every twin against a plain search, and lying twins against both.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kingsnake_context::budget::Budget;
use kingsnake_context::rng::Rng;
use kingsnake_graph::Edge;
use kingsnake_solver::prune::{Dag, Dense, Relatives, Task};

use super::hardware;
use super::liar::{Liar, Lie};
use crate::closure::Form;
use crate::cpu::Twins;
use crate::hardware::{Hardware, Opening};
use crate::pairs::Judge;
use crate::places::Places;
use crate::recording::Executor;
use crate::resident::{ClosureOptions, Resident};
use crate::sample;
use crate::self_test::{Answers, ask, compare};

fn unlimited() -> Budget {
    Budget::unlimited()
}

/// The nodes that each node reaches, by a plain search from each.
fn searched(dag: &Dag) -> Vec<Vec<u32>> {
    let search = |from: u32| {
        let mut reached = BTreeSet::new();
        let mut stack = vec![from];
        while let Some(node) = stack.pop() {
            for &to in dag.successors(node) {
                if reached.insert(to) {
                    stack.push(to);
                }
            }
        }
        reached.into_iter().collect()
    };
    (0..dag.n_nodes() as u32).map(search).collect()
}

/// The closure of a graph, and how many relatives each node has.
fn closure<E: Executor>(
    executor: E,
    dag: &Dag,
    options: ClosureOptions,
) -> (Vec<Vec<u32>>, Relatives, E) {
    let mut resident = Resident::new(executor, options, dag, None).unwrap();
    resident.close(dag, &[], &unlimited()).unwrap();
    let relatives = resident.relatives(&unlimited()).unwrap();
    let reached = resident.reached();
    let mut executor = resident.executor;
    executor.reset();
    (reached, relatives, executor)
}

/// The graphs of the tests: name and graph.
fn dags() -> Vec<(&'static str, Dag)> {
    let mut rng = Rng::new(11);
    let mut dag = |n_nodes, n_edges, span| sample::dag(n_nodes, n_edges, span, &mut rng);
    vec![
        ("empty", dag(0, 0, 1)),
        ("one node", dag(1, 0, 1)),
        ("31 nodes", dag(31, 80, 31)),
        ("32 nodes", dag(32, 80, 32)),
        ("33 nodes", dag(33, 80, 33)),
        ("no edges", dag(100, 0, 1)),
        ("deep", dag(700, 2_800, 2)),
        ("wide", dag(1_200, 1_500, 1_200)),
        ("random", dag(900, 3_600, 300)),
        ("dense", dag(257, 8_000, 257)),
    ]
}

/// Ways to compute: forms of the closure, bands of a few strips or one, and both ways to judge.
fn ways(n_nodes: usize) -> Vec<ClosureOptions> {
    let strip = (n_nodes.max(1) * 8 * 4) as u64;
    let way = |form, most_band_bytes, judge| ClosureOptions {
        most_band_bytes,
        form,
        judge,
    };
    vec![
        way(Form::Auto, None, Judge::Auto),
        way(Form::Sweep, None, Judge::Pairs),
        way(Form::Sweep, Some(2 * strip), Judge::Rows),
        way(Form::Levels, None, Judge::Rows),
        way(Form::Levels, Some(strip), Judge::Pairs),
    ]
}

#[test]
fn the_closure_is_what_its_twin_computes_and_what_a_search_finds() {
    let mut gpu = hardware("closure, estimate", Opening::default());
    for (name, dag) in dags() {
        let truth = searched(&dag);
        for options in ways(dag.n_nodes()) {
            let (twin, twin_relatives, _) = closure(Twins::new(), &dag, options);
            let (real, relatives, back) = closure(gpu, &dag, options);
            gpu = back;
            let what = format!("{name}, {options:?}");
            assert_eq!(twin, truth, "the twin: {what}");
            assert!(real == truth, "the kernel: {what}");
            assert_eq!(relatives, twin_relatives, "{what}");
            let counts = truth.iter().map(|row| row.len() as u32);
            assert_eq!(relatives.descendants, counts.collect::<Vec<_>>(), "{what}");
        }
    }
}

/// Whether there are paths between pairs of nodes, as an executor answers.
fn probed<E: Executor>(
    executor: E,
    dag: &Dag,
    asked: &[(u32, u32)],
    options: ClosureOptions,
) -> (Vec<bool>, E) {
    let mut resident = Resident::new(executor, options, dag, None).unwrap();
    resident.close(dag, &[], &unlimited()).unwrap();
    let answers = resident.reaches(asked, &unlimited()).unwrap();
    let mut executor = resident.executor;
    executor.reset();
    (answers, executor)
}

#[test]
fn questions_about_paths_are_answered_as_a_search_answers_them() {
    let mut gpu = hardware("probe", Opening::default());
    let mut rng = Rng::new(5);
    let (mut n_paths, mut n_lies) = (0, 0);
    for (name, dag) in dags().into_iter().filter(|it| it.1.n_nodes() > 0) {
        let reached = searched(&dag);
        let mut node = || rng.below(dag.n_nodes()) as u32;
        let asked: Vec<(u32, u32)> = (0..777).map(|_| (node(), node())).collect();
        let truth = asked
            .iter()
            .map(|&(from, to)| reached[from as usize].binary_search(&to).is_ok());
        let truth: Vec<bool> = truth.collect();
        n_paths += truth.iter().filter(|it| **it).count();
        for options in ways(dag.n_nodes()) {
            let (twin, _) = probed(Twins::new(), &dag, &asked, options);
            let (real, back) = probed(gpu, &dag, &asked, options);
            gpu = back;
            assert_eq!(twin, truth, "the twin: {name}, {options:?}");
            assert_eq!(real, truth, "the kernel: {name}, {options:?}");
        }
        let liar = Liar::new(Lie::ProbeSwapsTheEnds);
        let (lies, _) = probed(liar, &dag, &asked, ClosureOptions::default());
        n_lies += usize::from(lies != truth);
    }
    assert!(
        n_paths > 500 && n_lies > 3,
        "{n_paths} paths, {n_lies} lies"
    );
}

/// Edges that keep a graph acyclic, in an order of its nodes.
fn more_edges(order: &[u32], n_edges: usize, rng: &mut Rng) -> Vec<Edge> {
    let mut pair = || {
        let (a, b) = (rng.below(order.len()), rng.below(order.len()));
        (a != b).then(|| sample::edge(order[a.min(b)], order[a.max(b)]))
    };
    (0..n_edges).filter_map(|_| pair()).collect()
}

/// Three rounds of a task with edges that come in between.
fn rounds<E: Executor>(
    executor: E,
    options: ClosureOptions,
    task: &Task,
    edges: &[Vec<Edge>],
) -> (Vec<Answers>, Vec<Vec<u32>>, E) {
    let dag = |upto: usize| Dag::new(task.n_nodes, edges[..=upto].iter().flatten()).unwrap();
    let mut resident = Resident::new(executor, options, &dag(0), Some(task)).unwrap();
    let mut answers = Vec::new();
    for (round, new) in edges.iter().enumerate() {
        let new: &[Edge] = if round == 0 { &[] } else { new };
        resident.close(&dag(round), new, &unlimited()).unwrap();
        let mut judgement = resident.judge(&unlimited()).unwrap();
        // Where there are more than have room, it is open which are named.
        if judgement.n_violations > judgement.violations.len() as u64 {
            judgement.violations.clear();
        }
        answers.push(Answers {
            judgement,
            open: resident.open(&unlimited()).unwrap(),
            implied: resident.implied(&unlimited()).unwrap(),
            relatives: resident.relatives(&unlimited()).unwrap(),
        });
    }
    let reached = resident.reached();
    let mut executor = resident.executor;
    executor.reset();
    (answers, reached, executor)
}

/// The first difference between the answers of two engines, in few words.
fn difference(real: &[Answers], twin: &[Answers]) -> Option<String> {
    let rounds = real.iter().zip(twin).enumerate();
    let mut wrong = rounds.flat_map(|(round, (real, twin))| {
        let (a, b) = (&real.judgement, &twin.judgement);
        let parts = [
            ("forced", a.forced == b.forced),
            ("open", a.n_open == b.n_open && real.open == twin.open),
            ("n_violations", a.n_violations == b.n_violations),
            ("violations", a.violations == b.violations),
            ("implied", real.implied == twin.implied),
            ("relatives", real.relatives == twin.relatives),
        ];
        let wrong = parts.into_iter().filter(|it| !it.1);
        wrong.map(move |(what, _)| format!("round {round}: {what}"))
    });
    wrong.next()
}

/// A task and the edges of three rounds.
fn sample_rounds(n_nodes: usize, n_keys: usize, seed: u64) -> (Task, Vec<Vec<Edge>>) {
    let mut rng = Rng::new(seed);
    let dag = sample::dag(n_nodes, 2 * n_nodes, n_nodes / 3 + 1, &mut rng);
    let task = sample::task(n_nodes, n_keys, 20, &mut rng);
    let from = (0..n_nodes as u32).flat_map(|from| {
        let edges = dag.successors(from).iter();
        edges.map(move |&to| sample::edge(from, to))
    });
    let mut edges = vec![from.collect::<Vec<_>>()];
    // A few edges along the order that places have, then many along another, which moves nodes.
    let along = &Places::new(&dag).nodes;
    edges.push(more_edges(along, 20, &mut rng));
    let known: Vec<Edge> = edges.concat();
    let all = Dag::new(n_nodes, known.iter()).unwrap();
    edges.push(more_edges(all.order(), 2_000, &mut rng));
    (task, edges)
}

#[test]
fn rounds_are_what_the_twins_find() {
    for plain in [false, true] {
        let name = if plain {
            "prune without subgroups"
        } else {
            "prune"
        };
        let opening = Opening {
            plain,
            ..Opening::default()
        };
        let mut gpu = hardware(name, opening);
        for (n_nodes, n_keys, seed) in [(2, 1, 1), (33, 3, 2), (600, 30, 3), (1_100, 120, 4)] {
            let (task, edges) = sample_rounds(n_nodes, n_keys, seed);
            let all = Dag::new(n_nodes, edges.iter().flatten()).unwrap();
            let truth = searched(&all);
            for options in ways(n_nodes) {
                let (twin, twin_matrix, _) = rounds(Twins::new(), options, &task, &edges);
                let (real, matrix, back) = rounds(gpu, options, &task, &edges);
                gpu = back;
                let what = format!("{n_nodes} nodes, {options:?}");
                assert_eq!(difference(&real, &twin), None, "{what}");
                assert!(matrix == truth && twin_matrix == truth, "{what}");
                if n_nodes > 500 {
                    let first = &twin[0];
                    assert!(!first.judgement.forced.is_empty());
                    assert!(first.judgement.n_violations > 0);
                    assert!(!first.open.is_empty() && !first.implied.is_empty());
                    assert!(twin[2].open.len() < first.open.len());
                }
            }
        }
    }
}

#[test]
fn lists_that_outgrow_their_room_are_listed_again() {
    let gpu = hardware("prune with growing lists", Opening::default());
    let mut rng = Rng::new(21);
    let dag = sample::dag(400, 300, 400, &mut rng);
    let task = sample::task(400, 40, 90, &mut rng);
    let (twin, _) = ask(
        Twins::new(),
        ClosureOptions::default(),
        &task,
        &dag,
        &unlimited(),
    )
    .unwrap();
    assert!(twin.open.len() > 1 << 14, "{}", twin.open.len());
    let (real, _) = ask(gpu, ClosureOptions::default(), &task, &dag, &unlimited()).unwrap();
    assert_eq!(difference(&[real], &[twin]), None);
}

#[test]
fn dispatches_that_are_split_compute_the_same() {
    let opening = Opening {
        work: Some(20_000),
        ..Opening::default()
    };
    let mut gpu = hardware("split dispatches", opening);
    let (task, edges) = sample_rounds(700, 60, 9);
    for options in ways(700) {
        let (twin, twin_matrix, _) = rounds(Twins::new(), options, &task, &edges);
        let (real, matrix, back) = rounds(gpu, options, &task, &edges);
        gpu = back;
        assert_eq!(difference(&real, &twin), None, "{options:?}");
        assert!(matrix == twin_matrix);
    }
}

/// Whether a comparison of the adapter with the twins, one of which lies, finds a difference.
fn is_caught(lie: Lie, form: Form, judge: Judge, gpu: Hardware) -> (bool, Hardware) {
    let (task, edges) = sample_rounds(600, 30, 5);
    let options = ClosureOptions {
        form,
        judge,
        ..ClosureOptions::default()
    };
    let (real, matrix, gpu) = rounds(gpu, options, &task, &edges);
    let (twin, twin_matrix, _) = rounds(Liar::new(lie), options, &task, &edges);
    (real != twin || matrix != twin_matrix, gpu)
}

#[test]
fn every_lying_twin_is_caught() {
    let mut gpu = hardware("lying twins", Opening::default());
    for (lie, form, judge) in [
        (Lie::ClosureLosesBits, Form::Sweep, Judge::Pairs),
        (Lie::ClosureLosesBits, Form::Levels, Judge::Pairs),
        (Lie::ClosureForgetsAnEdge, Form::Sweep, Judge::Pairs),
        (Lie::PruneForgetsReaders, Form::Sweep, Judge::Pairs),
        (Lie::PruneForgetsReaders, Form::Sweep, Judge::Rows),
        (Lie::PruneForcesWhatIsImplied, Form::Sweep, Judge::Pairs),
        (Lie::JudgeRowsSwapsTheWay, Form::Sweep, Judge::Rows),
        (Lie::EstimateLosesTheLastBit, Form::Sweep, Judge::Pairs),
    ] {
        let (caught, back) = is_caught(lie, form, judge, gpu);
        gpu = back;
        assert!(caught, "{lie:?} is not caught");
    }
}

#[test]
#[ignore = "a minute of processor time on software, and 2 GB"]
fn a_hundred_thousand_nodes_are_closed_in_six_bands() {
    let mut rng = Rng::new(41);
    let dag = sample::dag(100_000, 150_000, 2_000, &mut rng);
    let gpu = hardware("100,000 nodes", Opening::default());
    let options = ClosureOptions {
        most_band_bytes: Some(1 << 27),
        ..ClosureOptions::default()
    };
    let mut resident = Resident::new(gpu, options, &dag, None).unwrap();
    resident.close(&dag, &[], &unlimited()).unwrap();
    assert_eq!(resident.size().1, 6);
    let relatives = resident.relatives(&unlimited()).unwrap();
    assert!(relatives.descendants == Dense::count_descendants(&dag));
    assert!(relatives.ancestors == Dense::count_descendants(&dag.reversed()));
}

#[test]
fn the_self_test_passes() {
    drop(hardware("self-test", Opening::default()));
    let fit = crate::adapters()
        .into_iter()
        .filter(|it| it.unfit.is_none());
    for about in fit {
        let passed = compare(&about, &unlimited());
        let passed = passed.unwrap_or_else(|why| panic!("{about:?}: {why}"));
        assert!(passed.is_finished && passed.n_answers == 8, "{passed:?}");
    }
}

#[test]
fn a_self_test_without_time_is_not_finished_and_not_failed() {
    drop(hardware("self-test without time", Opening::default()));
    let late = unlimited().with_timeout(Instant::now(), Duration::ZERO);
    let fit = crate::adapters()
        .into_iter()
        .filter(|it| it.unfit.is_none());
    for about in fit {
        let test = compare(&about, &late).expect("no answer was wrong");
        assert!(!test.is_finished && test.n_answers == 0, "{test:?}");
    }
}
