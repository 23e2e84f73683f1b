//! The counters against the formulas of docs/gpu.md, kernel by kernel, exactly.

use kingsnake_context::budget::Budget;
use kingsnake_context::rng::Rng;
use kingsnake_graph::Edge;
use kingsnake_solver::prune::{Dag, Task};

use crate::closure::Form;
use crate::cpu::Twins;
use crate::device::Rounds;
use crate::recording::{Executor, Traffic};
use crate::resident::Options;
use crate::sample;
use crate::steps::Steps;

/// What the formulas are made of, under the names that docs/gpu.md gives them.
struct Sizes {
    n: u64,
    m: u64,
    strips: u64,
    strip_words: u64,
    bands: u64,
    runs: u64,
    readers: u64,
    form: Form,
}

/// The rows that a closure computes: how many there are in each level.
type Levels = Vec<u64>;

fn levels(steps: &Steps) -> Levels {
    let all = 0..steps.ends.len();
    all.map(|level| steps.level(level).len() as u64).collect()
}

/// Workgroups of 256 threads for so many items, and their threads.
fn full(items: u64) -> (u64, u64) {
    (items.div_ceil(256), items.next_multiple_of(256))
}

impl Sizes {
    /// The words of a row.
    fn w(&self) -> u64 {
        self.strips * self.strip_words
    }

    fn load(&self) -> Traffic {
        Traffic {
            bytes_up: 4 * (self.n + 1 + self.m)
                + 24 * self.runs
                + 4 * (self.runs + 1 + self.readers),
            ..Traffic::default()
        }
    }

    /// `closure` or `warshall`, after so many edges were added.
    fn close(&self, levels: &Levels, added: u64) -> Traffic {
        let rows: u64 = levels.iter().sum();
        let lanes = 256 / self.strip_words;
        let in_hand: u64 = levels.iter().map(|it| it.next_multiple_of(lanes)).sum();
        let closure = Traffic {
            bytes_up: 8 * added + 8 * rows + 4 * levels.len() as u64,
            busy: rows * self.w(),
            turns: in_hand * self.w(),
            ..Traffic::default()
        };
        let (dispatches, workgroups) = match self.form {
            Form::Levels => (
                self.bands * levels.len() as u64,
                self.strips * in_hand / lanes,
            ),
            Form::Warshall => return self.warshall(rows, added),
            _ => (self.bands, self.strips),
        };
        Traffic {
            bytes_up: closure.bytes_up + 32 * dispatches,
            dispatches,
            workgroups,
            ..closure
        }
    }

    fn warshall(&self, rows: u64, added: u64) -> Traffic {
        let blocks = self.n.div_ceil(128);
        let dispatches = self.bands + blocks * (2 + 2 * self.bands);
        let (seed, seed_threads) = full(rows);
        let (column, column_threads) = full(self.n);
        let w = self.w();
        let (n, bands) = (self.n, self.bands);
        Traffic {
            bytes_up: 8 * added + 8 * rows + 32 * dispatches,
            bytes_down: 0,
            dispatches,
            workgroups: bands * seed + blocks * (column + 1 + self.strips * (1 + column)),
            // In the columns, the square, the panel and the rest.
            busy: bands * rows + blocks * n + n + n * w + (blocks * n - n) * w,
            turns: bands * seed_threads
                + blocks * (column_threads + 128 + 128 * w + column_threads * w),
        }
    }

    /// A kernel of `prune` over so many pairs.
    fn over_pairs(&self, pairs: u64) -> Traffic {
        let (groups, threads) = full(pairs);
        Traffic {
            bytes_up: 32 * self.bands,
            bytes_down: 0,
            dispatches: self.bands,
            workgroups: self.bands * groups,
            busy: self.bands * pairs,
            turns: self.bands * threads,
        }
    }

    /// Judges so many pairs, and forces so many edges.
    fn judge(&self, pairs: u64, forced: u64) -> Traffic {
        let mut both = self.over_pairs(pairs);
        both.add(self.implied(pairs, forced));
        both
    }

    fn implied(&self, open: u64, implied: u64) -> Traffic {
        Traffic {
            bytes_down: 256 + 8 * implied,
            ..self.over_pairs(open)
        }
    }

    fn open(open: u64) -> Traffic {
        Traffic {
            bytes_down: 4 * open,
            ..Traffic::default()
        }
    }

    fn estimate(&self) -> Traffic {
        let (groups, threads) = full(self.n);
        Traffic {
            bytes_up: 32 * self.bands,
            bytes_down: 8 * self.n,
            dispatches: self.bands,
            workgroups: self.strips * groups,
            busy: self.n * self.w(),
            turns: threads * self.w(),
        }
    }
}

/// What was counted since the last look.
fn counted(now: Traffic, seen: &mut Traffic) -> Traffic {
    let before = std::mem::replace(seen, now);
    Traffic {
        bytes_up: now.bytes_up - before.bytes_up,
        bytes_down: now.bytes_down - before.bytes_down,
        dispatches: now.dispatches - before.dispatches,
        workgroups: now.workgroups - before.workgroups,
        busy: now.busy - before.busy,
        turns: now.turns - before.turns,
    }
}

/// Two rounds, and what is asked at the end. Every step must take what the formulas say.
fn expect_formulas<E: Executor>(
    executor: E,
    options: Options,
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
    let mut it = Rounds::load(executor, options, task, first, &budget).unwrap();
    let (n, (matrix_bytes, bands)) = (first.n_nodes() as u64, it.resident.size());
    // Graphs of these sizes have the narrowest strips.
    let of = Sizes {
        n,
        m: first.n_edges() as u64,
        strips: matrix_bytes / 32 / n,
        strip_words: 8,
        bands: bands.into(),
        runs: task.runs.len() as u64,
        readers: task.readers.len() as u64,
        form: options.form,
    };
    let what = format!("{n} nodes, {:?}, {bands} bands", of.form);
    let mut seen = Traffic::default();
    let now = &mut seen;
    assert_eq!(counted(it.resident.traffic, now), of.load(), "{what}");

    let rows = [
        levels(&Steps::all(first)),
        levels(&Steps::above(&second, new.iter().map(|edge| edge.from))),
    ];
    let mut pairs = u64::from(task.n_pairs());
    for (round, (dag, new)) in [(first, &[][..]), (&second, new)].into_iter().enumerate() {
        it.close(dag, new, &budget).unwrap();
        let close = of.close(&rows[round], new.len() as u64);
        assert_eq!(counted(it.resident.traffic, now), close, "close, {what}");
        let judgement = it.resident.judge(&budget).unwrap();
        let judge = of.judge(pairs, judgement.forced.len() as u64);
        assert_eq!(counted(it.resident.traffic, now), judge, "judge, {what}");
        pairs = judgement.n_open;
    }
    assert!(pairs > 0, "nothing is open: {what}");
    it.resident.open(&budget).unwrap();
    assert_eq!(counted(it.resident.traffic, now), Sizes::open(pairs));
    let implied = it.resident.implied(&budget).unwrap().len() as u64;
    let foreseen = of.implied(pairs, implied);
    assert_eq!(
        counted(it.resident.traffic, now),
        foreseen,
        "implied, {what}"
    );
    it.resident.relatives(&budget).unwrap();
    let foreseen = of.estimate();
    assert_eq!(
        counted(it.resident.traffic, now),
        foreseen,
        "estimate, {what}"
    );
    it.resident.executor
}

/// Runs every graph in every form, whole and in bands.
fn expect_formulas_of_all<E: Executor>(mut executor: E) {
    let mut rng = Rng::new(31);
    for (n_nodes, n_edges, span) in [(100, 300, 10), (500, 1_500, 500), (900, 2_000, 3)] {
        let dag = sample::dag(n_nodes, n_edges, span, &mut rng);
        let task = sample::task(n_nodes, 25, 12, &mut rng);
        let order = dag.order();
        let new: Vec<Edge> = (0..7)
            .map(|at| sample::edge(order[at], order[n_nodes - 1 - at]))
            .collect();
        for form in [Form::Sweep, Form::Levels, Form::Warshall] {
            for most_band_bytes in [None, Some((n_nodes * 32 * 2) as u64)] {
                let options = Options {
                    form,
                    most_band_bytes,
                    is_parallel: false,
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
