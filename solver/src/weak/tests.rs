//! The weak levels against the axioms by brute force, and mutants that the comparison catches.

use kingsnake_lab::oracle;
use kingsnake_lab::random::{
    Execution, KeyKind, Rng, Small, Wrong, sketch, small, small_predicates, small_rows,
    small_weak_rows,
};

use kingsnake_relate::visible::{Commits, TxnModels, Visible, Why};

use super::cycle;
use crate::agreement::{Compared, asked};
use crate::budget::Budget;
use crate::check::{CheckError, Techniques};
use crate::level::{Model, Spec};
use crate::model::{History, HistoryBuilder, Status, Token, TxnId};
use crate::phases::Check;
use crate::resolve::{NO_NODE, Resolved, resolve_reads};
use crate::verdict::{Counterexample, Proof, Verdict};

pub(super) fn check(history: &History, spec: Spec) -> Result<Verdict, CheckError> {
    let techniques = Techniques {
        witness: false,
        ..Techniques::default()
    };
    asked(history, spec, &techniques).map(|report| report.verdict)
}

/// Whether an answer passes its second check.
fn holds(history: &History, spec: Spec, verdict: &Verdict) -> bool {
    let check = Check {
        history,
        spec,
        techniques: &Techniques::default(),
    };
    super::certify(&check, verdict, None, &Budget::unlimited()).is_ok()
}

/// A weak level.
fn weak(model: Model, session_order: bool) -> Spec {
    Spec {
        model,
        session_order,
        real_time: None,
    }
}

pub(crate) fn specs() -> impl Iterator<Item = Spec> {
    let both = |model| [true, false].map(|session_order| weak(model, session_order));
    Model::WEAK.into_iter().flat_map(both)
}

/// Registers of a database with weak promises, so that each weak level is kept and broken.
pub(super) fn drawn(seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let mut small = Small::draw(&mut rng);
    small.kind = KeyKind::Registers;
    small.n_txns = small.n_txns.min(5);
    small.version_orders = false;
    small.repeats = [0, 0, 20][rng.below(3)];
    if rng.chance(70) {
        small.execution = [Execution::ReadCommitted, Execution::PerKey][rng.below(2)];
        small.n_mutations = [0, 1][rng.below(2)];
    }
    small.history(&mut rng)
}

fn says(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Unknown(reason) => panic!("{reason}"),
        known => !known.is_violated(),
    }
}

/// The proof of a violated level, if it needs one.
fn proof(verdict: &Verdict) -> Option<&Proof> {
    match verdict {
        Verdict::Violated(Counterexample::Cyclic(proof)) => Some(proof),
        _ => None,
    }
}

#[test]
fn every_weak_level_agrees_with_its_axioms() {
    agree(20_000, 1_000, drawn);
}

#[test]
fn every_weak_level_agrees_with_its_axioms_on_range_queries() {
    agree(20_000, 500, small_weak_rows);
}

/// Compares all levels on some histories; each verdict of each level must occur this often.
fn agree(n_seeds: u64, least: usize, drawn: impl Fn(u64) -> History) {
    let (mut counts, mut n_cycles) = ([[0; 2]; 8], 0);
    Compared {
        seeds: 0..n_seeds,
        draw: &|seed| Some(drawn(seed)),
        specs: &|_, _| specs().collect(),
        truth: &oracle::weak::holds,
        // Every other history is searched without a stronger level.
        techniques: &|seed| {
            vec![Techniques {
                witness: seed % 2 == 0,
                ..Techniques::default()
            }]
        },
    }
    .agree(|report| {
        let at = specs().position(|it| it == report.spec);
        let at = at.expect("it is one of them");
        counts[at][usize::from(says(&report.verdict))] += 1;
        let cycle = proof(&report.verdict).and_then(Proof::as_cycle);
        n_cycles += usize::from(cycle.is_some());
    });
    for (spec, [no, yes]) in specs().zip(counts) {
        let told = format!("{spec}: {no} violated, {yes} satisfied");
        assert!(no.min(yes) > least, "{told}");
    }
    assert!(n_cycles > least);
}

#[test]
fn each_weak_level_implies_the_weaker_ones() {
    for seed in 0..5_000 {
        let history = drawn(seed);
        let answers = Model::WEAK.map(|model| {
            let spec = weak(model, true);
            check(&history, spec).map(|verdict| says(&verdict))
        });
        for pair in answers.windows(2) {
            if let [Ok(weaker), Ok(stronger)] = pair {
                assert!(*weaker || !stronger, "seed {seed}");
            }
        }
    }
}

#[test]
fn snapshot_isolation_implies_every_weak_level_on_lists_and_rows() {
    let spec = Spec {
        model: Model::Si,
        session_order: true,
        real_time: None,
    };
    let mut n_held = 0;
    for seed in 0..4_000 {
        for history in [small(seed), small_rows(seed)] {
            let Ok(report) = asked(&history, spec, &Techniques::default()) else {
                continue;
            };
            if !matches!(report.verdict, Verdict::Satisfied(_)) {
                continue;
            }
            n_held += 1;
            for weak in specs().filter(|weak| weak.session_order) {
                match check(&history, weak) {
                    Ok(verdict) => {
                        let story = sketch(&history);
                        assert!(says(&verdict), "seed {seed}, {weak}: {verdict:?}\n{story}");
                    }
                    Err(CheckError::Resolve(_)) => {}
                    Err(error) => panic!("seed {seed}, {weak}: {error}\n{}", sketch(&history)),
                }
            }
        }
    }
    assert!(n_held > 1_000);
}

/// Whether a level with some of its edges left out accepts a history that breaks it.
fn is_fooled(history: &History, spec: Spec, damage: impl Fn(&mut Visible<'_>)) -> bool {
    let budget = Budget::unlimited();
    let Ok(all) = resolve_reads(history, &budget) else {
        return false;
    };
    if all
        .findings()
        .iter()
        .any(|finding| finding.breaks(spec.model))
    {
        return false;
    }
    let mut graph = Visible::of(
        &all,
        TxnModels::Uniform(spec.model),
        spec.session_order,
        &budget,
    )
    .expect("there is time");
    damage(&mut graph);
    let accepts = cycle::order(all.n_txns(), &graph.edges).is_ok();
    accepts != oracle::weak::holds(history, spec).expect("it is small")
}

#[test]
fn wrong_engines_are_caught() {
    let rc = weak(Model::Rc, true);
    let is_vis = |edge: &Commits| matches!(edge.why, Why::Vis { .. });
    let one_slot = (0..200_000).find(|&seed| {
        is_fooled(&drawn(seed), rc, |graph| {
            graph.edges.retain(|edge| !is_vis(edge));
            graph.add_rc(1).expect("there is time");
        })
    });
    println!("one slot is caught by history {one_slot:?}");
    assert!(one_slot.is_some());
    for spec in specs() {
        let caught = (0..20_000).find(|&seed| {
            is_fooled(&drawn(seed), spec, |graph| {
                let last = graph.edges.iter().rposition(is_vis);
                last.map(|last| graph.edges.remove(last));
            })
        });
        println!("{spec} without its last edge is caught by history {caught:?}");
        assert!(caught.is_some(), "{spec}");
    }
}

#[test]
fn an_engine_that_forgets_what_range_queries_missed_is_caught() {
    for spec in specs().filter(|spec| spec.session_order) {
        let caught = (0..20_000).find(|&seed| {
            let history = small_weak_rows(seed);
            let Ok(all) = resolve_reads(&history, &Budget::unlimited()) else {
                return false;
            };
            is_fooled(&history, spec, |graph| {
                let (gaps, versions) = (all.gaps(), all.versions());
                graph.edges.retain(|edge| {
                    let missed = match edge.why {
                        Why::Vis { version, .. } => Some(version),
                        _ => None,
                    };
                    let is_gap =
                        missed.is_some_and(|it| gaps.places(versions.key(it)).next().is_some());
                    !(is_gap && edge.to == NO_NODE)
                });
            })
        });
        println!("{spec} without gaps is caught by history {caught:?}");
        assert!(caught.is_some(), "{spec}");
    }
}

/// Registers whose values repeat.
pub(crate) fn repeating(seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let mut small = Small::draw(&mut rng);
    small.kind = KeyKind::Registers;
    small.n_txns = small.n_txns.min(5);
    small.version_orders = false;
    small.repeats = [30, 60, 90][rng.below(3)];
    if rng.chance(70) {
        small.execution = [Execution::ReadCommitted, Execution::PerKey][rng.below(2)];
        small.n_mutations = [0, 1, 2][rng.below(3)];
    }
    small.history(&mut rng)
}

/// A part of what `KINGSNAKE_LONG=1` runs.
fn n_histories(share: u64) -> u64 {
    match std::env::var_os("KINGSNAKE_LONG") {
        Some(_) => 100_000,
        None => share,
    }
}

#[test]
fn every_weak_level_agrees_with_its_axioms_on_repeated_values() {
    agree(n_histories(6_000), 300, repeating);
}

/// Rows chosen by conditions.
pub(crate) fn conditions(seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let wrong = if rng.chance(20) {
        Wrong::NOT
    } else {
        Wrong {
            snapshots: 60,
            reads: 20,
            results: 8,
            orders: 0,
        }
    };
    let mut history = small_predicates(&mut rng, wrong);
    history.retain_versions(|_| false);
    history
}

#[test]
fn every_weak_level_agrees_with_its_axioms_on_conditions_over_rows() {
    agree(n_histories(4_000), 300, conditions);
}

/// The histories with uncertain reads, and their resolution.
fn uncertain_histories(n_seeds: u64) -> impl Iterator<Item = (History, Resolved)> {
    let histories = (0..n_seeds).map(repeating);
    histories.filter_map(|history| {
        let resolved = resolve_reads(&history, &Budget::unlimited()).ok()?;
        let is_uncertain = !resolved.reads().choices().is_empty();
        (is_uncertain && resolved.findings().is_empty()).then_some((history, resolved))
    })
}

#[test]
fn an_end_that_is_unknown_and_conditions_agree_with_the_axioms() {
    agree(n_histories(2_000), 100, |seed| {
        let history = conditions(seed);
        let txn = TxnId((seed % history.n_txns() as u64) as u32);
        history.with_status(txn, Status::Unknown)
    });
}

#[test]
fn a_row_that_a_condition_did_not_return_is_missed_where_it_is_forgotten() {
    for spec in specs() {
        let caught = (0..20_000).find(|&seed| {
            let history = conditions(seed);
            let mut forgetful = history.clone();
            forgetful.forget_predicates();
            let said = check(&forgetful, spec).is_ok_and(|it| says(&it));
            oracle::weak::holds(&history, spec).is_some_and(|truth| truth != said)
        });
        println!("{spec}: forgotten conditions are caught by history {caught:?}");
        assert!(caught.is_some(), "{spec}");
    }
}

#[test]
fn a_case_that_is_left_out_and_a_source_that_is_changed_are_refused() {
    let (mut n_cases, mut n_sources) = (0, 0);
    for (history, _) in uncertain_histories(8_000) {
        for spec in specs() {
            let verdict = check(&history, spec).expect("it is decided");
            if let Some(Proof::Choice {
                reader,
                op,
                key,
                cases,
            }) = proof(&verdict)
                && !cases.is_empty()
            {
                let damaged = Proof::Choice {
                    reader: *reader,
                    op: *op,
                    key: *key,
                    cases: cases[1..].to_vec(),
                };
                let damaged = Verdict::Violated(Counterexample::Cyclic(damaged));
                assert!(!holds(&history, spec, &damaged));
                n_cases += 1;
            }
            if let Verdict::Satisfied(mut order) = verdict
                && !order.sources.is_empty()
            {
                // A transaction does not read from itself.
                order.sources[0].writer = Some(order.sources[0].reader);
                assert!(!holds(&history, spec, &Verdict::Satisfied(order)));
                n_sources += 1;
            }
        }
    }
    println!("{n_cases} proofs by cases, {n_sources} orders with sources");
    assert!(n_cases > 20 && n_sources > 500);
}

#[test]
fn many_independent_uncertain_reads_are_not_multiplied() {
    let mut builder = HistoryBuilder::new();
    builder.initial_everywhere(Token::Int(0));
    let begin = |builder: &mut HistoryBuilder, id: i64| {
        let session = builder.session(Token::Int(id));
        let begun = builder.begin(session, Token::Int(id), Status::Committed);
        begun.expect("names are counted");
    };
    for key in 0..200 {
        let (x, y) = (Token::Int(2 * key), Token::Int(2 * key + 1));
        for writer in 0..3 {
            begin(&mut builder, 4 * key + writer);
            builder.write(x, Token::Int(1));
            builder.write(y, Token::Int(10 + writer));
        }
        begin(&mut builder, 4 * key + 3);
        builder.read(y, Token::Int(11));
        builder.read(x, Token::Int(1));
    }
    let history = builder.finish().expect("it is well formed");
    for spec in specs() {
        let verdict = check(&history, spec).expect("it is decided");
        assert!(matches!(&verdict, Verdict::Satisfied(order) if order.sources.len() == 200));
    }
}
