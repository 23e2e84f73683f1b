//! The counters against the formulas of docs/gpu.md, exactly.

use kingsnake_solver::budget::Budget;
use kingsnake_solver::prune::{Dag, Task};
use kingsnake_solver::random::Rng;

use crate::closure::Form;
use crate::cpu::Twins;
use crate::device::Rounds;
use crate::recording::{Executor, Traffic};
use crate::resident::Options;
use crate::sample;
use crate::steps::Steps;

/// What the formulas are made of.
struct Sizes {
    n: u64,
    m: u64,
    levels: u64,
    bands: u64,
    runs: u64,
    readers: u64,
    forced: u64,
    open: u64,
    implied: u64,
}

/// The whole life of a task of one round, as docs/gpu.md has it.
fn foreseen(of: &Sizes, form: Form) -> Traffic {
    let blocks = of.n.div_ceil(128);
    let (closure, ends) = match form {
        Form::Levels => (of.bands * of.levels, of.levels),
        Form::Warshall => (of.bands + blocks * (2 + 2 * of.bands), 0),
        _ => (of.bands, of.levels),
    };
    let judge = 2 * of.bands;
    let implied = of.bands;
    let estimate = of.bands;
    let dispatches = closure + judge + implied + estimate;
    Traffic {
        bytes_up: 4 * (of.n + 1 + of.m)
            + 24 * of.runs
            + 4 * (of.runs + 1 + of.readers)
            + 8 * of.n
            + 4 * ends
            + 32 * dispatches,
        bytes_down: 256 + 8 * of.forced + 4 * of.open + 256 + 8 * of.implied + 8 * of.n,
        dispatches,
    }
}

fn counted<E: Executor>(executor: E, options: Options, task: &Task, dag: &Dag) -> (Traffic, Sizes) {
    let budget = Budget::unlimited();
    let mut it = Rounds::load(executor, options, task, dag, &budget).unwrap();
    it.close(dag, &[], &budget).unwrap();
    let resident = &mut it.resident;
    let forced = resident.judge(&budget).unwrap().forced.len() as u64;
    let open = resident.open(&budget).unwrap().len() as u64;
    let implied = resident.implied(&budget).unwrap().len() as u64;
    resident.relatives(&budget).unwrap();
    let sizes = Sizes {
        n: dag.n_nodes() as u64,
        m: dag.n_edges() as u64,
        levels: Steps::all(dag).ends.len() as u64,
        bands: resident.size().1.into(),
        runs: task.runs.len() as u64,
        readers: task.readers.len() as u64,
        forced,
        open,
        implied,
    };
    (resident.traffic, sizes)
}

#[test]
fn bytes_and_dispatches_are_what_the_formulas_say() {
    let mut rng = Rng::new(31);
    for (n_nodes, n_edges, span) in [(100, 300, 10), (500, 1_500, 500), (900, 2_000, 3)] {
        let dag = sample::dag(n_nodes, n_edges, span, &mut rng);
        let task = sample::task(n_nodes, 25, 12, &mut rng);
        for form in [Form::Sweep, Form::Levels, Form::Warshall] {
            for most_band_bytes in [None, Some((n_nodes * 32 * 2) as u64)] {
                let options = Options {
                    form,
                    most_band_bytes,
                    is_parallel: false,
                };
                let (counted, sizes) = counted(Twins::new(), options, &task, &dag);
                assert_eq!(counted, foreseen(&sizes, form), "{n_nodes} nodes, {form:?}");
            }
        }
    }
}
