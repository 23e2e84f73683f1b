//! Brute force against itself, on histories that combine all features: serializability, snapshot isolation and prefix consistency by
//! replay and by their axioms, and every implication of the lattice.

use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::History;
use kingsnake_lab::oracle::holds;
use kingsnake_lab::random::{Combined, sketch};

fn spec(model: Model, session_order: bool) -> Spec {
    Spec {
        model,
        session_order,
        real_time: None,
    }
}

/// The level as each transaction's own: by the axioms of its reads.
fn by_axioms(history: &History, model: Model, session_order: bool) -> Option<bool> {
    let mut history = history.clone();
    let set: Result<(), ()> = history.set_models(|_, _| Ok(model));
    set.expect("every transaction has one");
    holds(&history, spec(Model::Mixed, session_order))
}

fn histories(n: u64) -> impl Iterator<Item = (u64, History)> {
    let drawn = (0..n).map(|seed| (seed, Combined::draw(seed)));
    drawn.map(|(seed, drawn)| (seed, drawn.history().expect("it is well formed")))
}

#[test]
fn replay_and_axioms_agree() {
    let mut counts = [0; 2];
    for (seed, history) in histories(3_000) {
        for session_order in [false, true] {
            for model in Model::TIMED {
                let Some(truth) = by_axioms(&history, model, session_order) else {
                    continue;
                };
                let replayed = holds(&history, spec(model, session_order));
                let told = || {
                    format!(
                        "seed {seed}, {model:?} {session_order}\n{}",
                        sketch(&history)
                    )
                };
                assert_eq!(replayed, Some(truth), "{}", told());
                counts[usize::from(truth)] += 1;
            }
        }
    }
    println!("{counts:?} violated, satisfied");
    assert!(counts.iter().all(|&n| n > 3_000), "{counts:?}");
}

#[test]
fn no_history_breaks_an_implication_of_the_lattice() {
    let mut n_strict = [[0; 8]; 8];
    for (seed, history) in histories(2_000) {
        for session_order in [false, true] {
            let answers = Model::ALL.map(|model| holds(&history, spec(model, session_order)));
            for (at, strong) in Model::ALL.into_iter().enumerate() {
                for (other, weak) in Model::ALL.into_iter().enumerate() {
                    if !strong.implies(weak) || answers[at] != Some(true) {
                        n_strict[at][other] +=
                            usize::from((answers[at], answers[other]) == (Some(false), Some(true)));
                        continue;
                    }
                    assert_ne!(
                        answers[other],
                        Some(false),
                        "seed {seed}: {strong:?} and not {weak:?}\n{}",
                        sketch(&history)
                    );
                }
            }
        }
    }
    // Neighbours in the lattice differ.
    println!("{n_strict:?}");
    for at in 1..Model::ALL.len() {
        assert!(n_strict[at - 1][at] > 0, "{:?}", Model::ALL[at]);
    }
}
