//! Whole checks with each back end against the brute-force oracle, with and without pruning, and on puzzles that only a
//! case split decides.

use std::collections::BTreeMap;

use kingsnake_encodings::{BACKENDS, Options, backend};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::check::{CheckError, Decider, Report, Techniques, check};
use kingsnake_solver::level::{Model, Spec};
use kingsnake_solver::model::History;
use kingsnake_solver::oracle;
use kingsnake_solver::progress::Silent;
use kingsnake_solver::random::{CaseSplit, Rng, sketch, small};
use kingsnake_solver::verdict::Verdict;

fn run(
    name: &str,
    history: &History,
    spec: Spec,
    techniques: &Techniques,
) -> Result<Report, CheckError> {
    let mut backend = backend(name, &Options::default()).expect("a back end of the table");
    let budget = Budget::unlimited();
    check(
        history,
        spec,
        techniques,
        backend.as_mut(),
        &budget,
        &mut Silent,
    )
}

fn says(report: &Report) -> Option<bool> {
    match report.verdict {
        Verdict::Satisfied(_) => Some(true),
        Verdict::Violated(_) => Some(false),
        Verdict::Unknown(_) => None,
    }
}

const SPECS: [Spec; 4] = [
    spec(Model::Ser, true),
    spec(Model::Ser, false),
    spec(Model::Si, true),
    spec(Model::Si, false),
];

const fn spec(model: Model, session_order: bool) -> Spec {
    Spec {
        model,
        session_order,
        real_time: false,
    }
}

#[test]
fn every_back_end_agrees_with_the_oracle_on_random_histories() {
    let unpruned = Techniques {
        prune_rounds: Some(0),
        combine: false,
        witness: false,
        ..Techniques::default()
    };
    let mut tally: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..5_000 {
        let history = small(seed);
        let spec = SPECS[seed as usize % SPECS.len()];
        let Some(truth) = oracle::holds(&history, spec) else {
            continue;
        };
        for name in BACKENDS {
            for techniques in [&Techniques::default(), &unpruned] {
                match run(name, &history, spec, techniques) {
                    Err(CheckError::Resolve(_)) => {}
                    Err(error) => panic!("seed {seed}, {name}: {error}\n{}", sketch(&history)),
                    Ok(report) => {
                        assert_eq!(says(&report), Some(truth), "seed {seed}, {name}, {spec}");
                        let by = report.decider.name();
                        *tally
                            .entry(format!("{name}, by {by}: {truth}"))
                            .or_default() += 1;
                    }
                }
            }
        }
    }
    for (what, count) in &tally {
        println!("{count:8} {what}");
    }
    let asked = |truth: bool| tally.get(&format!("cadical/propagator, by backend: {truth}"));
    assert!(asked(true).is_some_and(|&count| count > 100));
    assert!(asked(false).is_some_and(|&count| count > 10));
}

#[test]
fn every_back_end_decides_and_explains_puzzles_that_need_a_case_split() {
    let mut rng = Rng::new(5);
    let (mut satisfied, mut violated) = (0, 0);
    for round in 0..120 {
        let (n_pairs, n_clauses) = (2 + round % 9, 4 + round % 23);
        let puzzle = CaseSplit::draw(n_pairs, n_clauses, &mut rng);
        let (history, truth) = (puzzle.history(), puzzle.is_satisfiable());
        for name in BACKENDS {
            for spec in [SPECS[0], SPECS[2]] {
                let report = run(name, &history, spec, &Techniques::default());
                let report =
                    report.unwrap_or_else(|error| panic!("{name}, round {round}: {error}"));
                let said = says(&report);
                assert_eq!(
                    said,
                    Some(truth),
                    "{name}, round {round}, {spec}: {:?}",
                    report.verdict
                );
                if !truth {
                    assert_eq!(report.decider, Decider::Backend, "{name}, round {round}");
                }
            }
        }
        *(if truth { &mut satisfied } else { &mut violated }) += 1;
    }
    println!("{satisfied} puzzles are satisfied, {violated} violated");
    assert!(satisfied > 10 && violated > 10);
}
