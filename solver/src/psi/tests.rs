//! Parallel snapshot isolation against brute force, and mutants that the comparison catches.

use std::cell::Cell;
use std::ops::Range;

use kingsnake_lab::parallel;
use kingsnake_lab::random::{sketch, small, small_mixed, small_parallel, small_rows};

use kingsnake_graph::Orders;

use crate::agreement::{Compared, Exhaustive, asked, engines, is_wrong};
use crate::budget::Budget;
use crate::check::{CheckError, Decider, Techniques, settle_graph};
use crate::level::{Model, Spec};
use crate::model::History;
use crate::relate::{Edge, Polygraph, Reason, construct};
use crate::resolve::resolve_for;
use crate::verdict::{Counterexample, Verdict};

fn spec(session_order: bool) -> Spec {
    Spec {
        model: Model::Psi,
        session_order,
        real_time: None,
    }
}

/// Sites and arbitrary reads take turns.
fn draw(seed: u64) -> History {
    if seed.is_multiple_of(4) {
        small_mixed(seed)
    } else {
        small_parallel(seed)
    }
}

/// What was met: violated, satisfied; by search; satisfied and not snapshot isolation; proofs by cases.
#[derive(Debug, Default)]
struct Tally {
    verdicts: [usize; 2],
    searched: [usize; 2],
    only_psi: usize,
    by_cases: usize,
}

fn agree(seeds: Range<u64>, engines: &[Techniques]) -> Tally {
    let (mut tally, only_psi) = (Tally::default(), Cell::new(0));
    let truth = |history: &History, spec: Spec| {
        let truth = parallel::hold_by_graph(history, spec.session_order)?;
        let si = kingsnake_lab::axioms::hold(history, spec.session_order, &|_| Model::Si);
        only_psi.set(only_psi.get() + usize::from(truth && si == Some(false)));
        Some(truth)
    };
    let compared = Compared {
        seeds,
        draw: &|seed| Some(draw(seed)),
        specs: &|_, _| [true, false].map(spec).into(),
        truth: &truth,
        techniques: &|_| engines.to_vec(),
    };
    tally.verdicts = compared.agree(|report| {
        let said = report.verdict.holds() == Some(true);
        tally.searched[usize::from(said)] += usize::from(report.decider == Decider::Backend);
        if let Verdict::Violated(Counterexample::Cyclic(proof)) = &report.verdict {
            tally.by_cases += usize::from(proof.splits().next().is_some());
        }
    });
    tally.only_psi = only_psi.get();
    tally
}

#[test]
fn every_technique_agrees_with_brute_force_at_parallel_snapshot_isolation() {
    let engines = engines();
    let tally = agree(0..3_000, &engines);
    println!("{tally:?}, {} engines", engines.len());
    assert!(
        tally.verdicts[0].min(tally.verdicts[1]) > 1_000,
        "{tally:?}"
    );
    assert!(tally.searched[0].min(tally.searched[1]) > 100, "{tally:?}");
    assert!(tally.only_psi > 10 && tally.by_cases > 100, "{tally:?}");
}

type Damage = fn(&mut Polygraph);

/// What was overwritten is forgotten: every order without a cycle of so, wr and ww is trusted.
fn forget_overwrites(polygraph: &mut Polygraph) {
    let problem = polygraph.problem_mut();
    let is_rw = |edge: &Edge| matches!(edge.reason, Reason::Rw { .. });
    problem.edges.retain(|edge| !is_rw(edge));
    problem.orders = problem.orders.without_readers();
}

/// What is overwritten happened before: cycles with several rw steps are forbidden, as at serializability.
fn overwrites_happen_before(polygraph: &mut Polygraph) {
    for edge in &mut polygraph.problem_mut().edges {
        if let Reason::Rw { before, after } = edge.reason {
            edge.reason = Reason::Ww { before, after };
        }
    }
}

/// Two writers of a key need no order.
fn forget_conflicts(polygraph: &mut Polygraph) {
    let problem = polygraph.problem_mut();
    problem.orders = Orders::default();
    let is_ww = |edge: &Edge| matches!(edge.reason, Reason::Ww { .. });
    problem.edges.retain(|edge| !is_ww(edge));
}

#[test]
fn wrong_graphs_of_parallel_snapshot_isolation_are_caught() {
    let damages: [(&str, Damage); 3] = [
        ("forgetting overwrites", forget_overwrites),
        ("overwrites in D", overwrites_happen_before),
        ("forgetting conflicts", forget_conflicts),
    ];
    for (what, damage) in damages {
        let is_caught = |seed: &u64| {
            let history = draw(*seed);
            let spec = spec(seed.is_multiple_of(2));
            let (Some(truth), Ok(resolved)) = (
                parallel::hold_by_graph(&history, spec.session_order),
                resolve_for(&history, spec, &Budget::unlimited()),
            ) else {
                return false;
            };
            if !resolved.broken(&history, spec).is_empty() {
                return false;
            }
            let mut polygraph = construct(&history, resolved, spec, true);
            damage(&mut polygraph);
            let backend = &mut Exhaustive::default();
            let techniques = Techniques {
                witness: false,
                ..Techniques::default()
            };
            let answer = settle_graph(&history, polygraph, &techniques, backend);
            is_wrong(truth, answer)
        };
        let seed = (0..60_000).find(is_caught);
        println!("{what}: caught by history {seed:?}");
        assert!(seed.is_some(), "{what}: not caught");
    }
}

/// A hundred thousand histories; a share of them is in the first test.
#[test]
#[ignore = "make long"]
fn parallel_snapshot_isolation_agrees_with_brute_force_on_a_hundred_thousand_histories() {
    let searching = Techniques {
        witness: false,
        ..Techniques::default()
    };
    let tally = agree(10_000..110_000, &[Techniques::default(), searching]);
    println!("{tally:?}");
}

/// Brute force knows registers only. Every answer has been checked again, so it is compared with those of its neighbours.
#[test]
fn parallel_snapshot_isolation_over_rows_lists_and_ranges_lies_between_its_neighbours() {
    let mut counts = [0; 2];
    for seed in 0..4_000 {
        let history = if seed % 2 == 0 {
            small_rows(seed)
        } else {
            small(seed)
        };
        let answer = |model, techniques: &Techniques| {
            let spec = Spec {
                model,
                ..spec(seed % 3 == 0)
            };
            match asked(&history, spec, techniques) {
                Ok(report) => Some(matches!(report.verdict, Verdict::Satisfied(_))),
                Err(CheckError::Resolve(_)) => None,
                Err(error) => panic!("seed {seed}, {spec}: {error}\n{}", sketch(&history)),
            }
        };
        let all = Techniques::default();
        let searching = Techniques {
            witness: false,
            ..Techniques::default()
        };
        let own = answer(Model::Psi, &searching);
        let neighbours = (answer(Model::Si, &all), own, answer(Model::Cc, &all));
        let (Some(si), Some(psi), Some(cc)) = neighbours else {
            continue;
        };
        assert_eq!(answer(Model::Psi, &all), own, "seed {seed}");
        let told = sketch(&history);
        assert!(
            (!si || psi) && (!psi || cc),
            "seed {seed}: {si} {psi} {cc}\n{told}"
        );
        counts[usize::from(psi)] += 1;
    }
    println!("violated and satisfied {counts:?}");
    assert!(counts[0].min(counts[1]) > 300, "{counts:?}");
}
