//! Levels that need proposals against their axioms by brute force, over everything that reads can have been of, and mutants.

use kingsnake_lab::oracle::weak::holds_each;
use kingsnake_lab::parallel;
use kingsnake_lab::random::{
    Rng, Wrong, sketch, small_mixed_rows, small_predicates, small_repeats, small_rows,
};

use super::attended::Attended;
use super::{OpenRead, Scene, Skipped};
use crate::agreement::{Compared, Exhaustive, asked};
use crate::budget::Budget;
use crate::check::{Report, Techniques};
use crate::context::Context;
use crate::level::{Model, Spec};
use crate::model::History;
use crate::phases::{Check, Exit, Refuted};
use crate::progress::Silent;
use crate::resolve::resolve_reads;
use crate::verdict::{Certificate, Counterexample, Proof, Verdict};
use crate::weak::tests::{conditions, repeating, specs};
use kingsnake_certify::order::replay;
use kingsnake_certify::refutation::check_proof;

/// Repeated values, deleted rows, conditions and aggregates, correct and wrong.
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

/// Transactions most of which are at causal consistency.
fn causal(seed: u64) -> History {
    let mut rng = Rng::new(seed ^ 0x6361_7573);
    let mut history = [drawn, repeating, conditions][rng.below(3)](seed);
    let set: Result<(), ()> = history.set_models(|_, _| {
        let others = [Model::Rc, Model::Ra, Model::Pc, Model::Ser];
        Ok(if rng.chance(70) {
            Model::Cc
        } else {
            others[rng.below(others.len())]
        })
    });
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
    match asked(history, spec, techniques) {
        Ok(report) => report,
        Err(error) => panic!("{spec}: {error}\n{}", told(history)),
    }
}

/// Number of histories.
fn n_seeds(few: u64) -> u64 {
    match std::env::var_os("KINGSNAKE_LONG") {
        Some(_) => 100_000,
        None => few,
    }
}

/// What was counted: violated, satisfied, decided by cases of reads, with sources in the certificate.
#[derive(Debug, Default)]
struct Counts {
    answers: [usize; 2],
    n_cases: usize,
    n_sources: usize,
}

fn agree(n_seeds: u64, drawn: fn(u64) -> History, models: &[Model], witness: bool) -> Counts {
    let mut counts = Counts::default();
    let techniques = Techniques {
        witness,
        ..Techniques::default()
    };
    let compared = Compared {
        seeds: 0..n_seeds,
        draw: &|seed| Some(drawn(seed)),
        specs: &|_, seed| {
            let models = models.iter();
            let specs = models.map(|&model| spec(model, (seed / 2).is_multiple_of(2)));
            specs.collect()
        },
        truth: &truth,
        techniques: &|_| vec![techniques.clone()],
    };
    counts.answers = compared.agree(|report| match &report.verdict {
        Verdict::Satisfied(certificate) => {
            counts.n_sources += usize::from(!certificate.sources.is_empty());
        }
        Verdict::Violated(Counterexample::Cyclic(Proof::Choice { .. })) => counts.n_cases += 1,
        _ => {}
    });
    println!("{n_seeds} histories: {counts:?}");
    counts
}

fn expect(counts: &Counts, least: usize) {
    let Counts {
        answers: [no, yes],
        n_cases,
        n_sources,
    } = *counts;
    assert!(
        [no, yes, n_cases, n_sources].iter().all(|&it| it > least),
        "{counts:?}"
    );
}

#[test]
fn psi_agrees_with_its_axioms_whatever_the_reads_are_of() {
    expect(&agree(n_seeds(4_000), drawn, &[Model::Psi], true), 100);
    expect(&agree(n_seeds(1_500), drawn, &[Model::Psi], false), 30);
}

#[test]
fn mixed_levels_agree_with_their_axioms_whatever_the_reads_are_of() {
    expect(&agree(n_seeds(6_000), mixed, &[Model::Mixed], true), 100);
    expect(&agree(n_seeds(2_000), mixed, &[Model::Mixed], false), 30);
}

#[test]
fn weak_levels_agree_with_their_axioms_on_the_same_line_whatever_the_reads_are_of() {
    let models = [Model::Rc, Model::RcSo, Model::Ra, Model::Cc];
    expect(&agree(n_seeds(1_000), drawn, &models, true), 50);
    expect(&agree(n_seeds(500), drawn, &models, false), 20);
}

/// What a search finds where each statement reads at one moment.
fn by_statements(history: &History, spec: Spec) -> Option<Certificate> {
    let (budget, techniques) = (Budget::unlimited(), Techniques::default());
    let check = Check {
        history,
        spec,
        techniques: &techniques,
    };
    let base = resolve_reads(history, &budget).ok()?;
    let backend = &mut Exhaustive::default();
    let scene = Scene::new(&check, &base, &budget).ok()?;
    let is_broken = !base.broken(history, spec).is_empty();
    let found = scene.raised(backend, &budget, |_| true).ok()?;
    found.filter(|_| !is_broken).map(|it| it.1)
}

#[test]
fn statements_that_read_at_one_moment_explain_read_committed_and_no_stronger_level() {
    let (mut n_found, mut n_not_prefix, mut n_refused) = (0, 0, 0);
    for seed in 0..n_seeds(2_000) {
        let (history, session_order) = (drawn(seed), seed.is_multiple_of(2));
        let rc = spec(Model::Rc, session_order);
        if let Some(order) = by_statements(&history, rc) {
            let held = replay(&history, rc, &order);
            assert_eq!(held, Ok(()), "seed {seed}\n{}", told(&history));
            n_found += 1;
            let pc = answer(
                &history,
                spec(Model::Pc, session_order),
                &Techniques::default(),
            );
            n_not_prefix += usize::from(matches!(pc.verdict, Verdict::Violated(_)));
        }
        let ra = spec(Model::Ra, session_order);
        let wrong = by_statements(&history, ra);
        n_refused += usize::from(wrong.is_some_and(|it| replay(&history, ra, &it).is_err()));
    }
    println!(
        "{n_found} orders of statements, {n_not_prefix} where transactions have none; {n_refused} refused at ra"
    );
    assert!(n_found > 100 && n_not_prefix > 10 && n_refused > 3);
}

/// What a search that is damaged before it begins answers wrongly.
fn fooled(
    history: &History,
    spec: Spec,
    damage: fn(&mut Scene<'_>),
) -> Option<Result<(), Refuted>> {
    let (budget, techniques) = (Budget::unlimited(), Techniques::default());
    let check = Check {
        history,
        spec,
        techniques: &techniques,
    };
    let (truth, base) = (truth(history, spec)?, resolve_reads(history, &budget).ok()?);
    if !base.broken(history, spec).is_empty() {
        return None;
    }
    let backend = &mut Exhaustive::default();
    let mut scene = Scene::new(&check, &base, &budget).ok()?;
    damage(&mut scene);
    let mut silent = Silent;
    let mut attended = Attended::new(&scene);
    match scene.settle(
        &mut attended,
        backend,
        &mut Context::new(&budget, &mut silent),
    ) {
        Ok(_) => (!truth).then_some(Ok(())),
        Err(Exit::Refuted(why)) => truth.then_some(Err(*why)),
        Err(Exit::Stop(_)) => None,
    }
}

/// The proof lacks the case that was left out.
#[test]
fn a_candidate_that_is_left_out_is_noticed() {
    for spec in specs() {
        let is_refused = |seed: &u64| {
            let history = repeating(*seed);
            let Some(Err(Refuted::Proof(_, proof))) = fooled(&history, spec, take_the_first) else {
                return false;
            };
            check_proof(&history, spec, &proof).is_err()
        };
        let seed = (0..20_000).find(is_refused);
        println!("{spec}: one candidate each is caught by history {seed:?}");
        assert!(seed.is_some(), "{spec}");
    }
}

fn take_the_first(scene: &mut Scene<'_>) {
    let reads = scene.reads.iter_mut();
    reads.for_each(|it| it.candidates.truncate(1));
}

fn forget_aggregates(scene: &mut Scene<'_>) {
    scene.aggregates.clear();
}

/// What one of several reads that may differ is of does not matter.
fn forget_reads(scene: &mut Scene<'_>) {
    scene.reads.iter_mut().for_each(|it| it.reads.clear());
    scene.of_reader.clear();
}

/// All reads of a key are of what the first of them is of, whatever the level.
fn repeat_reads(scene: &mut Scene<'_>) {
    for at in 0..scene.reads.len() {
        let (before, rest) = scene.reads.split_at_mut(at);
        let same = |it: &&OpenRead| (it.reader, it.key) == (rest[0].reader, rest[0].key);
        if let Some(first) = before.iter().find(same) {
            let shared = first.candidates.clone();
            rest[0].candidates.retain(|it| shared.contains(it));
            let shared = rest[0].candidates.clone();
            rest[0].candidates.truncate(1);
            if shared.is_empty() {
                rest[0].candidates = first.candidates.clone();
            }
        }
    }
}

/// What two reads imply together is not stated.
fn skip_edges(scene: &mut Scene<'_>) {
    scene.skipped = Skipped::Edges;
}

/// That no transaction commits before the initial state is not stated.
fn skip_clauses(scene: &mut Scene<'_>) {
    scene.skipped = Skipped::Clauses;
}

/// What happened before in longer ways is not asked.
fn skip_paths(scene: &mut Scene<'_>) {
    scene.skipped = Skipped::Paths;
}

#[test]
fn searches_that_leave_something_out_are_caught() {
    type Damage = fn(&mut Scene<'_>);
    let damages: [(&str, Damage, Model); 14] = [
        ("the first candidate alone", take_the_first, Model::Psi),
        ("no aggregates", forget_aggregates, Model::Psi),
        ("the first candidate alone", take_the_first, Model::Mixed),
        ("no aggregates", forget_aggregates, Model::Mixed),
        ("no reads in program order", forget_reads, Model::Mixed),
        ("a key is read once", repeat_reads, Model::Rc),
        ("no edges", skip_edges, Model::Mixed),
        ("no edges", skip_edges, Model::Rc),
        ("no edges", skip_edges, Model::Ra),
        ("no clauses", skip_clauses, Model::Mixed),
        ("no clauses", skip_clauses, Model::RcSo),
        ("no clauses", skip_clauses, Model::Ra),
        ("no paths", skip_paths, Model::Cc),
        ("no paths", skip_paths, Model::Mixed),
    ];
    for (what, damage, model) in damages {
        let is_caught = |seed: &u64| {
            let spec = spec(model, seed.is_multiple_of(2));
            let mut histories = match model {
                Model::Mixed => vec![mixed(*seed), causal(*seed)],
                _ => vec![drawn(*seed), repeating(*seed), conditions(*seed)],
            }
            .into_iter();
            histories.any(|it| fooled(&it, spec, damage).is_some())
        };
        let seed = (0..20_000).find(is_caught);
        println!("{model:?}, {what}: caught by history {seed:?}");
        assert!(seed.is_some(), "{model:?}, {what}: not caught");
    }
}

/// Reads that may differ say nothing where transactions at strong levels are asked alone, and a proof that was found with few reads taken
/// need not hold where more are: they join versions.
#[test]
fn proofs_hold_where_more_reads_are_taken_and_where_reads_may_differ() {
    let mixed = [15_040, 69_497].map(|seed| (mixed(seed), seed, Model::Mixed));
    let psi = [28_886, 51_086].map(|seed| (drawn(seed), seed, Model::Psi));
    for (history, seed, model) in mixed.into_iter().chain(psi) {
        let spec = spec(model, u64::is_multiple_of(seed / 2, 2));
        for witness in [true, false] {
            let techniques = Techniques {
                witness,
                ..Techniques::default()
            };
            let report = answer(&history, spec, &techniques);
            let is_violated = matches!(report.verdict, Verdict::Violated(_));
            assert!(is_violated, "{}", told(&history));
        }
    }
}
