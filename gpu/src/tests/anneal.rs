//! Cooling on the kernels against the twins, bit by bit, and the twins against the definition.

use kingsnake_context::budget::Budget;
use kingsnake_context::rng::Rng;
use kingsnake_graph::cool::{Cooled, Cooling, NodeReads, weights};

use super::liar::{Liar, Lie};
use crate::anneal::cool_on;
use crate::cost;
use crate::cpu::Twins;

/// The lists of a node.
#[derive(Clone, Default)]
struct Lists {
    before: Vec<u32>,
    after: Vec<u32>,
    between: Vec<u32>,
    below: Vec<u32>,
    above: Vec<u32>,
    rest: Vec<u32>,
}

/// A line with constraints of every form, and known edges that its points respect.
pub(super) fn line(
    n_nodes: usize,
    n_constraints: usize,
    n_sweeps: usize,
    rng: &mut Rng,
) -> Cooling {
    let mut lists = vec![Lists::default(); n_nodes];
    for _ in 0..n_nodes {
        let (from, to) = (rng.below(n_nodes), rng.below(n_nodes));
        if from < to {
            lists[to].before.push(from as u32);
            lists[from].after.push(to as u32);
        }
    }
    let mut task = Cooling {
        seed: rng.number() as u32,
        side_starts: vec![0],
        ..Cooling::default()
    };
    for constraint in 0..n_constraints as u32 {
        let n_edges = if rng.chance(70) { 1 } else { rng.between(1, 4) };
        let mut node = || rng.below(n_nodes) as u32;
        let [u, v, w] = [node(), node(), node()];
        if n_edges == 1 && u != v && v != w && u != w {
            // v not between w and u: (u, v) or (v, w).
            lists[v as usize].between.extend([w, u]);
            lists[u as usize].below.extend([v, v, w]);
            lists[w as usize].above.extend([v, u, v]);
            push(&mut task, &[[u, v]], &[[v, w]]);
            continue;
        }
        let mut side = || {
            let edges = (0..n_edges).map(|_| [node(), node()]);
            edges.filter(|edge| edge[0] != edge[1]).collect::<Vec<_>>()
        };
        let (one, other) = (side(), side());
        push(&mut task, &one, &other);
        let mut touched: Vec<u32> = one.iter().chain(&other).flatten().copied().collect();
        touched.sort_unstable();
        touched.dedup();
        for id in touched {
            lists[id as usize].rest.push(constraint);
        }
    }
    for of in &lists {
        task.reads.push(append(of, &mut task.field));
    }
    let before = task.field.len() as u32;
    task.reads.push(NodeReads {
        before,
        ..NodeReads::default()
    });
    let step = u64::from(u32::MAX) / (n_nodes as u64 + 1);
    task.points = (0..n_nodes as u64)
        .map(|it| ((it + 1) * step) as u32)
        .collect();
    colour(&mut task);
    task.weights = (0..n_sweeps)
        .map(|it| weights(2.0 / (1.0 + it as f64)))
        .collect();
    task
}

fn push(task: &mut Cooling, one: &[[u32; 2]], other: &[[u32; 2]]) {
    for side in [one, other] {
        task.sides.extend_from_slice(side);
        task.side_starts.push(task.sides.len() as u32);
    }
}

fn append(of: &Lists, words: &mut Vec<u32>) -> NodeReads {
    let mut put = |list: &[u32]| {
        words.extend_from_slice(list);
        (words.len() - list.len()) as u32
    };
    NodeReads {
        before: put(&of.before),
        after: put(&of.after),
        between: put(&of.between),
        below: put(&of.below),
        above: put(&of.above),
        rest: put(&of.rest),
    }
}

pub(super) fn read_by(task: &Cooling, id: u32) -> Vec<u32> {
    let (own, next) = (task.reads[id as usize], task.reads[id as usize + 1]);
    let mut read = task.field[own.before as usize..own.rest as usize].to_vec();
    for &constraint in &task.field[own.rest as usize..next.before as usize] {
        let at = 2 * constraint as usize;
        let edges = task.side_starts[at] as usize..task.side_starts[at + 2] as usize;
        read.extend(task.sides[edges].iter().flatten().filter(|&&it| it != id));
    }
    read
}

fn colour(task: &mut Cooling) {
    let n_nodes = task.points.len();
    let mut colours: Vec<Vec<u32>> = Vec::new();
    let mut colour_of = vec![usize::MAX; n_nodes];
    for id in 0..n_nodes as u32 {
        let taken: Vec<usize> = read_by(task, id)
            .iter()
            .map(|&it| colour_of[it as usize])
            .collect();
        let free = (0..=colours.len())
            .find(|colour| !taken.contains(colour))
            .unwrap_or(0);
        colours.resize(colours.len().max(free + 1), Vec::new());
        colours[free].push(id);
        colour_of[id as usize] = free;
    }
    for colour in colours {
        task.movers.extend(colour);
        task.colour_ends.push(task.movers.len() as u32);
    }
}

pub(super) fn violated(task: &Cooling, points: &[u32]) -> u32 {
    let holds = |at: usize| {
        let edges = task.side_starts[at] as usize..task.side_starts[at + 1] as usize;
        let mut edges = task.sides[edges].iter();
        edges.all(|edge| points[edge[0] as usize] < points[edge[1] as usize])
    };
    let all = 0..task.n_constraints();
    all.filter(|at| !holds(2 * at) && !holds(2 * at + 1))
        .count() as u32
}

pub(super) fn is_forward(task: &Cooling, points: &[u32]) -> bool {
    (0..points.len()).all(|id| {
        let own = task.reads[id];
        let before = &task.field[own.before as usize..own.after as usize];
        before.iter().all(|&it| points[it as usize] < points[id])
    })
}

pub(super) fn on_twins(task: &Cooling) -> Cooled {
    cool_on(&mut Twins::new(), task, &Budget::unlimited(), &mut |_| true).unwrap()
}

/// What the definition says that the twins got wrong.
fn mistakes(task: &Cooling, cooled: &Cooled) -> Vec<&'static str> {
    let mut wrong = Vec::new();
    if !is_forward(task, &cooled.points) {
        wrong.push("a known edge runs backward");
    }
    if cooled.n_violated.first() != Some(&violated(task, &task.points)) {
        wrong.push("the first count");
    }
    if cooled.n_violated.iter().min() != Some(&violated(task, &cooled.points)) {
        wrong.push("the least count");
    }
    wrong
}

#[test]
fn cooling_keeps_known_edges_and_counts_what_is_violated() {
    let mut rng = Rng::new(21);
    for _ in 0..40 {
        let (n_nodes, n_constraints) = (rng.between(2, 60), rng.between(0, 300));
        let task = line(n_nodes, n_constraints, 6, &mut rng);
        let cooled = on_twins(&task);
        assert_eq!(mistakes(&task, &cooled), Vec::<&str>::new());
    }
}

#[test]
fn cooling_leaves_fewer_violated() {
    let mut rng = Rng::new(22);
    let task = line(300, 900, 40, &mut rng);
    let cooled = on_twins(&task);
    let (first, least) = (cooled.n_violated[0], violated(&task, &cooled.points));
    assert!(2 * least < first, "{first} violated before, {least} after");
    assert_eq!(cooled.n_moves, 40 * task.movers.len() as u64);
}

#[test]
fn a_place_is_as_likely_as_its_weight_says() {
    // One node between two that stand still: violated in the lower half of the line. At temperature 1 the upper half is e times as likely.
    let half = 1 << 31;
    let mut task = Cooling {
        points: vec![1, half, half + 5],
        field: vec![0, 1],
        side_starts: vec![0, 1, 2],
        sides: vec![[1, 2], [2, 0]],
        movers: vec![2],
        colour_ends: vec![1],
        weights: vec![weights(1.0)],
        ..Cooling::default()
    };
    let lists = |between, below| NodeReads {
        between,
        below,
        above: below,
        rest: below,
        ..NodeReads::default()
    };
    let end = NodeReads {
        before: 2,
        after: 2,
        ..lists(2, 2)
    };
    task.reads = vec![NodeReads::default(), NodeReads::default(), lists(0, 2), end];
    let upper = (0..20_000).filter(|&seed| {
        task.seed = seed;
        let mut twins = Twins::new();
        // `keep` would hide the move if it is worse, so that the point itself is looked at.
        let moved = crate::anneal::moved_on(&mut twins, &task);
        moved[2] > half
    });
    let share = upper.count() as f64 / 20_000.0;
    let expected = 1.0 / (1.0 + (-1.0_f64).exp());
    assert!((share - expected).abs() < 0.01, "{share}, not {expected}");
}

#[test]
fn lying_twins_are_noticed() {
    for lie in [
        Lie::AnnealLeavesBounds,
        Lie::AnnealForgetsTheRest,
        Lie::CountMissesASide,
    ] {
        let mut rng = Rng::new(23);
        let is_noticed = (0..20).any(|_| {
            let task = line(40, 200, 6, &mut rng);
            let truth = on_twins(&task);
            let mut liar = Liar::new(lie);
            let told = cool_on(&mut liar, &task, &Budget::unlimited(), &mut |_| true).unwrap();
            !mistakes(&task, &told).is_empty() || told.points != truth.points
        });
        assert!(is_noticed, "{lie:?}");
    }
}

#[test]
fn counters_are_what_the_formulas_say() {
    let mut rng = Rng::new(24);
    let task = line(200, 700, 20, &mut rng);
    let stats = on_twins(&task).device;
    let (sweeps, colours) = (20, task.colour_ends.len() as u64);
    let n = task.points.len() as u64;
    // Sizes are small, so nothing is split.
    let dispatches = sweeps * (colours + 2) + 2;
    assert_eq!(stats.dispatches, dispatches);
    let words = task.size().words_up();
    assert_eq!(stats.bytes_up, 4 * words + 32 * dispatches);
    assert_eq!(stats.bytes_down, 4 * (n + sweeps + 1));
    let items = |count: u64| count.div_ceil(64);
    let judged = items(task.n_constraints() as u64) + items(n);
    assert_eq!(
        stats.workgroups,
        sweeps * task.movers.len() as u64 + (sweeps + 1) * judged
    );
}

#[test]
fn a_device_pays_only_for_large_lines() {
    let mut rng = Rng::new(25);
    let small = line(200, 700, 60, &mut rng);
    assert!(cost::is_hopeless(cost::cooling_on_cpu(&small.size(), 1)));
    let mut large = line(20_000, 60_000, 1, &mut rng);
    large.weights = vec![weights(1.0); 600];
    let speed = cost::Speed::of_kind(crate::AdapterKind::Discrete);
    let (cpu, device) = (
        cost::cooling_on_cpu(&large.size(), 2),
        cost::cooling_on_device(&large.size(), speed),
    );
    assert!(cost::pays(device, cpu), "{device} against {cpu}");
}

#[cfg(feature = "wgpu")]
#[test]
fn the_kernels_cool_bit_by_bit_as_the_twins_do() {
    use crate::hardware::Opening;
    let mut hardware = super::hardware("anneal", Opening::default());
    let mut rng = Rng::new(26);
    for (n_nodes, n_constraints) in [
        (1, 0),
        (2, 3),
        (30, 100),
        (200, 1_500),
        (1_500, 6_000),
        (40, 4_000),
    ] {
        use crate::recording::Executor;
        let task = line(n_nodes, n_constraints, 5, &mut rng);
        let twins = on_twins(&task);
        hardware.reset();
        let kernels = cool_on(&mut hardware, &task, &Budget::unlimited(), &mut |_| true).unwrap();
        assert_eq!(kernels.n_violated, twins.n_violated, "{n_nodes} nodes");
        assert_eq!(kernels.points, twins.points, "{n_nodes} nodes");
        assert_eq!(kernels.device.dispatches, twins.device.dispatches);
    }
}
