//! Every kernel against its twin, every twin against a plain search, and lying twins against both.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kingsnake_context::budget::Budget;
use kingsnake_context::rng::Rng;
use kingsnake_graph::Edge;
use kingsnake_solver::prune::{Dag, Dense, Relatives, Task};

use super::hardware;
use crate::closure::Form;
use crate::cpu::Twins;
use crate::device::Rounds;
use crate::fault::{self, Fault};
use crate::hardware::{Hardware, Opening};
use crate::recording::Executor;
use crate::resident::{Csr, Options, Resident};
use crate::sample;
use crate::self_test::{Answers, ask, compare};
use crate::steps::Steps;

fn unlimited() -> Budget {
    Budget::unlimited()
}

/// A graph that may have cycles.
#[derive(Clone, Debug)]
struct Graph {
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl Graph {
    fn of(dag: &Dag) -> Self {
        Graph {
            starts: dag.starts().to_vec(),
            targets: dag.targets().to_vec(),
        }
    }

    fn random(n_nodes: usize, n_edges: usize, rng: &mut Rng) -> Self {
        let mut edges = BTreeSet::new();
        for _ in 0..n_edges {
            edges.insert((rng.below(n_nodes) as u32, rng.below(n_nodes) as u32));
        }
        let starts = (0..=n_nodes as u32)
            .map(|node| edges.range(..(node, 0)).count() as u32)
            .collect();
        Graph {
            starts,
            targets: edges.iter().map(|it| it.1).collect(),
        }
    }

    fn n_nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// The bits of each row, by a plain search from each node.
    fn searched(&self) -> Vec<Vec<u32>> {
        let search = |from: u32| {
            let mut reached = BTreeSet::new();
            let mut stack = vec![from];
            while let Some(node) = stack.pop() {
                let node = node as usize;
                for &to in &self.targets[self.starts[node] as usize..self.starts[node + 1] as usize]
                {
                    if reached.insert(to) {
                        stack.push(to);
                    }
                }
            }
            reached.into_iter().collect()
        };
        (0..self.n_nodes() as u32).map(search).collect()
    }
}

/// The columns of the bits of each row.
fn rows(matrix: &[u32], n_nodes: usize) -> Vec<Vec<u32>> {
    if n_nodes == 0 {
        return Vec::new();
    }
    let words = matrix.chunks_exact(matrix.len() / n_nodes);
    words
        .map(|row| {
            let bits = (0..row.len() as u32 * 32)
                .filter(|&column| row[column as usize / 32] >> (column % 32) & 1 == 1);
            bits.collect()
        })
        .collect()
}

/// The closure of a graph, and how many relatives each node has.
fn closure<E: Executor>(
    executor: E,
    graph: &Graph,
    steps: &Steps,
    options: Options,
) -> (Vec<u32>, Relatives, E) {
    let csr = Csr {
        starts: &graph.starts,
        targets: &graph.targets,
    };
    let mut resident = Resident::load(executor, options, csr, &unlimited()).unwrap();
    resident
        .close(steps, std::iter::empty(), &unlimited())
        .unwrap();
    let relatives = resident.relatives(&unlimited()).unwrap();
    let matrix = resident.matrix();
    let mut executor = resident.executor;
    executor.reset();
    (matrix, relatives, executor)
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

/// Ways to compute: a form, and bands of a few strips or one.
fn ways(n_nodes: usize) -> Vec<(Form, Option<u64>)> {
    let strip = (n_nodes.max(1) * 8 * 4) as u64;
    vec![
        (Form::Auto, None),
        (Form::Sweep, None),
        (Form::Sweep, Some(2 * strip)),
        (Form::Levels, None),
        (Form::Levels, Some(strip)),
        (Form::Warshall, None),
        (Form::Warshall, Some(3 * strip)),
    ]
}

#[test]
fn the_closure_is_what_its_twin_computes_and_what_a_search_finds() {
    let mut gpu = hardware("closure, warshall, estimate", Opening::default());
    for (name, dag) in dags() {
        let graph = Graph::of(&dag);
        let truth = graph.searched();
        for (form, most_band_bytes) in ways(dag.n_nodes()) {
            let options = Options {
                form,
                most_band_bytes,
                is_parallel: false,
            };
            let steps = Steps::all(&dag);
            let (twin, twin_relatives, _) = closure(Twins::new(), &graph, &steps, options);
            let (real, relatives, back) = closure(gpu, &graph, &steps, options);
            gpu = back;
            let what = format!("{name}, {form:?}, {most_band_bytes:?}");
            assert_eq!(rows(&twin, dag.n_nodes()), truth, "the twin: {what}");
            assert!(real == twin, "the kernel: {what}");
            assert_eq!(relatives, twin_relatives, "{what}");
            let counts = truth.iter().map(|row| row.len() as u32);
            assert_eq!(relatives.descendants, counts.collect::<Vec<_>>(), "{what}");
        }
    }
}

#[test]
fn warshall_closes_graphs_with_cycles() {
    let mut gpu = hardware("warshall with cycles", Opening::default());
    let mut rng = Rng::new(12);
    for (n_nodes, n_edges) in [
        (1, 1),
        (31, 40),
        (33, 60),
        (127, 150),
        (129, 400),
        (500, 600),
    ] {
        let graph = Graph::random(n_nodes, n_edges, &mut rng);
        let truth = graph.searched();
        let steps = Steps {
            nodes: (0..n_nodes as u32).collect(),
            ends: vec![n_nodes as u32],
        };
        for most_band_bytes in [None, Some((n_nodes * 8 * 4) as u64)] {
            let options = Options {
                form: Form::Warshall,
                most_band_bytes,
                is_parallel: false,
            };
            let (twin, _, _) = closure(Twins::new(), &graph, &steps, options);
            let (real, _, back) = closure(gpu, &graph, &steps, options);
            gpu = back;
            assert_eq!(rows(&twin, n_nodes), truth, "{n_nodes} nodes");
            assert!(real == twin, "{n_nodes} nodes");
        }
    }
}

/// Edges that keep a graph acyclic.
fn more_edges(dag: &Dag, n_edges: usize, rng: &mut Rng) -> Vec<Edge> {
    let order = dag.order();
    let mut pair = || {
        let (a, b) = (rng.below(order.len()), rng.below(order.len()));
        (a != b).then(|| sample::edge(order[a.min(b)], order[a.max(b)]))
    };
    (0..n_edges).filter_map(|_| pair()).collect()
}

/// Three rounds of a task with edges that come in between.
fn rounds<E: Executor>(
    executor: E,
    options: Options,
    task: &Task,
    edges: &[Vec<Edge>],
) -> (Vec<Answers>, Vec<u32>, E) {
    let dag = |upto: usize| Dag::new(task.n_nodes, edges[..=upto].iter().flatten()).unwrap();
    let mut it = Rounds::load(executor, options, task, &dag(0), &unlimited()).unwrap();
    let mut answers = Vec::new();
    for (round, new) in edges.iter().enumerate() {
        let new: &[Edge] = if round == 0 { &[] } else { new };
        it.close(&dag(round), new, &unlimited()).unwrap();
        let resident = &mut it.resident;
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
    let matrix = it.resident.matrix();
    let mut executor = it.resident.executor;
    executor.reset();
    (answers, matrix, executor)
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
    for n_more in [20, 2_000] {
        edges.push(more_edges(&dag, n_more, &mut rng));
    }
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
            for (form, most_band_bytes) in ways(n_nodes) {
                let options = Options {
                    form,
                    most_band_bytes,
                    is_parallel: false,
                };
                let (twin, twin_matrix, _) = rounds(Twins::new(), options, &task, &edges);
                let (real, matrix, back) = rounds(gpu, options, &task, &edges);
                gpu = back;
                let what = format!("{n_nodes} nodes, {form:?}, {most_band_bytes:?}");
                assert_eq!(difference(&real, &twin), None, "{what}");
                assert!(matrix == twin_matrix, "{what}");
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
    let (twin, _) = ask(Twins::new(), Options::default(), &task, &dag, &unlimited()).unwrap();
    assert!(twin.open.len() > 1 << 14, "{}", twin.open.len());
    let (real, _) = ask(gpu, Options::default(), &task, &dag, &unlimited()).unwrap();
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
    for (form, most_band_bytes) in ways(700) {
        let options = Options {
            form,
            most_band_bytes,
            is_parallel: false,
        };
        let (twin, twin_matrix, _) = rounds(Twins::new(), options, &task, &edges);
        let (real, matrix, back) = rounds(gpu, options, &task, &edges);
        gpu = back;
        assert_eq!(difference(&real, &twin), None, "{form:?}");
        assert!(matrix == twin_matrix);
    }
}

/// Whether a comparison of the adapter with the twins, one of which lies, finds a difference.
fn is_caught(fault: Fault, form: Form, gpu: Hardware) -> (bool, Hardware) {
    let (task, edges) = sample_rounds(600, 30, 5);
    let options = Options {
        form,
        ..Options::default()
    };
    let (real, matrix, gpu) = rounds(gpu, options, &task, &edges);
    fault::commit(Some(fault));
    let (twin, twin_matrix, _) = rounds(Twins::new(), options, &task, &edges);
    fault::commit(None);
    (real != twin || matrix != twin_matrix, gpu)
}

#[test]
fn every_lying_twin_is_caught() {
    let mut gpu = hardware("lying twins", Opening::default());
    for (fault, form) in [
        (Fault::ClosureForgetsTheEdgeItself, Form::Sweep),
        (Fault::ClosureForgetsTheEdgeItself, Form::Levels),
        (Fault::ClosureForgetsNewEdges, Form::Sweep),
        (Fault::WarshallSkipsAPivot, Form::Warshall),
        (Fault::WarshallLeavesThePanel, Form::Warshall),
        (Fault::PruneForgetsReaders, Form::Sweep),
        (Fault::PruneForcesWhatIsImplied, Form::Sweep),
        (Fault::EstimateLosesTheLastBit, Form::Sweep),
    ] {
        let (caught, back) = is_caught(fault, form, gpu);
        gpu = back;
        assert!(caught, "{fault:?} is not caught");
    }
}

#[test]
#[ignore = "a minute of processor time on software, and 2 GB"]
fn a_hundred_thousand_nodes_are_closed_in_ten_bands() {
    let mut rng = Rng::new(41);
    let dag = sample::dag(100_000, 150_000, 2_000, &mut rng);
    let gpu = hardware("100,000 nodes", Opening::default());
    let options = Options {
        most_band_bytes: Some(1 << 27),
        ..Options::default()
    };
    let graph = Csr {
        starts: dag.starts(),
        targets: dag.targets(),
    };
    let mut resident = Resident::load(gpu, options, graph, &unlimited()).unwrap();
    let steps = Steps::all(&dag);
    resident
        .close(&steps, std::iter::empty(), &unlimited())
        .unwrap();
    assert_eq!(resident.size().1, 10);
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
        assert!(passed.is_finished && passed.n_answers == 12, "{passed:?}");
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
