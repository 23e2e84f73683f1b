//! The checker's rules against the oracle: on small histories, the steps that it accepts refute exactly what has no order.
//!
//! For every way to order each two writers of a key, all steps that the checker accepts under these assumptions are
//! collected. If the history holds, some way must leave them without a cycle; if not, none may.

use kingsnake_certify::Meaning;
use kingsnake_certify::refutation::accepts_step;
use kingsnake_history::budget::Budget;
use kingsnake_history::level::{Model, RealTime, Spec, Times};
use kingsnake_history::model::{History, KeyId, Op, TxnId};
use kingsnake_history::verdict::{Fact, Moment, Point, Step, StepReason};
use kingsnake_lab::oracle;
use kingsnake_lab::random::{sketch, small};
use kingsnake_solver::resolve::resolve;

type Assumption = (KeyId, TxnId, TxnId);

/// Every possible claim of a step, true or not.
fn claims(history: &History, spec: Spec) -> Vec<Step> {
    let mut steps = Vec::new();
    let keys = (0..history.n_keys() as u32).map(KeyId);
    let facts = [Fact::Initial, Fact::Run, Fact::Given, Fact::Assumed];
    let mut reasons = vec![StepReason::Begin, StepReason::Session, StepReason::RealTime];
    for key in keys {
        let ops = history.txns().flat_map(|txn| history.ops(txn));
        reasons.extend(ops.filter_map(|&op| match op {
            Op::Write { key: it, value } | Op::Append { key: it, value } if it == key => {
                Some(StepReason::Wr { key, value })
            }
            _ => None,
        }));
        for fact in facts {
            reasons.push(StepReason::Ww { key, fact });
            let writers = history.txns().map(Some).chain([None]);
            reasons.extend(writers.map(|writer| StepReason::Rw { key, writer, fact }));
        }
    }
    let moments = match spec.model {
        Model::Ser => vec![Moment::Whole],
        _ => vec![Moment::Begin, Moment::Commit],
    };
    let points: Vec<Point> = history
        .txns()
        .flat_map(|txn| moments.iter().map(move |&moment| Point { txn, moment }))
        .collect();
    for &from in &points {
        for &to in &points {
            let is_one = from.txn == to.txn;
            let fits = |reason: &&StepReason| match **reason {
                StepReason::Begin => is_one,
                StepReason::RealTime => true,
                _ => !is_one,
            };
            let fitting = reasons.iter().filter(fits);
            steps.extend(fitting.map(|&reason| Step { from, to, reason }));
        }
    }
    steps
}

fn pairs(history: &History, meaning: &Meaning<'_>) -> Vec<Assumption> {
    let mut pairs = Vec::new();
    for key in (0..history.n_keys() as u32).map(KeyId) {
        let writers: Vec<TxnId> = meaning.writers_of(key).collect();
        for (at, &one) in writers.iter().enumerate() {
            pairs.extend(writers[at + 1..].iter().map(|&other| (key, one, other)));
        }
    }
    pairs
}

fn is_conditional(step: &Step) -> bool {
    matches!(
        step.reason,
        StepReason::Ww {
            fact: Fact::Assumed,
            ..
        } | StepReason::Rw {
            fact: Fact::Assumed,
            ..
        }
    )
}

fn has_cycle(steps: &[Step]) -> bool {
    let mut arcs: Vec<(Point, Point)> = steps.iter().map(|step| (step.from, step.to)).collect();
    arcs.sort_unstable();
    arcs.dedup();
    loop {
        // An arc into a point that nothing leaves is on no cycle.
        let sources: Vec<Point> = arcs.iter().map(|arc| arc.0).collect();
        let n_arcs = arcs.len();
        arcs.retain(|arc| sources.binary_search(&arc.1).is_ok());
        if arcs.len() == n_arcs {
            return n_arcs > 0;
        }
    }
}

#[test]
fn the_accepted_steps_refute_exactly_what_the_oracle_refutes() {
    let (mut n_held, mut n_refuted) = (0, 0);
    for seed in 0..500 {
        let history = small(seed);
        if !matches!(
            resolve(&history, &Budget::unlimited()),
            Ok(resolved) if resolved.findings().is_empty()
        ) {
            continue;
        }
        let meaning = Meaning::of(&history);
        let pairs = pairs(&history, &meaning);
        if pairs.len() > 4 {
            continue;
        }
        let drift = seed % 3;
        let strict = RealTime {
            drift,
            ..RealTime::STRICT
        };
        let generalised = RealTime {
            drift,
            ..RealTime::GENERALISED
        };
        let exact = |it: RealTime| RealTime {
            times: Times::Exact,
            ..it
        };
        for (model, real_time) in [
            (Model::Ser, None),
            (Model::Si, None),
            (Model::Ser, Some(strict)),
            (Model::Si, Some(strict)),
            (Model::Si, Some(generalised)),
            (Model::Si, Some(exact(strict))),
            (Model::Si, Some(exact(generalised))),
        ] {
            let spec = Spec {
                model,
                session_order: seed % 2 == 0,
                real_time,
            };
            if real_time.is_some() && !history.has_times() {
                continue;
            }
            let Some(holds) = oracle::holds(&history, spec) else {
                continue;
            };
            let (conditional, plain): (Vec<Step>, Vec<Step>) =
                claims(&history, spec).into_iter().partition(is_conditional);
            let plain = accepted(&history, spec, &[], &plain);
            let some_order = (0..1_u32 << pairs.len()).any(|ways| {
                let assumed: Vec<Assumption> = pairs
                    .iter()
                    .enumerate()
                    .map(|(at, &(key, one, other))| match ways >> at & 1 {
                        0 => (key, one, other),
                        _ => (key, other, one),
                    })
                    .collect();
                let mut steps = accepted(&history, spec, &assumed, &conditional);
                steps.extend_from_slice(&plain);
                !has_cycle(&steps)
            });
            assert_eq!(
                some_order,
                holds,
                "seed {seed}, {spec}\n{}",
                sketch(&history)
            );
            if holds {
                n_held += 1;
            } else {
                n_refuted += 1;
            }
        }
    }
    assert!(n_held > 80 && n_refuted > 40, "{n_held}, {n_refuted}");
}

fn accepted(history: &History, spec: Spec, assumed: &[Assumption], claims: &[Step]) -> Vec<Step> {
    let accepts = accepts_step(history, spec, assumed);
    claims
        .iter()
        .filter(|step| accepts(step))
        .copied()
        .collect()
}
