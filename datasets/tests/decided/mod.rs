//! Runs of the embedded store with few keys, and verdicts on them that need no search: their version orders are known.
#![allow(dead_code)] // No test uses all of it.

use kingsnake_datasets::store::{Recorded, StoreRun};
use kingsnake_datasets::workloads::{Distribution, Granularity, Parameters, find};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::check::{Techniques, check};
use kingsnake_solver::decide::{Backend, DecideError, DecideStats, Decision, Question};
use kingsnake_solver::level::{Level, Spec};
use kingsnake_solver::model::History;
use kingsnake_solver::progress::{Progress, Silent};
use kingsnake_solver::verdict::Verdict;

/// Never asked: with the version order everything is known before.
struct Nobody;

impl Backend for Nobody {
    fn name(&self) -> &'static str {
        "test/nobody"
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        _: &Budget,
        _: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        panic!("{} constraints are open", question.constraints.len());
    }
}

pub(crate) fn verdict(history: &History, spec: Spec) -> Verdict {
    let techniques = Techniques::default();
    let budget = Budget::unlimited();
    let report = check(
        history,
        spec,
        &techniques,
        &mut Nobody,
        &budget,
        &mut Silent,
    );
    report.expect("the history can be checked").verdict
}

pub(crate) fn holds(history: &History, spec: Spec) -> bool {
    match verdict(history, spec) {
        Verdict::Satisfied(_) => true,
        Verdict::Violated(_) => false,
        Verdict::Unknown(reason) => panic!("unknown: {reason}"),
    }
}

pub(crate) fn spec(level: Level) -> Spec {
    level.spec(None).expect("no switch, no contradiction")
}

pub(crate) fn crowded(workload: &str, run: &StoreRun) -> Recorded {
    crowded_by(workload, None, run)
}

pub(crate) fn crowded_by(
    workload: &str,
    granularity: Option<Granularity>,
    run: &StoreRun,
) -> Recorded {
    let entry = find(workload).expect("it is in the table");
    let parameters = Parameters {
        n_keys: (entry.n_keys > 0).then_some(30),
        n_ops: (entry.n_ops > 0).then_some(4),
        // Schemas have so many rows that clients would hardly meet.
        distribution: if entry.n_keys > 0 {
            Distribution::Uniform
        } else {
            "zipf:1.5".parse().expect("a distribution")
        },
        granularity,
        shapes: None,
    };
    let workload = entry.make(&parameters).expect("there are enough keys");
    run.run(&*workload).expect("there are enough clients")
}

pub(crate) fn small(seed: u64) -> StoreRun {
    StoreRun {
        n_txns: 400,
        n_clients: 8,
        seed,
        ..StoreRun::default()
    }
}
