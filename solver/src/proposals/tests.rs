//! Levels that need proposals against their axioms by brute force, over everything that reads can have been of, and mutants.

use kingsnake_lab::oracle::weak::holds_each;
use kingsnake_lab::parallel;
use kingsnake_lab::random::{
    Rng, Wrong, sketch, small_mixed_rows, small_predicates, small_repeats, small_rows,
};

use crate::agreement::Exhaustive;
use crate::budget::Budget;
use crate::check::{Report, Techniques, check};
use crate::level::{Model, Spec};
use crate::model::History;
use crate::progress::Silent;
use crate::verdict::{Counterexample, Proof, Verdict};

/// Repeated values, deleted rows, conditions and aggregates, right and wrong.
fn drawn(seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let mut history = match rng.below(10) {
        0..5 => {
            let wrong = [Wrong::NOT, Wrong::OFTEN][rng.below(2)];
            small_predicates(&mut rng, wrong)
        }
        5 => small_rows(seed),
        6 => small_mixed_rows(seed),
        _ => small_repeats(seed),
    };
    history.retain_versions(|_| false);
    history
}

/// The same at levels of their own, drawn from up to three.
fn mixed(seed: u64) -> History {
    let mut history = drawn(seed);
    let mut rng = Rng::new(seed ^ 0x6d69_7865);
    let pool: Vec<Model> = (0..rng.between(2, 3))
        .map(|_| Model::MIXED[rng.below(Model::MIXED.len())])
        .collect();
    let set: Result<(), ()> = history.set_models(|_, _| Ok(pool[rng.below(pool.len())]));
    set.expect("every level is one");
    history
}

fn spec(model: Model, session_order: bool) -> Spec {
    Spec {
        model,
        session_order,
        real_time: None,
    }
}

fn truth(history: &History, spec: Spec) -> Option<bool> {
    match spec.model {
        Model::Psi => parallel::hold_by_sources(history, spec.session_order),
        _ => holds_each(history, spec.session_order, &|txn| {
            spec.model_of(history, txn)
        }),
    }
}

fn told(history: &History) -> String {
    format!("{}\n{:?}", sketch(history), history.models())
}

fn answer(history: &History, spec: Spec, techniques: &Techniques) -> Report {
    let (budget, backend) = (Budget::unlimited(), &mut Exhaustive::default());
    match check(history, spec, techniques, backend, &budget, &mut Silent) {
        Ok(report) => report,
        Err(error) => panic!("{spec}: {error}\n{}", told(history)),
    }
}

/// How many histories are tried.
fn n_seeds(few: u64) -> u64 {
    match std::env::var_os("KINGSNAKE_LONG") {
        Some(_) => 100_000,
        None => few,
    }
}

/// What was counted: violated, satisfied, decided by cases of reads, with sources in the certificate, too large.
#[derive(Debug, Default)]
struct Counts {
    answers: [usize; 2],
    n_cases: usize,
    n_sources: usize,
    n_large: usize,
}

fn agree(n_seeds: u64, drawn: fn(u64) -> History, models: &[Model], witness: bool) -> Counts {
    let mut counts = Counts::default();
    let techniques = Techniques {
        witness,
        ..Techniques::default()
    };
    for seed in 0..n_seeds {
        let history = drawn(seed);
        for &model in models {
            let spec = spec(model, (seed / 2) % 2 == 0);
            let Some(truth) = truth(&history, spec) else {
                counts.n_large += 1;
                continue;
            };
            let report = answer(&history, spec, &techniques);
            match &report.verdict {
                Verdict::Satisfied(certificate) => {
                    counts.n_sources += usize::from(!certificate.sources.is_empty());
                }
                Verdict::Violated(Counterexample::Cyclic(Proof::Choice { .. })) => {
                    counts.n_cases += 1
                }
                Verdict::Violated(_) => {}
                Verdict::Unknown(reason) => panic!("seed {seed}: {reason}"),
            }
            let said = matches!(report.verdict, Verdict::Satisfied(_));
            let verdict = &report.verdict;
            assert_eq!(
                said,
                truth,
                "seed {seed}, {spec}: {verdict:?}\n{}",
                told(&history)
            );
            counts.answers[usize::from(truth)] += 1;
        }
    }
    println!("{counts:?}");
    counts
}

fn expect(counts: &Counts, least: usize) {
    let Counts {
        answers: [no, yes],
        n_cases,
        n_sources,
        ..
    } = *counts;
    assert!(
        [no, yes, n_cases, n_sources].iter().all(|&it| it > least),
        "{counts:?}"
    );
}

#[test]
fn psi_agrees_with_its_axioms_whatever_the_reads_are_of() {
    expect(&agree(n_seeds(4_000), drawn, &[Model::Psi], true), 200);
    expect(&agree(n_seeds(1_500), drawn, &[Model::Psi], false), 50);
}

#[test]
fn mixed_levels_agree_with_their_axioms_whatever_the_reads_are_of() {
    expect(&agree(n_seeds(6_000), mixed, &[Model::Mixed], true), 200);
    expect(&agree(n_seeds(2_000), mixed, &[Model::Mixed], false), 50);
}

#[test]
fn weak_levels_agree_with_their_axioms_on_the_same_line_whatever_the_reads_are_of() {
    let models = [Model::Rc, Model::RcSo, Model::Ra, Model::Cc];
    expect(&agree(n_seeds(1_000), drawn, &models, true), 50);
    expect(&agree(n_seeds(500), drawn, &models, false), 20);
}
