//! Every level on random histories of rows and predicates, against brute force; and deliberate mistakes that must be noticed.
//!
//! `KINGSNAKE_LONG=1` runs 100,000 histories of each kind (`make test-certificates`).

use kingsnake_adya::check;
use kingsnake_history::adya::{PlLevel, Refutation};
use kingsnake_history::budget::Budget;
use kingsnake_history::model::History;
use kingsnake_history::verdict::{Counterexample, Verdict};
use kingsnake_lab::adya::{Naive, judge};
use kingsnake_lab::random::{Rng, Wrong, small_predicates};

fn n_histories() -> u64 {
    match std::env::var_os("KINGSNAKE_LONG") {
        Some(_) => 100_000,
        None => 4_000,
    }
}

fn run(history: &History, level: PlLevel) -> Verdict {
    let answer = check(history, level, &Budget::unlimited());
    answer
        .unwrap_or_else(|error| panic!("{level}: {error}\n{history:#?}"))
        .0
}

/// Which levels hold, and how many predicates mismatch by the strongest level's answer.
fn compare(history: &History, naive: &Naive, seed: u64) {
    for level in PlLevel::ALL {
        let verdict = run(history, level);
        let holds = verdict.holds() == Some(true);
        assert_eq!(
            holds,
            naive.holds.contains(&level),
            "seed {seed}, {level}: {verdict:?}\n{naive:?}"
        );
        if let Verdict::Violated(Counterexample::Recorded(Refutation::Mismatches(found))) = &verdict
        {
            let mut predicates: Vec<u32> = found.iter().map(|it| it.predicate).collect();
            predicates.dedup();
            assert_eq!(predicates.len(), naive.n_mismatches, "seed {seed}, {level}");
        }
    }
}

/// Without version orders the commit timestamps give them.
fn compare_stamped(mut history: History, seed: u64) {
    history.retain_versions(|_| false);
    compare(&history, &judge(&history, true), seed);
}

#[test]
fn every_level_agrees_with_brute_force() {
    for (kind, wrong) in [Wrong::NOT, Wrong::OFTEN].into_iter().enumerate() {
        let mut n_holding = [0_u64; 6];
        for seed in 0..n_histories() {
            let mut rng = Rng::new(seed * 2 + kind as u64);
            let history = small_predicates(&mut rng, wrong);
            let naive = judge(&history, true);
            compare(&history, &naive, seed);
            compare_stamped(history, seed);
            for (at, level) in PlLevel::ALL.iter().enumerate() {
                n_holding[at] += u64::from(naive.holds.contains(level));
            }
        }
        for (at, level) in PlLevel::ALL.into_iter().enumerate() {
            let n = n_holding[at];
            assert!(n > n_histories() / 20, "{level} holds {n} times only");
            if level != PlLevel::Pl1 && wrong.results > 0 {
                assert!(n < n_histories() * 19 / 20, "{level} holds {n} times");
            }
        }
    }
}
