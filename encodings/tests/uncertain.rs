//! Histories in which values repeat, so that reads are choices: every back end against the brute-force oracle, but for those that
//! state the rules of snapshot isolation and refuse choices.

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Silent;
use kingsnake_encodings::{BACKENDS, BackendOptions, backend};
use kingsnake_lab::oracle;
use kingsnake_lab::random::{sketch, small_repeats_committed};
use kingsnake_solver::check::{Techniques, check};
use kingsnake_solver::decide::Origin;
use kingsnake_solver::level::Level;
use kingsnake_solver::resolve::resolve;
use kingsnake_solver::verdict::Verdict;

#[test]
fn every_back_end_decides_uncertain_reads() {
    let mut counts = vec![[0; 2]; BACKENDS.len()];
    for seed in 0..2_500_usize {
        let history = small_repeats_committed(seed as u64);
        let budget = Budget::unlimited();
        let is_uncertain = resolve(&history, &budget)
            .is_ok_and(|it| it.findings().is_empty() && !it.uncertain().is_empty());
        if !is_uncertain {
            continue;
        }
        // Without pruning and witness the back end is asked.
        let techniques = Techniques {
            prune_rounds: (seed % 3 > 0).then_some(0),
            witness: seed % 2 == 0,
            ..Techniques::default()
        };
        for level in [Level::Ser, Level::Si, Level::Pc] {
            let spec = level.spec(Some(seed % 4 < 2)).expect("the level takes it");
            let truth = oracle::holds(&history, spec).expect("it is small");
            for (at, name) in BACKENDS.iter().enumerate() {
                let mut engine =
                    backend(name, &BackendOptions::default()).expect("it is in the table");
                if seed % BACKENDS.len() != at || engine.refuses(Origin::Other).is_some() {
                    continue;
                }
                let report = check(
                    &history,
                    spec,
                    &techniques,
                    &mut *engine,
                    &budget,
                    &mut Silent,
                );
                let said = match report.map(|it| it.verdict) {
                    Ok(Verdict::Satisfied(_)) => true,
                    Ok(Verdict::Violated(_)) => false,
                    other => panic!(
                        "seed {seed}, {spec}, {name}: {other:?}\n{}",
                        sketch(&history)
                    ),
                };
                assert_eq!(
                    said,
                    truth,
                    "seed {seed}, {spec}, {name}\n{}",
                    sketch(&history)
                );
                counts[at][usize::from(said)] += 1;
            }
        }
    }
    for (name, [no, yes]) in BACKENDS.iter().zip(&counts) {
        println!("{name}: {no} violated, {yes} satisfied");
    }
    let asked = counts.iter().filter(|it| **it != [0; 2]);
    assert_eq!(asked.clone().count(), BACKENDS.len() - 2, "{counts:?}");
    assert!(
        asked.into_iter().all(|it| it[0] > 5 && it[1] > 20),
        "{counts:?}"
    );
}
