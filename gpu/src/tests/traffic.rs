//! The counters against the formulas of docs/gpu.md, kernel by kernel, exactly.

use kingsnake_context::budget::Budget;
use kingsnake_context::rng::Rng;
use kingsnake_graph::Edge;
use kingsnake_solver::prune::{Dag, Task};

use crate::closure::Form;
use crate::cpu::Twins;
use crate::matrix::Cut;
use crate::pairs::Judge;
use crate::places::Places;
use crate::recording::{Executor, Traffic};
use crate::resident::{ClosureOptions, Resident};
use crate::round::Round;
use crate::sample;

/// The variables of the formulas, named as in docs/gpu.md.
struct Sizes {
    n: u64,
    cut: Cut,
    strip_words: u64,
    bands: u64,
    runs: u64,
    readers: u64,
    /// The runs of each key.
    keys: Vec<u64>,
    options: ClosureOptions,
}

/// Workgroups of 256 threads for this many items, and their threads.
fn full(items: u64) -> (u64, u64) {
    (items.div_ceil(256), items.next_multiple_of(256))
}

impl Sizes {
    fn strips(&self) -> u64 {
        self.cut.n_strips().into()
    }

    /// The words of a row.
    fn w(&self) -> u64 {
        self.strips() * self.strip_words
    }

    /// The runs, in the places that nodes got.
    fn runs_up(&self) -> u64 {
        32 * self.runs + 4 * (self.runs + 1 + self.readers)
    }

    /// `closure`.
    fn close(&self, round: &Round, is_first: bool) -> Traffic {
        let levels = 0..round.n_levels();
        let rows = round.steps.len() as u64;
        let lanes = 256 / (self.strip_words / 4);
        let (mut busy, mut in_hand, mut groups) = (0, 0, 0);
        for level in levels.clone() {
            let all = round.level(level).len() as u64;
            groups += all.div_ceil(lanes);
            for &limit in &self.cut.limits {
                let rows = round.level(level).map(|at| round.steps[at as usize]);
                let rows = rows.filter(|&row| row < limit).count() as u64;
                busy += rows;
                in_hand += match self.options.form {
                    Form::Levels => all.next_multiple_of(lanes),
                    _ => rows.next_multiple_of(lanes),
                };
            }
        }
        let (dispatches, workgroups) = match self.options.form {
            Form::Levels => (self.bands * levels.len() as u64, self.strips() * groups),
            _ => (self.bands, self.strips()),
        };
        let graph = 4 * (2 * rows + 1 + round.targets.len() as u64 + levels.len() as u64);
        let runs = if is_first { self.runs_up() } else { 0 };
        Traffic {
            bytes_up: runs + 12 * self.strips() + graph + 32 * dispatches,
            dispatches,
            workgroups,
            busy: busy * self.strip_words,
            turns: in_hand * self.strip_words,
            ..Traffic::default()
        }
    }

    /// A kernel of `prune` with one thread per pair.
    fn over_pairs(&self, pairs: u64) -> Traffic {
        let (groups, threads) = full(pairs);
        Traffic {
            bytes_up: 32 * self.bands,
            dispatches: self.bands,
            workgroups: self.bands * groups,
            busy: self.bands * pairs,
            turns: self.bands * threads,
            ..Traffic::default()
        }
    }

    /// `judge_rows`.
    fn over_runs(&self) -> Traffic {
        let keys = self.keys.iter();
        Traffic {
            bytes_up: 32 * self.bands,
            dispatches: self.bands,
            workgroups: self.bands * self.runs,
            busy: self.bands * keys.clone().map(|n| n * n).sum::<u64>(),
            turns: self.bands * keys.map(|n| n * n.next_multiple_of(64)).sum::<u64>(),
            ..Traffic::default()
        }
    }

    /// Judges this many pairs, after the first round or one that forced some edges, and forces this many.
    fn judge(&self, pairs: u64, before: Option<u64>, forced: u64) -> Traffic {
        let mut both = match self.options.judge {
            Judge::Rows => self.over_runs(),
            _ => self.over_pairs(pairs),
        };
        let along = before.map_or(2 * pairs, |forced| (2 * forced + 1024).min(2 * pairs));
        both.add(self.emit(pairs, along, forced));
        both
    }

    /// So many edges are fetched along with the counters, if they have room, and the rest after them.
    fn emit(&self, pairs: u64, along: u64, edges: u64) -> Traffic {
        let along = along.min(1 << 14);
        Traffic {
            bytes_down: 256 + 8 * along.max(edges),
            round_trips: 1 + u64::from(edges > along),
            ..self.over_pairs(pairs)
        }
    }

    fn open(open: u64) -> Traffic {
        Traffic {
            bytes_down: 4 * open,
            round_trips: 1,
            ..Traffic::default()
        }
    }

    fn estimate(&self) -> Traffic {
        let (groups, threads) = full(self.n);
        Traffic {
            bytes_up: 32 * self.bands,
            bytes_down: 8 * self.n,
            dispatches: self.bands,
            workgroups: self.strips() * groups,
            busy: self.cut.limits.iter().map(|&it| u64::from(it)).sum::<u64>() * self.strip_words,
            turns: threads * self.w(),
            round_trips: 1,
        }
    }
}

/// How many runs each key has.
fn keys(task: &Task) -> Vec<u64> {
    let mut keys = vec![0];
    for starts in task.pair_starts.windows(2) {
        *keys.last_mut().unwrap() += 1;
        if starts[0] == starts[1] {
            keys.push(0);
        }
    }
    keys
}

/// The counts since the last call.
fn counted(now: Traffic, seen: &mut Traffic) -> Traffic {
    let before = std::mem::replace(seen, now);
    Traffic {
        bytes_up: now.bytes_up - before.bytes_up,
        bytes_down: now.bytes_down - before.bytes_down,
        dispatches: now.dispatches - before.dispatches,
        workgroups: now.workgroups - before.workgroups,
        busy: now.busy - before.busy,
        turns: now.turns - before.turns,
        round_trips: now.round_trips - before.round_trips,
    }
}

/// Two rounds, and what is asked at the end. Every step must take what the formulas say.
fn expect_formulas<E: Executor>(
    executor: E,
    options: ClosureOptions,
    task: &Task,
    first: &Dag,
    new: &[Edge],
) -> E {
    let budget = Budget::unlimited();
    let old = (0..first.n_nodes() as u32).flat_map(|from| {
        let to = first.successors(from).iter();
        to.map(move |&to| sample::edge(from, to))
    });
    let all: Vec<Edge> = old.chain(new.iter().copied()).collect();
    let second = Dag::new(first.n_nodes(), all.iter()).unwrap();
    let mut it = Resident::new(executor, options, first, Some(task)).unwrap();
    let cut = Resident::cut(&it.executor, options, first.n_nodes()).unwrap();
    // Graphs of these sizes have the narrowest strips.
    let of = Sizes {
        n: first.n_nodes() as u64,
        strip_words: 8,
        bands: cut.n_bands().into(),
        cut,
        runs: task.runs.len() as u64,
        readers: task.readers.len() as u64,
        keys: keys(task),
        options,
    };
    let what = format!("{} nodes, {options:?}", of.n);
    let mut seen = Traffic::default();
    let now = &mut seen;
    let mut pairs = u64::from(task.n_pairs());
    let mut forced = None;
    for (dag, new) in [(first, &[][..]), (&second, new)] {
        it.close(dag, new, &budget).unwrap();
        let places = it.places.clone().unwrap();
        let round = if new.is_empty() {
            Round::first(dag, &places)
        } else {
            Round::later(dag, new, &places)
        };
        let judgement = it.judge(&budget).unwrap();
        let mut all = of.close(&round, new.is_empty());
        let n_forced = judgement.forced.len() as u64;
        all.add(of.judge(pairs, forced.replace(n_forced), n_forced));
        assert_eq!(counted(it.traffic, now), all, "a round, {what}");
        pairs = judgement.n_open;
    }
    assert!(pairs > 0, "nothing is open: {what}");
    it.open(&budget).unwrap();
    assert_eq!(counted(it.traffic, now), Sizes::open(pairs));
    let implied = it.implied(&budget).unwrap().len() as u64;
    let foreseen = of.emit(pairs, 2 * pairs, implied);
    assert_eq!(counted(it.traffic, now), foreseen, "implied, {what}");
    it.relatives(&budget).unwrap();
    let foreseen = of.estimate();
    assert_eq!(counted(it.traffic, now), foreseen, "estimate, {what}");
    it.executor
}

/// Runs every graph in every form, whole and in bands.
fn expect_formulas_of_all<E: Executor>(mut executor: E) {
    let mut rng = Rng::new(31);
    for (n_nodes, n_edges, span) in [(100, 300, 10), (500, 1_500, 500), (900, 2_000, 3)] {
        let dag = sample::dag(n_nodes, n_edges, span, &mut rng);
        let task = sample::task(n_nodes, 25, 12, &mut rng);
        let order = Places::new(&dag).nodes;
        let new: Vec<Edge> = (0..7)
            .map(|at| sample::edge(order[at], order[n_nodes - 1 - at]))
            .collect();
        for (form, judge) in [(Form::Sweep, Judge::Pairs), (Form::Levels, Judge::Rows)] {
            for most_band_bytes in [None, Some((n_nodes * 32 * 2) as u64)] {
                let options = ClosureOptions {
                    most_band_bytes,
                    form,
                    judge,
                };
                executor = expect_formulas(executor, options, &task, &dag, &new);
                executor.reset();
            }
        }
    }
}

#[test]
fn bytes_dispatches_and_workgroups_are_what_the_formulas_say() {
    expect_formulas_of_all(Twins::new());
}

#[cfg(feature = "wgpu")]
#[test]
fn they_are_on_a_device_too() {
    let opening = crate::hardware::Opening::default();
    expect_formulas_of_all(super::hardware("the counters", opening));
}
